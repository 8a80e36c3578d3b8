"""The fetch requests of a reader, and the batches that it takes from the answers. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.arrow.core.limits import Limits
from pykafka_broker.arrow.core.stored_batches import OffsetRange, Taken, take
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from pykafka_broker.protocol.records.aborted_transactions import AbortedTransactions
from pykafka_broker.protocol.records.batch import iter_batches
from pykafka_broker.system.named_tuple import NamedTuple

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
#: The least size of one partition's share where many partitions share an answer.
LEAST_PARTITION_BYTES = 64 * 1024


class TopicName(NamedTuple):
    """A topic by its name, and by its id where the broker has ids."""

    name: str
    topic_id: bytes


def fetch_request(
    topic: TopicName, positions: Mapping[int, int], isolation_level: int, limits: Limits
) -> FetchRequest:
    """Ask for the records of some partitions from these offsets on; the broker answers for the first ones
    first.
    """
    share = max(limits.fetch_bytes // len(positions), min(LEAST_PARTITION_BYTES, limits.fetch_bytes))
    return FetchRequest(
        max_wait_ms=limits.wait_ms,
        min_bytes=1,
        max_bytes=limits.fetch_bytes,
        isolation_level=isolation_level,
        topics=[
            FetchTopic(
                topic=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=share)
                    for partition, offset in positions.items()
                ],
            )
        ],
    )


def take_answer(topic: str, answer: PartitionData, wanted: OffsetRange, isolation_level: int) -> Taken:
    """The batches of an answer that hold wanted offsets.

    Raises:
        KafkaError: CORRUPT_MESSAGE, the answer does not consist of batches, or a marker is damaged.
    """
    if not answer.records:
        return Taken([], wanted.start)
    data = memoryview(answer.records)
    aborted = None
    if isolation_level == READ_COMMITTED:
        aborted = AbortedTransactions(
            (each.first_offset, each.producer_id) for each in answer.aborted_transactions or ()
        )
    batches = ((header, data[at : at + header.size_in_bytes]) for at, header in iter_batches(data))
    return take(topic, answer.partition_index, batches, wanted, aborted)
