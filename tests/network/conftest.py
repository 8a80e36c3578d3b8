"""Tests of the network shell run on the event loop that runs the broker: uvloop, where there is one. The last
lines of their output say how many hostile peers the broker has survived.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping

import pytest

from pykafka_broker.system.event_loop import loop_factory


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"the broker's": loop_factory()}


#: Called by a test with a number of hostile peers, and what they do.
Survived = Callable[[int, str], None]
_SURVIVED = "survived"


@pytest.fixture
def survived(record_property: Callable[[str, object], None]) -> Survived:
    return lambda count, kind: record_property(_SURVIVED, (count, kind))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = Counter[str]()
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == _SURVIVED:
                count, kind = value
                counts[kind] += count
    if counts:
        parts = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        terminalreporter.write_line(f"{parts} survived")
