"""The partitions this node leads, and those that it follows, for readers that may read there."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pykafka_broker.log.partition.partition_log import PartitionLog
    from pykafka_broker.log.partition.writer import AppendResult
    from pykafka_broker.protocol.buffers import Buffer
    from pykafka_broker.protocol.errors import ErrorCode
    from pykafka_broker.replication.topic_counts import AllTopicCounts, TopicCounts


class DeletedRecords(Protocol):
    """Records below `offset` are deleted here, records below `low_watermark` on every live replica."""

    @property
    def offset(self) -> int: ...

    @property
    def low_watermark(self) -> int: ...


class Committing(Protocol):
    """The commits of a partition that this node leads."""

    #: Whether appended records may be acknowledged at once, with any acks.
    acknowledges_at_once: bool

    def acknowledged(
        self, next_offset: int, required_acks: int, timeout_ms: int | None = None
    ) -> Awaitable[ErrorCode] | None:
        """None if records below `next_offset` may be acknowledged now, else an awaitable for that moment.

        With acks=all and followers it waits for the high watermark, at most `timeout_ms`; else only for the
        sync that `flush.messages` asks for.
        """
        ...


class RecordsDeletion(Protocol):
    """DeleteRecords of a partition that this node leads."""

    def delete(self, before_offset: int) -> DeletedRecords:
        """Delete the records below an offset (-1: the high watermark) here; followers delete them later.

        Raises:
            KafkaError: POLICY_VIOLATION for a topic that is only compacted, OFFSET_OUT_OF_RANGE beyond the
                high watermark.
        """
        ...

    def everywhere(self, offset: int, timeout_ms: int) -> Awaitable[ErrorCode] | None:
        """None if every live replica has deleted the records below `offset`, else an awaitable for that."""
        ...

    @property
    def low_watermark(self) -> int:
        """Records below are deleted on all live replicas; -1 while a log start offset is unknown."""
        ...


class LeaderThrottle(Protocol):
    """The throttle of a partition that this node leads."""

    def holds_back(self, replica_id: int) -> bool:
        """Whether this follower gets no records now: it is throttled, and the throttle's rate is exceeded."""
        ...

    def count(self, size_bytes: int) -> None:
        """Count records sent to a follower, if the partition is throttled."""
        ...


class HeldPartition(Protocol):
    """A partition this node leads or follows, with the `log` to read it from, and the counts of its topic."""

    topic_id: bytes
    log: PartitionLog
    leader_epoch: int
    counts: TopicCounts

    @property
    def is_end_known(self) -> bool:
        """False while the high watermark of a new leader may be below offsets that consumers have seen."""
        ...


class LedPartition(HeldPartition, Protocol):
    """A partition this node leads: its log, and the rules of replication around it."""

    #: Whether another broker may lead without this one's knowledge: records with acks=all are refused.
    is_cut_off: bool

    @property
    def adding(self) -> Sequence[int]:
        """The replicas that a reassignment adds."""
        ...

    @property
    def committing(self) -> Committing: ...

    @property
    def deletion(self) -> RecordsDeletion: ...

    @property
    def throttle(self) -> LeaderThrottle: ...

    def append(
        self,
        records: Buffer,
        *,
        required_acks: int,
        produce_version: int,
        now_ms: int,
        guard: int = 0,
    ) -> AppendResult | Awaitable[AppendResult]:
        """Append a producer's batch and, if there is no other replica in the ISR, move the high watermark.

        A transaction's first batch has the guard under which the coordinator has verified it. Returns an
        awaitable if a thread has to create a file first.

        Raises:
            KafkaError: the batch is refused (nothing was written), or the storage failed.
        """
        ...

    def check_follower(self, replica_id: int, leader_epoch: int) -> None:
        """Refuse another broker that is no follower; it sends the current leader epoch or none (-1).

        Raises:
            KafkaError: UNKNOWN_LEADER_EPOCH, or without an epoch NOT_LEADER_OR_FOLLOWER, for a broker that is
                not assigned to the partition.
        """
        ...

    def follower_fetched(
        self, replica_id: int, broker_epoch: int, fetch_offset: int, log_start_offset: int
    ) -> None:
        """Note that an assigned follower has everything below `fetch_offset`; `broker_epoch` -1 is unknown.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, the epoch is of an earlier registration.
        """
        ...

    def expects(self, replica_id: int) -> bool:
        """Whether this is a follower outside the ISR, which may join with its next fetch."""
        ...

    def nearest_replica(self, rack: str, fetch_offset: int, listener_name: str) -> int | None:
        """The follower that a consumer in `rack` should read from; None for this leader."""
        ...


class Partitions(Protocol):
    """Finds the partitions this node leads."""

    @property
    def counts(self) -> AllTopicCounts:
        """What is written to the topics here, and read from them."""
        ...

    def led(self, topic: str, partition: int) -> LedPartition | None:
        """The partition if this node leads it, else None; `why_not_led` then returns the error."""
        ...

    def why_not_led(self, topic: str, partition: int) -> ErrorCode:
        """The error of a partition not served here: unknown, led elsewhere, or its directory is offline."""
        ...

    def followed(self, topic: str, partition: int) -> HeldPartition | None:
        """The partition if this node holds it, another broker or none leads it, and its disk works."""
        ...
