"""The findings of a partition's check, and the remedy for each.

| found | offered |
|---|---|
| damage before good batches or another segment | fenced (`.damaged`): reads there get CORRUPT_MESSAGE |
| the last segment ends in half a batch | cut off, as a start after a crash would |
| an index that does not fit its log | removed; the broker rebuilds it when it needs it |
| an unreadable snapshot, window or leader epochs | removed; rebuilt from the log at the next start |
| partition.metadata missing or unreadable | nothing: the broker does, when the metadata knows the topic |
| `.cleaned`, `.swap`, `.deleted`, `.tmp` | nothing: the next start finishes or removes them |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum

from pykafka_broker.log.segment.damage import Damage
from pykafka_broker.system.named_tuple import NamedTuple


class Remedy(Enum):
    """The action that `mend` takes for a finding."""

    NONE = "nothing that can be done here"
    START = "the next start of the broker sees to it"
    FENCE = "fence it off: reads of these offsets get CORRUPT_MESSAGE, all others are served"
    CUT = "cut it off"
    REMOVE = "remove the file: it is made anew from the log"
    FENCED = "fenced off already"


class Finding(NamedTuple):
    """Something wrong with a file."""

    path: str
    text: str
    remedy: Remedy
    #: The damaged range, of damage and torn ends only.
    damage: Damage | None = None


class PartitionTotals(NamedTuple):
    """The amount of data that a check has read."""

    segments: int
    bytes: int
    batches: int
    records: int
    #: The log end offset, as it was when the log was read.
    end_offset: int = 0


class CheckResult(NamedTuple):
    """The outcome of one partition."""

    totals: PartitionTotals
    findings: Sequence[Finding]


@contextmanager
def vanishing(is_in_use: bool) -> Iterator[None]:
    """Files that a broker removes together with their segment before they are read are no finding."""
    try:
        yield
    except FileNotFoundError:
        if not is_in_use:
            raise
