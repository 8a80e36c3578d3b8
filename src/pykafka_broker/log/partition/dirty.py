"""The choice of the log to clean next, and of the end of the round: pure, from sizes, timestamps and offsets.

    log start   first dirty            first uncleanable        log end
        | cleaned before | cleaned in this round | not touched    |

A round cleans whole segments, up to the first of these: the active segment, the last stable offset (so every
transaction below is decided), the first segment with a record younger than `min.compaction.lag.ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Optional, TypeVar

from pykafka_broker.log.config import LONG_MAX, LogConfig
from pykafka_broker.log.segment.index import MAX_RELATIVE_OFFSET
from pykafka_broker.system.named_tuple import NamedTuple

Key = TypeVar("Key")


class CleanableSegment(NamedTuple):
    """The facts of one segment that cleaning decides on; the timestamps are read only when a lag is set."""

    base_offset: int
    size_bytes: int
    largest_timestamp: Callable[[], int]
    #: The greatest timestamp of its first batch, -1 if there is none.
    first_timestamp: Callable[[], int]


class LogFacts(NamedTuple):
    """The facts of one log that cleaning decides on; `segments` are all, the active one last."""

    segments: Sequence[CleanableSegment]
    config: LogConfig
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    #: The offset at which the last round ended; None if there was none.
    cleaned_offset: Optional[int]


class Dirt(NamedTuple):
    """The part of a log that can be cleaned: offsets [first_dirty, first_uncleanable)."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    #: `max.compaction.lag.ms` has passed.
    is_overdue: bool

    @property
    def ratio(self) -> float:
        """The share of the bytes below the first uncleanable offset that this round would clean."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0


def dirt(log: LogFacts, now_ms: int) -> Dirt:
    """Return what a round would clean now. A checkpoint that does not fit the log counts as none."""
    segments, config = log.segments, log.config
    first_dirty = log.log_start_offset
    if log.cleaned_offset is not None and log.log_start_offset <= log.cleaned_offset <= log.log_end_offset:
        first_dirty = log.cleaned_offset
    closed = [segment for segment in _from(segments, first_dirty) if segment is not segments[-1]]
    limit = min(log.last_stable_offset, segments[-1].base_offset)
    if config.min_compaction_lag_ms > 0:
        youngest = now_ms - config.min_compaction_lag_ms
        limit = min([limit, *[s.base_offset for s in closed if s.largest_timestamp() > youngest][:1]])
    first_uncleanable = _from(segments, max(first_dirty, limit))[0].base_offset
    return Dirt(
        first_dirty,
        first_uncleanable,
        sum([segment.size_bytes for segment in segments if segment.base_offset < first_dirty]),
        sum([s.size_bytes for s in _from(segments, first_dirty) if s.base_offset < first_uncleanable]),
        _is_overdue(closed, config, now_ms),
    )


def _from(segments: Sequence[CleanableSegment], offset: int) -> Sequence[CleanableSegment]:
    """The segment that holds `offset`, and those behind it."""
    number = max([n for n, segment in enumerate(segments) if segment.base_offset <= offset], default=0)
    return segments[number:]


def _is_overdue(closed: Iterable[CleanableSegment], config: LogConfig, now_ms: int) -> bool:
    if config.max_compaction_lag_ms == LONG_MAX:
        return False
    oldest = min([t for segment in closed if (t := segment.first_timestamp()) > 0], default=LONG_MAX)
    return oldest < now_ms - config.max_compaction_lag_ms


def filthiest(candidates: Iterable[tuple[Key, Dirt, float]]) -> tuple[Key, Dirt] | None:
    """The log to clean next, of (log, dirt, `min.cleanable.dirty.ratio`); None if none is dirty enough."""
    due = [
        (key, found)
        for key, found, minimum in candidates
        if found.cleanable_bytes > 0 and (found.is_overdue or found.ratio > minimum)
    ]
    return max(due, key=lambda candidate: candidate[1].ratio, default=None)


class SegmentSize(NamedTuple):
    """The sizes of a segment, which decide whether segments fit into one."""

    base_offset: int
    #: The upper bound of its offsets.
    end_offset: int
    log_bytes: int
    index_bytes: int
    time_index_bytes: int


def groups(
    segments: Sequence[SegmentSize], segment_bytes: int, segment_index_bytes: int
) -> list[list[SegmentSize]]:
    """Neighbours that fit into one segment together: each group becomes one segment, so that segments do not
    only shrink.
    """
    found: list[list[SegmentSize]] = []
    for segment in segments:
        if found and _fits(found[-1], segment, segment_bytes, segment_index_bytes):
            found[-1].append(segment)
        else:
            found.append([segment])
    return found


def _fits(group: list[SegmentSize], segment: SegmentSize, log_bytes: int, index_bytes: int) -> bool:
    together = [*group, segment]
    return (
        sum([one.log_bytes for one in together]) <= log_bytes
        and sum([one.index_bytes for one in together]) <= index_bytes
        and sum([one.time_index_bytes for one in together]) <= index_bytes
        and (segment.log_bytes == 0 or segment.end_offset - 1 - group[0].base_offset <= MAX_RELATIVE_OFFSET)
    )
