"""Host names in the configuration, looked up without blocking the event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping

from pykafka_broker.config.keys import ConfigError

#: The errors of `address_of`.
UNKNOWN_HOST = (OSError, UnicodeError)


async def limits_by_address(limits: Mapping[str, int]) -> dict[str, int]:
    """`max.connections.per.ip.overrides` by address instead of by host name.

    Raises:
        ConfigError: there is no such host.
    """
    by_address = {}
    for host, limit in limits.items():
        try:
            by_address[await address_of(host)] = limit
        except UNKNOWN_HOST as error:
            reason = getattr(error, "strerror", None) or "no host name"
            text = f"Unknown host in max.connections.per.ip.overrides: {host}: {reason}"
            raise ConfigError(text) from None
    return by_address


async def address_of(host: str) -> str:
    """The first address of a host, IPv4 preferred, as by Java's `InetAddress.getByName`.

    Raises:
        OSError, UnicodeError: there is no such host.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    addresses = [str(address[0]) for _, _, _, _, address in found]
    address = next((a for a in addresses if "." in a), addresses[0])
    # An IPv4-mapped IPv6 address counts as IPv4.
    return address.removeprefix("::ffff:") if "." in address else address
