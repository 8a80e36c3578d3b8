"""Addresses as Java shows them, for groups, ACLs and log lines; and which are those of this machine."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address


@lru_cache(maxsize=1_000)
def java_address(address: str) -> str:
    """A socket's address as `InetAddress.getHostAddress` shows it: IPv6 with all eight groups."""
    if ":" not in address:
        return address
    written, percent, zone = address.partition("%")
    known = ip_address(written)
    assert isinstance(known, IPv6Address)
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    groups = (int(group, 16) for group in known.exploded.split(":"))
    return ":".join(f"{group:x}" for group in groups) + percent + zone


def is_loopback(host: str) -> bool:
    """Whether each machine takes this host for itself."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
