"""Listeners that change with the configuration, while hosts are looked up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from pykafka_broker.apis.api import BROKER_LISTENER
from pykafka_broker.broker.served_listeners import ServedListeners
from pykafka_broker.config.sources import load_config
from pykafka_broker.network.endpoint import ListenerLimits
from pykafka_broker.testing.clock import settle


async def test_a_listener_whose_host_is_looked_up_when_the_broker_stops_is_not_opened() -> None:
    """It was opened afterwards, and accepted connections until the process ended."""
    opened: list[str] = []
    looking_up: list[asyncio.Future[Any]] = []

    def add(endpoint: Any, *_: object) -> Any:
        opened.append(endpoint.name)
        return SimpleNamespace(start=lambda: None)

    def run_blocking(_: Callable[[], object]) -> asyncio.Future[Any]:
        looking_up.append(asyncio.get_running_loop().create_future())
        return looking_up[-1]

    listeners: Any = SimpleNamespace(
        listeners={}, limits=ListenerLimits(), reconfigure=lambda *_: None, add=add
    )
    kinds: Any = {BROKER_LISTENER: lambda endpoint: None}
    threads: Any = SimpleNamespace(run_blocking=run_blocking)
    config = load_config(data_dir="/data", listen="127.0.0.1:9092")
    served = ServedListeners(listeners, kinds, lambda: config, threads)

    for stops in (False, True):
        served.reconfigure(config, config)
        await settle()
        assert len(looking_up) == 1 + stops
        if stops:
            served.stop()
        else:
            looking_up[-1].set_result([])
        await settle()
        assert not served.is_changing
        assert opened == ["PLAINTEXT"]
