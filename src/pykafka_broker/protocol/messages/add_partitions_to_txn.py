"""AddPartitionsToTxn (API key 24): announce or verify the partitions of a transaction.

v2 may answer PRODUCER_FENCED, v3 flexible, v4 many transactions at once and verification only (brokers use
it, clients stay at v3), v5 may answer TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i16, i32, i64, message, string


@message()
class AddPartitionsToTxnTopic:
    name: str = string(entity="topic_name")
    partitions: list[int] = array(i32())


@message()
class AddPartitionsToTxnTransaction:
    transactional_id: str = string(entity="transactional_id")
    producer_id: int = i64(entity="producer_id")
    producer_epoch: int = i16()
    verify_only: bool = boolean(default=False)
    topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic)


@message(api_key=24, versions="0-5", flexible="3+", listeners="broker")
class AddPartitionsToTxnRequest:
    transactions: list[AddPartitionsToTxnTransaction] = array(AddPartitionsToTxnTransaction, "4+", default=[])
    v3_and_below_transactional_id: str = string("0-3", default="", entity="transactional_id")
    v3_and_below_producer_id: int = i64("0-3", default=0, entity="producer_id")
    v3_and_below_producer_epoch: int = i16("0-3", default=0)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, "0-3", default=[])


@message()
class AddPartitionsToTxnPartitionResult:
    partition_index: int = i32()
    partition_error_code: int = i16()


@message()
class AddPartitionsToTxnTopicResult:
    name: str = string(entity="topic_name")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(AddPartitionsToTxnPartitionResult)


@message()
class AddPartitionsToTxnResult:
    transactional_id: str = string(entity="transactional_id")
    topic_results: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult)


@message(api_key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16("4+", default=0)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(AddPartitionsToTxnResult, "4+", default=[])
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        AddPartitionsToTxnTopicResult, "0-3", default=[]
    )
