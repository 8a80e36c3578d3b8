"""Hosts with connection limits of their own: names are resolved, and no connection waits for the resolver."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pykafka_broker.config.keys import ConfigError
from pykafka_broker.network.host_names import limits_by_address
from pykafka_broker.testing.home import Home, until


@pytest.mark.parametrize(
    ("host", "address"),
    [("localhost", "127.0.0.1"), ("[0:0::1]", "::1"), ("::ffff:127.0.0.2", "127.0.0.2")],
)
async def test_hosts_with_limits_of_their_own_are_looked_up(host: str, address: str) -> None:
    assert await limits_by_address({host: 5}) == {address: 5}


@pytest.mark.parametrize("host", ["no.such.invalid", "a..b"])
async def test_an_unknown_host_with_a_limit_of_its_own_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match=f"Unknown host in max.connections.per.ip.overrides: {host}"):
        await limits_by_address({host: 5})


class SlowResolver:
    """The resolver of an event loop that answers for `slow.example` only when it is told to."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.asked = asyncio.Event()
        self.answer = asyncio.Event()
        self._ask = loop.getaddrinfo

    async def getaddrinfo(self, host: str, *arguments: Any, **options: Any) -> Any:
        if host != "slow.example":
            return await self._ask(host, *arguments, **options)
        self.asked.set()
        await self.answer.wait()
        return await self._ask("127.0.0.7", *arguments, **options)


async def test_a_slow_resolver_holds_up_neither_clients_nor_later_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()
    resolver = SlowResolver(loop)
    monkeypatch.setattr(loop, "getaddrinfo", resolver.getaddrinfo)
    home = Home()
    async with home.running() as user:

        def limits() -> dict[str, int]:
            return dict(home.broker.node.listeners.limits.max_connections_per_ip_overrides)

        await user.alter_broker(max_connections_per_ip_overrides="slow.example:5")
        await resolver.asked.wait()
        await user.metadata()
        await user.alter_broker(max_connections_per_ip_overrides="127.0.0.8:6")
        await until(lambda: limits() == {"127.0.0.8": 6})

        resolver.answer.set()
        await until(lambda: not home.broker.node.served_listeners.is_changing)
        assert limits() == {"127.0.0.8": 6}, "the later change holds, whichever was looked up first"
