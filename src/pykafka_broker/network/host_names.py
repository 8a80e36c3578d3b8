"""Host names in the configuration, looked up without holding up the event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping

from pykafka_broker.config.keys import ConfigError


async def limits_by_address(limits: Mapping[str, int]) -> dict[str, int]:
    """`max.connections.per.ip.overrides` by address instead of by host as written.

    Raises:
        ConfigError: there is no such host.
    """
    return {await _address_of(host): limit for host, limit in limits.items()}


async def _address_of(host: str) -> str:
    """The first address of a host, IPv4 ones before others, as of Java's `InetAddress.getByName`."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "no host name"
        raise ConfigError(f"Unknown host in max.connections.per.ip.overrides: {host}: {reason}") from None
    addresses = [str(address[0]) for _, _, _, _, address in found]
    address = next((a for a in addresses if "." in a), addresses[0])
    # An IPv4 address stays one when it is written as of IPv6.
    return address.removeprefix("::ffff:") if "." in address else address
