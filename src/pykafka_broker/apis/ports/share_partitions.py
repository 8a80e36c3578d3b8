"""The share partitions that this node leads, for ShareFetch and ShareAcknowledge."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pykafka_broker.machine.shard import Prompt
    from pykafka_broker.replication.leading_replica import LeadingReplica
    from pykafka_broker.share.core.events import (
        AbortedTransaction,
        AcknowledgementBatch,
        Acquired,
        AcquireMode,
        FetchedBatch,
        Result,
    )
    from pykafka_broker.share.settings import SharePartitionSettings


class LedSharePartition(Protocol):
    """The records of a partition led here that one share group has in flight."""

    partition: LeadingReplica
    on_advance: list[Callable[..., Any]]

    @property
    def is_fenced(self) -> bool:
        """Whether it was dropped: waiting fetches have to open it anew."""
        ...

    def initialize(self, told: Callable[[Result], object]) -> None:
        """Load the state if necessary. `told` is called, perhaps later, with NONE, with LEADER_NOT_AVAILABLE
        if loading has begun already, or with the error of loading.
        """
        ...

    def earliest_begin(self) -> int | None:
        """The earliest offset that a fetch beginning now would read from; None if no fetch may begin."""
        ...

    def begin_fetch(self, fetch_id: int) -> int | None:
        """Take the fetch lock for this fetch; the offset to read from, None if the lock is not available."""
        ...

    def end_fetch(self, fetch_id: int, *, has_read: bool) -> None:
        """Release the fetch lock; if the fetch has read, other waiting fetches are woken."""
        ...

    def offsets_wanted(self, max_records: int) -> int:
        """The offset from which on a fetch of `max_records` acquires nothing, except for the rest of a record
        batch.
        """
        ...

    def acquire(
        self,
        member_id: str,
        fetch_offset: int,
        batches: tuple[FetchedBatch, ...],
        *,
        max_records: int,
        batch_size: int,
        mode: AcquireMode,
        aborted: tuple[AbortedTransaction, ...],
    ) -> Acquired:
        """Acquire for a member records of the batches that were read."""
        ...

    def acknowledge(
        self, member_id: str, batches: tuple[AcknowledgementBatch, ...]
    ) -> Prompt[Result] | Awaitable[Result]:
        """Apply a member's acknowledgements; answered when they are written."""
        ...

    def release(self, member_id: str) -> None:
        """Release the records that a member has acquired: its session has ended."""
        ...

    def log_start_moved(self) -> None:
        """A fetch has found that the log starts after the offset to read from."""
        ...


class SharePartitions(Protocol):
    """All share partitions of this node."""

    def settings_of(self, group_id: str) -> SharePartitionSettings:
        """The settings of a group."""
        ...

    def new_fetch_id(self) -> int:
        """A unique id for a fetch."""
        ...

    def find(self, group_id: str, topic_id: bytes, partition: int) -> LedSharePartition | None:
        """The share partition, if a member has fetched from it."""
        ...

    def open(self, group_id: str, partition: Any) -> LedSharePartition:
        """The share partition of a group in a partition that this node leads; created by the first call.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, the node is stopping.
        """
        ...

    def drop_group(self, group_id: str) -> None:
        """Drop the share partitions of a group that has no session left here."""
        ...
