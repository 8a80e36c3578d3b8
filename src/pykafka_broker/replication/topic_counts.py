"""What is written to each topic on this broker, and read from it: Kafka's BrokerTopicMetrics.

The partitions of a topic share one object, which counts by whole batches. When the last partition of a topic
has left this broker, its counts go to `gone`, so that the sums over all topics never go back.

Source: ReplicaManager and UnifiedLog of Apache Kafka say what counts, and which refusals are no failures.
"""

from __future__ import annotations

from pykafka_broker.log.partition.validation import RecordErrors
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.errors import InvalidOffsets, WrongChecksum

#: Errors that a producer brings on itself, or that a retry mends: Kafka does not count them as failures.
EXPECTED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class TopicCounts:
    """The counts of one topic since its first partition came to this broker."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetch_requests",
        "failed_isr_updates",
        "failed_produce_requests",
        "failed_share_fetch_requests",
        "fetch_requests",
        "invalid_offsets",
        "isr_expands",
        "isr_shrinks",
        "keyless_records",
        "messages_in",
        "partitions",
        "produce_requests",
        "reassignment_bytes_in",
        "reassignment_bytes_out",
        "replication_bytes_in",
        "replication_bytes_out",
        "share_fetch_requests",
        "wrong_checksums",
    )

    def __init__(self) -> None:
        #: The number of its partitions here.
        self.partitions = 0
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        #: Batches refused for their checksum, or for the offsets, sequence and count in their headers.
        self.wrong_checksums = 0
        self.invalid_offsets = 0
        #: Records without a key that compacted topics refused.
        self.keyless_records = 0
        #: A request counts once for each partition that it names.
        self.produce_requests = 0
        self.failed_produce_requests = 0
        self.fetch_requests = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        #: Those of them that a reassignment moves.
        self.reassignment_bytes_in = 0
        self.reassignment_bytes_out = 0
        #: A share fetch counts once for each topic.
        self.share_fetch_requests = 0
        self.failed_share_fetch_requests = 0
        #: Fetches fail with errors that clients expect; no other failure is known.
        self.failed_fetch_requests = 0
        #: Changes of the ISR that were asked for, and those of them that were refused.
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.failed_isr_updates = 0

    def appended(self, messages: int, size_bytes: int) -> None:
        """A batch has been appended by a client, or by a coordinator."""
        self.produce_requests += 1
        self.messages_in += messages
        self.bytes_in += size_bytes

    def refused(self, error: KafkaError, size_bytes: int) -> None:
        """A batch has been refused."""
        code = error.code
        self.produce_requests += 1
        if code not in EXPECTED:
            self.failed_produce_requests += 1
        elif code is ErrorCode.MESSAGE_TOO_LARGE or code is ErrorCode.RECORD_LIST_TOO_LARGE:
            self.bytes_rejected += size_bytes
        if isinstance(error, WrongChecksum):
            self.wrong_checksums += 1
        elif isinstance(error, InvalidOffsets):
            self.invalid_offsets += 1
        elif isinstance(error, RecordErrors):
            self.keyless_records += error.keyless

    def add(self, other: TopicCounts) -> None:
        """Add all counts of another object."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class AllTopicCounts:
    """The counts of all topics with partitions on this broker."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicCounts] = {}
        #: Those of topics that have none any more.
        self.gone = TopicCounts()

    def partition_came(self, topic: str) -> TopicCounts:
        """The counts for another partition of a topic."""
        counts = self.topics.get(topic)
        if counts is None:
            counts = self.topics[topic] = TopicCounts()
        counts.partitions += 1
        return counts

    def partition_left(self, topic: str) -> None:
        """A partition of a topic has left this broker."""
        counts = self.topics[topic]
        counts.partitions -= 1
        if not counts.partitions:
            self.gone.add(self.topics.pop(topic))

    def total(self) -> TopicCounts:
        """The sums over all topics."""
        total = TopicCounts()
        for counts in (self.gone, *self.topics.values()):
            total.add(counts)
        return total
