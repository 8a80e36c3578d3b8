"""From one segment to the next: the new one begins where the log ends, or the log does not go on in it."""

from __future__ import annotations

import pytest

from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import append, new_log, values


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
