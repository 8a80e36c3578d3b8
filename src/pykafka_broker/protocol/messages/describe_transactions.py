"""DescribeTransactions (API key 65): state, producer and partitions of transactional ids.

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, i64, message, string


@message(api_key=65, versions="0", flexible="0+", listeners="broker")
class DescribeTransactionsRequest:
    transactional_ids: list[str] = array(string(entity="transactional_id"))


@message()
class TopicData:
    topic: str = string(entity="topic_name")
    partitions: list[int] = array(i32())


@message()
class TransactionState:
    error_code: int = i16()
    transactional_id: str = string(entity="transactional_id")
    transaction_state: str = string()
    transaction_timeout_ms: int = i32()
    transaction_start_time_ms: int = i64()
    producer_id: int = i64(entity="producer_id")
    producer_epoch: int = i16()
    topics: list[TopicData] = array(TopicData)


@message(api_key=65, versions="0", flexible="0+")
class DescribeTransactionsResponse:
    throttle_time_ms: int = i32(default=0)
    transaction_states: list[TransactionState] = array(TransactionState)
