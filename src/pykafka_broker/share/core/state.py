"""The state of a share partition: its in-flight batches, between the start offset and the end offset.

All of it is immutable. What the share coordinator has written is durable; acquisitions and their locks end
when this broker no longer leads the partition.
"""

from __future__ import annotations

import enum
from typing import Optional

from pykafka_broker.share.core.batch import InFlightBatch
from pykafka_broker.share.core.records import StateWrite
from pykafka_broker.system.named_tuple import NamedTuple

#: The start offset of a share partition that has none yet (ReadShareGroupState).
UNINITIALIZED_START_OFFSET = -1


class Phase(enum.Enum):
    """Only an active share partition serves; the others answer with an error."""

    EMPTY = "empty"
    INITIALIZING = "initializing"
    ACTIVE = "active"
    FAILED = "failed"
    FENCED = "fenced"


class GapWindow(NamedTuple):
    """Offsets that a loaded state does not mention and that may hold unacknowledged records.

    Only reading the log shows what lies between two batches of a loaded state. Gaps past the window are
    empty: the log was read there.
    """

    #: The first offset that may be in such a gap.
    start_offset: int
    #: The end offset when the state was loaded; the window is over when the end offset moves on.
    end_offset: int


class PendingWrite(NamedTuple):
    """A write in flight."""

    write: StateWrite
    #: The request that waits for it; None for locks that have timed out.
    token: Optional[int]


class SharePartition(NamedTuple):
    """One partition of one share group, on the leader of the partition."""

    phase: Phase = Phase.EMPTY
    #: The share-partition start offset (SPSO): the first that is not done.
    start_offset: int = 0
    #: The share-partition end offset (SPEO): the last that was fetched, or the start offset.
    end_offset: int = 0
    state_epoch: int = 0
    #: In the order of their offsets.
    batches: tuple[InFlightBatch, ...] = ()
    gap_window: Optional[GapWindow] = None
    #: Whether some records below the end offset may be available again.
    look_for_available: bool = False
    #: Records at or above the start offset that are acknowledged or archived, also by writes under way.
    delivery_complete_count: int = 0
    #: The fetch that has the fetch lock.
    fetch_id: Optional[int] = None
    writes: tuple[PendingWrite, ...] = ()
    next_write_id: int = 0
    #: When the running timer of locks fires: at or before the first lock's end.
    timer_at_ms: Optional[int] = None
    #: The request that waits for the load.
    opener: Optional[int] = None

    @property
    def active_gap_window(self) -> Optional[GapWindow]:
        window = self.gap_window
        return window if window is not None and window.end_offset == self.end_offset else None

    @property
    def in_flight_records(self) -> int:
        """Offsets from start to end, done or not; `share.partition.max.record.locks` limits them."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0
