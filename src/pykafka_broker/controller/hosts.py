"""Whether a host is known, without blocking the event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import ip_address


async def unknown_hosts(hosts: Iterable[str]) -> frozenset[str]:
    """The hosts that are neither addresses nor names that resolve."""
    return frozenset([host for host in hosts if not await is_known_host(host)])


async def is_known_host(host: str) -> bool:
    """Whether `host` is an address or a name that resolves, as for Java's `InetAddress.getByName`."""
    name = host.removeprefix("[").removesuffix("]")
    try:
        ip_address(name)
    except ValueError:
        try:
            await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return False
    return True
