"""The share partitions that this node leads, as ShareFetch and ShareAcknowledge ask them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pykafka_broker.log.partition.limit import Limit
    from pykafka_broker.machine.shard import Prompt
    from pykafka_broker.replication.leading_replica import LeadingReplica
    from pykafka_broker.share.core.config import ShareConfig
    from pykafka_broker.share.core.events import (
        AbortedTransaction,
        AcknowledgementBatch,
        Acquired,
        AcquireMode,
        FetchedBatch,
        Result,
    )


class ShareGroupSettings(Protocol):
    """What a share group has configured."""

    @property
    def partitions(self) -> ShareConfig:
        """Limits and durations."""
        ...

    @property
    def limit(self) -> Limit:
        """Up to where its members read."""
        ...


class LedSharePartition(Protocol):
    """The records of a partition led here that one share group has in flight."""

    partition: LeadingReplica
    on_advance: list[Callable[..., Any]]

    @property
    def is_fenced(self) -> bool:
        """It was dropped: whoever waits for it has to look for its successor."""
        ...

    def initialize(self, told: Callable[[Result], object]) -> None:
        """See that the state is loaded. `told` is called with NONE, with LEADER_NOT_AVAILABLE while others
        wait for that, or with why it could not be: at once, or when that is known.
        """
        ...

    def earliest_begin(self) -> int | None:
        """A fetch that began now would read from here on, or from further behind; None if it may not."""
        ...

    def begin_fetch(self, fetch_id: int) -> int | None:
        """Where this fetch is to read from, and nobody else until it ends; None if it may not now."""
        ...

    def end_fetch(self, fetch_id: int, *, has_read: bool) -> None:
        """The fetch reads here no longer. If it has read, others look that could not."""
        ...

    def offsets_wanted(self, max_records: int) -> int:
        """Records from this offset on are not acquired by a fetch of so many records, whatever it reads; but
        the rest of a record batch may be.
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
        """What a member gets of the record batches that were read."""
        ...

    def acknowledge(
        self, member_id: str, batches: tuple[AcknowledgementBatch, ...]
    ) -> Prompt[Result] | Awaitable[Result]:
        """Take what a member says of its records; answered when that is written."""
        ...

    def release(self, member_id: str) -> None:
        """A member's session is over: give back what it has acquired."""
        ...

    def log_start_moved(self) -> None:
        """A fetch has found that the log begins behind the offset at which it wanted to read."""
        ...


class SharePartitions(Protocol):
    """All share partitions of this node."""

    def settings_of(self, group_id: str) -> ShareGroupSettings:
        """The settings of a group."""
        ...

    def new_fetch_id(self) -> int:
        """The id of a fetch, which no other fetch has."""
        ...

    def find(self, group_id: str, topic_id: bytes, partition: int) -> LedSharePartition | None:
        """A share partition that some member has fetched from."""
        ...

    def open(self, group_id: str, partition: Any) -> LedSharePartition:
        """The share partition of a group in a partition that this node leads; the first who asks makes it.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, the node stops.
        """
        ...

    def drop_group(self, group_id: str) -> None:
        """Forget the share partitions of a group that has no session here any more."""
        ...
