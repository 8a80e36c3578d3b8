"""Addresses of hosts, as sockets take them and as Kafka shows them."""

from __future__ import annotations

import socket
from collections.abc import Sequence

#: Addresses of a host, each with its family.
Addresses = Sequence[tuple[socket.AddressFamily, tuple[str, int]]]


def addresses_of(host: str, port: int) -> Addresses:
    """The addresses to bind for `host`, IPv4 first; for "" one dual-stack address, else an IPv4 one.

    May wait for a resolver.
    """
    if not host:
        if socket.has_dualstack_ipv6():
            return [(socket.AF_INET6, ("::", port))]
        return [(socket.AF_INET, ("0.0.0.0", port))]
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses = {(family, (str(address[0]), port)) for family, _, _, _, address in found}
    return sorted(addresses, key=lambda item: item[0] != socket.AF_INET)


def shown(host: str, port: int) -> str:
    """`host:port`, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def plain_address(host: str) -> str:
    """`host`, with an IPv4-mapped IPv6 address written as IPv4."""
    return host.removeprefix("::ffff:") if "." in host else host
