"""The partitions this node leads, and those that it follows, for readers that may read there."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pykafka_broker.log.partition.limit import Limit
    from pykafka_broker.log.partition.partition_log import PartitionLog
    from pykafka_broker.log.partition.writer import AppendResult
    from pykafka_broker.protocol.buffers import Buffer
    from pykafka_broker.protocol.errors import ErrorCode


class DeletedRecords(Protocol):
    """The records below `offset` are deleted here, and on every live replica those below `low_watermark`."""

    @property
    def offset(self) -> int: ...

    @property
    def low_watermark(self) -> int: ...


class Committing(Protocol):
    """What a partition that this node leads has committed."""

    #: Appended records may be acknowledged at once, whatever acks a producer asks for.
    acknowledges_at_once: bool

    def acknowledged(
        self, next_offset: int, required_acks: int, timeout_ms: int | None = None
    ) -> Awaitable[ErrorCode] | None:
        """None if everything below `next_offset` may be acknowledged now, else an awaitable for that moment.

        With acks=all that is the high watermark where followers count, but not longer than `timeout_ms`; else
        it is only the sync that `flush.messages` asks for.
        """
        ...


class RecordsDeletion(Protocol):
    """DeleteRecords of a partition that this node leads."""

    def delete(self, before_offset: int) -> DeletedRecords:
        """Delete the records below an offset (-1: the high watermark) here; followers do as they hear of it.

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
        """Everything below is deleted on all live replicas; -1 while one has not told where it starts."""
        ...


class Sending(Protocol):
    """The throttle of a partition that this node leads."""

    def holds_back(self, replica_id: int) -> bool:
        """Whether this follower gets no records now: it is throttled, and too much has been sent to such."""
        ...

    def count(self, size_bytes: int) -> None:
        """Records have been sent to a follower: they count if the partition is throttled."""
        ...


class HeldPartition(Protocol):
    """A partition this node leads or follows. It is read through `log`: a read has a plan, may be parked, and
    goes to a thread of the log's disk.
    """

    topic_id: bytes
    log: PartitionLog
    leader_epoch: int

    @property
    def is_end_known(self) -> bool:
        """False while the high watermark of a new leader may be older than what consumers have seen."""
        ...


class LedPartition(HeldPartition, Protocol):
    """A partition this node leads: its log, and the rules of replication around it."""

    #: Others may lead by now: records with acks=all are refused.
    is_cut_off: bool

    @property
    def committing(self) -> Committing: ...

    @property
    def deletion(self) -> RecordsDeletion: ...

    @property
    def sending(self) -> Sending: ...

    def append(
        self,
        records: Buffer,
        *,
        required_acks: int,
        produce_version: int,
        now_ms: int,
        guard: int = 0,
    ) -> AppendResult | Awaitable[AppendResult]:
        """Append a producer's batch and, where no other replica has to follow, move the high watermark.

        A transaction's first batch brings the guard under which the coordinator has confirmed it. An
        awaitable if a thread has to make a file before.

        Raises:
            KafkaError: the batch is refused (nothing was written), or the storage failed.
        """
        ...

    def limit_for_replica(self, replica_id: int, leader_epoch: int) -> Limit:
        """The limit of another broker's reads, which names the current leader epoch or none (-1).

        Raises:
            KafkaError: UNKNOWN_LEADER_EPOCH, or without an epoch NOT_LEADER_OR_FOLLOWER, for a broker that is
                not assigned to the partition.
        """
        ...

    def follower_fetched(
        self, replica_id: int, broker_epoch: int, fetch_offset: int, log_start_offset: int
    ) -> None:
        """An assigned follower has everything below `fetch_offset`; `broker_epoch` is -1 if it names none.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, the broker has been registered again since.
        """
        ...

    def nearest_replica(self, rack: str, fetch_offset: int, listener_name: str) -> int | None:
        """The follower from which a consumer in `rack` reads better than from here, if there is one."""
        ...


class Partitions(Protocol):
    """Finds the partitions this node leads."""

    def led(self, topic: str, partition: int) -> LedPartition | None:
        """The partition if this node leads it, else None; `why_not_led` then gives the error."""
        ...

    def why_not_led(self, topic: str, partition: int) -> ErrorCode:
        """The error of a partition not served here: unknown, led elsewhere, or its directory is offline."""
        ...

    def followed(self, topic: str, partition: int) -> HeldPartition | None:
        """The partition if this node holds it, another broker or none leads it, and its disk works."""
        ...
