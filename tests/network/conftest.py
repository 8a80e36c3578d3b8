"""Tests of the network shell run on the event loop that runs the broker: uvloop, where there is one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from pykafka_broker.system.event_loop import loop_factory


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"the broker's": loop_factory()}
