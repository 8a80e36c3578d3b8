"""The answers where no shard takes an event: this node is not the coordinator, the partition is still being
read, or the log has refused the records.

The error has the code for clients (`shards.as_answered`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafka_broker.coordinator.transactions.core.events import DescribedTransaction, ProducerIdResult
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.topic_partition import TopicPartition


def producer_id(error: KafkaError) -> ProducerIdResult:
    """The answer to InitProducerId and EndTxn."""
    return ProducerIdResult(error.code)


def add_partitions(error: KafkaError) -> ErrorCode:
    """The answer to AddPartitionsToTxn and AddOffsetsToTxn, for all partitions of a transaction."""
    return error.code


def verify_partitions(
    partitions: Iterable[TopicPartition], error: KafkaError
) -> Mapping[TopicPartition, ErrorCode]:
    """The answer to AddPartitionsToTxn that only verifies."""
    return dict.fromkeys(partitions, error.code)


def describe(error: KafkaError) -> DescribedTransaction:
    """The answer to DescribeTransactions, for one transactional id."""
    return DescribedTransaction(error.code)
