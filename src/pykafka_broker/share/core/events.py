"""What can happen to a share partition, the answers, and the work that is started.

Each event carries the token of its answer, and the time if it matters.
"""

from __future__ import annotations

import enum
from typing import Optional, Union

from pykafka_broker.machine.step import TimerFired as TimerFired
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.records.batch import NO_PRODUCER_ID
from pykafka_broker.share.core.records import WrittenBatch
from pykafka_broker.system.named_tuple import NamedTuple


class AcknowledgeType(enum.IntEnum):
    """What became of a record."""

    #: There is no record at this offset: compacted away, or a control record.
    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    #: Not done yet: the lock is to last longer (KIP-1222).
    RENEW = 4


class AcquireMode(enum.IntEnum):
    """ShareAcquireMode of ShareFetch v2 (KIP-1206); v1 is `BATCH_OPTIMIZED`."""

    #: Whole batches, so that their records are acknowledged together; a soft limit.
    BATCH_OPTIMIZED = 0
    #: Never more records than asked for.
    RECORD_LIMIT = 1


class Result(NamedTuple):
    """The answer to Initialize, Acknowledge and ReleaseMember."""

    error: ErrorCode = ErrorCode.NONE
    message: Optional[str] = None


OK = Result()


# ---- loading ----


class Initialize(NamedTuple):
    """A request needs the share partition. Answered with a `Result`."""

    token: int


class StateRead(NamedTuple):
    """The share coordinator has answered; start offset -1: no state yet."""

    error: ErrorCode
    message: Optional[str] = None
    state_epoch: int = 0
    start_offset: int = 0
    batches: tuple[WrittenBatch, ...] = ()


class StartOffsetFound(NamedTuple):
    """The log was asked where `share.auto.offset.reset` begins."""

    error: ErrorCode
    offset: int = 0


class Fence(NamedTuple):
    """The partition is led by another broker, or the share coordinator has fenced this one."""


# ---- fetching ----


class BeginFetch(NamedTuple):
    """May `fetch_id` fetch, and from where? Answered with the offset, or None: not now."""

    token: int
    fetch_id: int


class EndFetch(NamedTuple):
    """`fetch_id` has fetched; others may."""

    fetch_id: int


class FetchedBatch(NamedTuple):
    """A record batch as it was read from the log."""

    base_offset: int
    last_offset: int
    producer_id: int = NO_PRODUCER_ID
    is_transactional: bool = False
    #: A control batch whose first record aborts the producer's transaction.
    is_abort_marker: bool = False


class AbortedTransaction(NamedTuple):
    """An aborted transaction, as a fetch names it."""

    first_offset: int
    producer_id: int


class Acquire(NamedTuple):
    """Batches were read for a member. Answered with `Acquired`."""

    token: int
    now_ms: int
    member_id: str
    #: Where the read began; the first batch may begin before, or after if records are gone.
    fetch_offset: int
    batches: tuple[FetchedBatch, ...]
    max_records: int
    #: The number of records that an acquired batch should have.
    batch_size: int
    mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED
    #: Only of groups that read committed.
    aborted: tuple[AbortedTransaction, ...] = ()


class AcquiredRecords(NamedTuple):
    """Consecutive offsets that a member has acquired, delivered for the `delivery_count`-th time."""

    first_offset: int
    last_offset: int
    delivery_count: int


class Acquired(NamedTuple):
    """The answer to Acquire."""

    records: tuple[AcquiredRecords, ...] = ()

    @property
    def size(self) -> int:
        """Offsets in all of them."""
        return sum(part.last_offset - part.first_offset + 1 for part in self.records)


# ---- acknowledging ----


class AcknowledgementBatch(NamedTuple):
    """What became of consecutive records: one type for all, or one for each."""

    first_offset: int
    last_offset: int
    types: tuple[int, ...]


class Acknowledge(NamedTuple):
    """A member acknowledges, by ShareFetch or ShareAcknowledge. Answered with a `Result`, once written."""

    token: int
    now_ms: int
    member_id: str
    batches: tuple[AcknowledgementBatch, ...]


class ReleaseMember(NamedTuple):
    """A member's share session has ended. Answered with a `Result` once it is written."""

    token: int
    now_ms: int
    member_id: str


class WriteDone(NamedTuple):
    """The share coordinator has answered a `StateWrite`, or could not be asked."""

    now_ms: int
    write_id: int
    error: ErrorCode = ErrorCode.NONE
    message: Optional[str] = None


class LogStartMoved(NamedTuple):
    """Records below the offset are gone: by retention or DeleteRecords."""

    log_start_offset: int


Event = Union[
    Initialize,
    StateRead,
    StartOffsetFound,
    Fence,
    BeginFetch,
    EndFetch,
    Acquire,
    Acknowledge,
    ReleaseMember,
    WriteDone,
    LogStartMoved,
    TimerFired,
]


# ---- work that is started ----


class ReadPersistedState(NamedTuple):
    """Ask the share coordinator (ReadShareGroupState); then `StateRead`."""


class FindStartOffset(NamedTuple):
    """Ask the log where the group's `share.auto.offset.reset` begins; then `StartOffsetFound`."""


class WakeFetches(NamedTuple):
    """Fetches that wait for this share partition may find records, or room for them."""
