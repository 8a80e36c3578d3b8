"""Addresses as users write them: HOST:PORT."""

from __future__ import annotations

from pykafka_broker.system.named_tuple import NamedTuple

#: The host of an entry that names a port only.
DEFAULT_HOST = "127.0.0.1"


class Address(NamedTuple):
    """The address of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """The address in `host:port`; an IPv6 address may be in brackets.

    Raises:
        ValueError: it is not HOST:PORT.
    """
    if "://" in text:
        raise ValueError(f"{text.strip()!r} is a URL: brokers are named HOST:PORT, as {DEFAULT_HOST}:9092")
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isdecimal() or len(port) > 5 or int(port) > 65_535:
        raise ValueError(f"{text.strip()!r} is not HOST:PORT")
    return Address(host.strip("[]") or DEFAULT_HOST, int(port))


def parse_addresses(text: str) -> list[Address]:
    """The addresses in a `host:port,host:port` list.

    Raises:
        ValueError: one of them is not HOST:PORT.
    """
    return [parse_address(entry) for entry in text.split(",")]
