"""Lines a peer can cause as often as it likes."""

from __future__ import annotations

import logging
import tracemalloc

import pytest

from pykafka_broker.system.repeated_lines import INTERVAL_MS, MAX_SUBJECTS, MOST_LINES, RepeatedLines
from pykafka_broker.testing.clock import VirtualClock

logger = logging.getLogger("test.repeated")


def test_the_first_line_is_written_at_once_and_the_rest_counted(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()
    lines = RepeatedLines(logger, clock.monotonic_ms)
    for _ in range(5):
        lines.log(logging.WARNING, "garbage", "10.0.0.1", "bad bytes")
    clock.advance(INTERVAL_MS)
    lines.log(logging.WARNING, "garbage", "10.0.0.1", "bad bytes")
    assert caplog.messages == ["bad bytes", "bad bytes (4 more of these since the last such line)"]


def test_a_message_is_made_only_to_be_written(caplog: pytest.LogCaptureFixture) -> None:
    lines, made = RepeatedLines(logger, VirtualClock().monotonic_ms), iter(["one", "two"])
    for _ in range(5):
        lines.log(logging.WARNING, "garbage", "10.0.0.1", lambda: next(made))
    assert caplog.messages == ["one"]
    assert next(made) == "two"


def test_a_clock_that_is_set_back_silences_nothing_for_longer(caplog: pytest.LogCaptureFixture) -> None:
    times = iter([INTERVAL_MS, INTERVAL_MS + 1, 0, 1])
    lines = RepeatedLines(logger, lambda: next(times))
    for _ in range(4):
        lines.log(logging.WARNING, "garbage", "10.0.0.1", "bad bytes")
    assert caplog.messages == ["bad bytes", "bad bytes (1 more of these since the last such line)"]


def test_kinds_and_peers_do_not_silence_each_other(caplog: pytest.LogCaptureFixture) -> None:
    lines = RepeatedLines(logger, VirtualClock().monotonic_ms)
    lines.log(logging.WARNING, "garbage", "10.0.0.1", "one")
    lines.log(logging.WARNING, "slow", "10.0.0.1", "two")
    lines.log(logging.WARNING, "garbage", "10.0.0.2", "three")
    assert caplog.messages == ["one", "two", "three"]


def test_no_more_peers_are_remembered_than_the_limit(caplog: pytest.LogCaptureFixture) -> None:
    lines = RepeatedLines(logger, VirtualClock().monotonic_ms, most_lines=MAX_SUBJECTS + 2)
    for number in range(MAX_SUBJECTS + 1):
        lines.log(logging.WARNING, "garbage", str(number), "line")
    lines.log(logging.WARNING, "garbage", str(MAX_SUBJECTS), "left out")
    lines.log(logging.WARNING, "garbage", "0", "forgotten, so written again")
    assert caplog.messages[-1] == "forgotten, so written again"
    assert "left out" not in caplog.messages


def test_subjects_that_peers_make_up_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()
    lines = RepeatedLines(logger, clock.monotonic_ms, most_lines=3, left_out="%d more names")
    for number in range(5):
        lines.log(logging.WARNING, "name", str(number), f"name {number}")
        lines.log(logging.WARNING, "name", "0", "takes no room")
    lines.log(logging.ERROR, "failure", "ours", "another kind")
    clock.advance(INTERVAL_MS)
    lines.log(logging.WARNING, "name", "9", "name 9")
    assert caplog.messages == ["name 0", "name 1", "name 2", "another kind", "2 more names", "name 9"]


def test_without_other_words_a_kind_has_a_hundred_lines(caplog: pytest.LogCaptureFixture) -> None:
    lines = RepeatedLines(logger, VirtualClock().monotonic_ms)
    written = [lines.log(logging.WARNING, "slow", str(number), "line") for number in range(MOST_LINES + 50)]
    assert written == [True] * MOST_LINES + [False] * 50
    assert len(caplog.messages) == MOST_LINES == 100


def test_names_that_peers_make_long_are_not_kept_whole() -> None:
    lines = RepeatedLines(logger, VirtualClock().monotonic_ms)
    tracemalloc.start()
    try:
        for number in range(20):
            lines.log(logging.DEBUG, "login", f"{number} {'x' * 1_000_000}", "refused")
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 100_000
