"""The transactional batches of a Produce request, which have to be verified (KIP-890)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.producing.answer import name_of
from pykafka_broker.log.partition.validation import check_framing, check_one_batch
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.produce import ProduceRequest, TopicProduceData
from pykafka_broker.protocol.records.batch import HEADER_BYTES, MAGIC, TRANSACTIONAL_BIT, read_header
from pykafka_broker.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

#: The position of the low byte of a batch's attributes.
LOW_ATTRIBUTES_AT = 22


def has_transactional_batch(request: ProduceRequest) -> bool:
    """Whether any partition's first batch is transactional; Kafka checks this before it serves any partition.

    Raises:
        KafkaError: CORRUPT_MESSAGE, a batch is malformed, which fails the whole request.
    """
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None:
                check_framing(data.records)
                if _is_transactional(data.records):
                    return True
    return False


def transactional_batches(
    topics: list[TopicProduceData], ctx: RequestContext
) -> Iterator[tuple[TopicPartition, Any]]:
    """The batches that the coordinator may have to verify.

    A payload that will be refused, as it is no batch or its partition does not exist, must not be verified:
    the verification would stay open and block higher sequence numbers of the producer.
    """
    for topic in topics:
        name = name_of(topic, ctx)
        for data in topic.partition_data:
            if (
                name is not None
                and data.records is not None
                and _is_transactional(data.records)
                and _exists(name, data.index, ctx)
                and _is_one_batch(data.records, ctx.version)
            ):
                yield TopicPartition(name, data.index), data.records


def _exists(name: str, index: int, ctx: RequestContext) -> bool:
    return (
        ctx.node.partitions.led(name, index) is not None
        or ctx.node.partitions.why_not_led(name, index) is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


def _is_one_batch(records: Any, version: int) -> bool:
    try:
        check_one_batch(records, version)
    except KafkaError:
        return False
    return True


def _is_transactional(records: Any) -> bool:
    """Whether a payload begins with a whole transactional batch; other formats have no such bit there."""
    return (
        len(records) >= HEADER_BYTES
        and records[LOW_ATTRIBUTES_AT] & TRANSACTIONAL_BIT != 0
        and (header := read_header(records)).magic == MAGIC
        and header.size_in_bytes <= len(records)
    )
