"""The choice of the old segments to delete: pure, from sizes, timestamps and offsets.

Kafka's three rules, in its order: closed segments wholly below the log start offset (under every cleanup
policy), then those that exceed `retention.bytes`, then those older than `retention.ms` (both only under
`delete`, and for the active segment too, unless it is empty). Segments go from the front, and never past the
high watermark. A record with a future timestamp keeps its segment, and all later ones, until it expires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pykafka_broker.log.config import LogConfig
from pykafka_broker.system.named_tuple import NamedTuple


class SegmentFacts(NamedTuple):
    """The facts of one segment that retention decides on; `age_timestamp` is its newest record's, or the
    file's when it has none.
    """

    base_offset: int
    #: Base offset of the next segment, or the log end offset for the last one.
    next_offset: int
    size_bytes: int
    age_timestamp: Callable[[], int]


class Expired(NamedTuple):
    """The first `segments` segments may go; `reasons` says why, one for each."""

    segments: int
    reasons: tuple[str, ...]


def expired_segments(
    segments: Sequence[SegmentFacts],
    config: LogConfig,
    *,
    now_ms: int,
    log_start_offset: int,
    high_watermark: int,
) -> Expired:
    """Return the segments at the front of the log that are due for deletion."""
    excess = sum(s.size_bytes for s in segments) - config.retention_bytes
    reasons: list[str] = []
    for segment in segments:
        is_active = segment is segments[-1]
        if segment.next_offset > high_watermark or (is_active and not segment.size_bytes):
            break
        if segment.next_offset <= log_start_offset and not is_active:
            reason = "log start offset"
        elif not config.deletes_old_segments:
            break
        elif config.retention_bytes >= 0 and excess >= segment.size_bytes:
            reason = "retention.bytes"
        elif config.retention_ms >= 0 and now_ms - segment.age_timestamp() > config.retention_ms:
            reason = "retention.ms"
        else:
            break
        excess -= segment.size_bytes
        reasons.append(reason)
    return Expired(len(reasons), tuple(reasons))
