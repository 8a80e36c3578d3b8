"""From one segment to the next: the new one begins where the log ends, or the log does not go on in it."""

from __future__ import annotations

import pytest

from pykafka_broker.log.partition.rolling import is_due
from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import NOW, append, new_log, values


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


def test_a_segment_that_was_made_for_another_end_of_the_log_is_not_adopted() -> None:
    log = new_log(MemoryFiles())
    append(log, b"a")
    made = log.roller.make_names(log.state.log_end_offset)
    assert made is not None
    append(log, b"b")

    with pytest.raises(IllegalState, match="it cannot go on in segment 1"):
        log.roller.adopt(made)

    assert len(log.state.segments) == 1
    assert values(log) == [b"a", b"b"]
