"""From one segment to the next: the new one begins where the log ends, or it is removed."""

from __future__ import annotations

import pytest

from pykafka_broker.log.partition.rolling import is_due
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import NOW, append, new_log, reopened, values


@pytest.mark.parametrize(
    ("size", "last_offset", "max_timestamp", "due"),
    [
        (900, 1, NOW, False),
        (1001, 1, NOW, True),
        (100, (1 << 31) - 1, NOW, False),
        (100, 1 << 31, NOW, True),
        (100, 1, NOW + 60_000, False),
        (100, 1, NOW + 60_001, True),
    ],
)
def test_a_batch_begins_a_segment_by_size_by_offset_and_by_the_time_of_its_records(
    size: int, last_offset: int, max_timestamp: int, due: bool
) -> None:
    log = new_log(MemoryFiles(), segment_bytes=1000, segment_ms=60_000)
    append(log, b"a")

    assert is_due(log.state, size, last_offset, max_timestamp, now_ms=NOW + 1_000_000) is due


@pytest.mark.parametrize("clean", [True, False])
def test_a_segment_that_was_made_for_another_end_of_the_log_is_removed(clean: bool) -> None:
    """Before, its files stayed, and the next start took it for the end of the log: what had been appended
    past its offset was lost.
    """
    files = MemoryFiles()
    log = new_log(files)
    append(log, b"a")
    append(log, b"not the leader's")
    made = log.roller.make_names(log.state.log_end_offset)
    assert made is not None
    log.trimmer.truncate_to(1)

    log.roller.adopt(made)

    for value in (b"b", b"c", b"d"):
        append(log, value)
    assert len(log.state.segments) == 1
    assert log.flusher.close_in_order() and log.state.recovery_point == 4
    again = reopened(files.killed(), clean=clean, recovery_point=4)
    assert values(again) == [b"a", b"b", b"c", b"d"]
