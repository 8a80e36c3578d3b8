"""What a hostile peer says to a listener with TLS: a handshake as it should be, spoilt in many ways.

attack = an_attack(Random(7), kit)        another one for each number
await attack.says(reader, writer)            all that this peer says; the end is not said
attack.kind                               by which name it is counted
slow_hello()                              a hello of 16 KiB, byte by byte
"""

from __future__ import annotations

import _ssl
import asyncio
import contextlib
import ctypes
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from random import Random
from typing import NamedTuple

#: ApiVersions v0 of a client without a name.
API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 ffff")
FOREIGN = (
    API_VERSIONS,
    b"GET / HTTP/1.1\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.2\r\n",
    bytes.fromhex("802e0100020015000000100100800700c0030080060040020080040080"),  # SSL 2
    bytes(64),
    b"\xff" * 64,
)
#: Kinds of records: change of cipher, alert, handshake, application data, heartbeat; and none.
KINDS = (20, 21, 22, 23, 24, 0, 99, 255)
VERSIONS = (0x0300, 0x0301, 0x0302, 0x0303, 0x0304, 0x0000, 0xFFFF)
MOST_RECORD_BYTES = 16_384
#: The answer to one flight of a handshake comes within this time, or does not come.
ANSWER_WAIT_S = 0.05

Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Attack(NamedTuple):
    """What one peer says."""

    kind: str
    says: Conversation


@dataclass(frozen=True)
class Kit:
    """Contexts of clients that a listener refuses by their certificate, and one without any."""

    without: ssl.SSLContext
    refused: tuple[ssl.SSLContext, ...]


def an_attack(chance: Random, kit: Kit) -> Attack:
    """One of the attacks."""
    kind = chance.choice(list(_ATTACKS))
    return Attack(kind, partial(_ATTACKS[kind], chance, kit))


def record(kind: int, payload: bytes, version: int = 0x0301, length: int | None = None) -> bytes:
    """A record of TLS, whose header may lie about its length."""
    return struct.pack(">BHH", kind, version, len(payload) if length is None else length) + payload


def slow_hello() -> Iterator[bytes]:
    """Single bytes of the longest hello that fits into one record, which is not over before its last byte."""
    body = bytes(MOST_RECORD_BYTES - 4)
    for byte in record(22, b"\x01" + len(body).to_bytes(3, "big") + body):
        yield bytes([byte])


class TlsClient:
    """A client's side of a handshake in memory: what it sends goes through the hands of the attacker."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        self.is_done = False

    def flight(self, answered: bytes = b"") -> bytes:
        """The next bytes to send; empty if the handshake is over or has failed."""
        self._incoming.write(answered)
        try:
            self._tls.do_handshake()
            self.is_done = True
        except ssl.SSLWantReadError:
            pass
        return self._outgoing.read()

    def sent(self, data: bytes) -> bytes:
        """`data` as it goes over the wire."""
        self._tls.write(data)
        return self._outgoing.read()

    def received(self, data: bytes) -> bytes:
        """What the server has said with the bytes that came over the wire."""
        self._incoming.write(data)
        said = b""
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            while piece := self._tls.read(1 << 16):
                said += piece
        return said

    def renegotiating(self) -> bytes:
        """Another hello inside of the connection, up to TLS 1.2. Python has no call for it: OpenSSL's is
        called with the `SSL` that the object holds, behind the reference to its socket.
        """
        pointer = ctypes.c_void_p.from_address(
            id(self._tls._sslobj) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p)  # type: ignore[attr-defined]
        )
        assert _openssl().SSL_renegotiate(pointer) == 1
        return self.flight()

    async def shake_hands(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Make the whole handshake over a connection."""
        writer.write(self.flight())
        while not self.is_done:
            writer.write(self.flight(await reader.read(1 << 16)))


@cache
def _openssl() -> ctypes.CDLL:
    library = ctypes.CDLL(_ssl.__file__)
    library.SSL_renegotiate.argtypes = [ctypes.c_void_p]
    return library


def _hello(kit: Kit) -> bytes:
    return TlsClient(kit.without).flight()


async def answer_of(reader: asyncio.StreamReader) -> bytes:
    """What comes soon, if anything does."""
    try:
        async with asyncio.timeout(ANSWER_WAIT_S):
            return await reader.read(1 << 16)
    except TimeoutError:
        return b""


async def _foreign(
    chance: Random, kit: Kit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    writer.write(chance.choice(FOREIGN))


async def _cut_hello(
    chance: Random, kit: Kit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    hello = _hello(kit)
    writer.write(hello[: chance.randrange(len(hello))])


async def _damaged_hello(
    chance: Random, kit: Kit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    hello = bytearray(_hello(kit))
    for _ in range(chance.choice([1, 1, 2, 8])):
        hello[chance.randrange(len(hello))] = chance.randrange(256)
    writer.write(hello)


async def _grown_hello(
    chance: Random, kit: Kit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """A message of the handshake that announces up to 16 MB, and a part of it."""
    announced = chance.choice([1 << 14, 1 << 17, (1 << 24) - 1])
    message = b"\x01" + announced.to_bytes(3, "big") + chance.randbytes(100)
    sent = record(22, message)
    for _ in range(chance.choice([1, 4, 16])):
        sent += record(22, bytes(MOST_RECORD_BYTES))
    writer.write(sent)


async def _odd_records(
    chance: Random, kit: Kit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Records of any kind and version, whose lengths may lie."""
    for _ in range(chance.randint(1, 8)):
        payload = chance.randbytes(chance.choice([0, 1, 2, 40, 500]))
        length = chance.choice([None, None, 0, 0xFFFF, MOST_RECORD_BYTES + 257])
        writer.write(record(chance.choice(KINDS), payload, chance.choice(VERSIONS), length))


async def _flood(
    chance: Random, kit: Kit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Warnings, changes of cipher or empty records without end, before or after a hello."""
    if chance.randrange(2):
        writer.write(_hello(kit))
    one = chance.choice([record(21, b"\x01\x5a"), record(20, b"\x01"), record(22, b""), record(23, b"")])
    writer.write(one * chance.choice([10, 1_000, 5_000]))


async def _in_pieces(
    chance: Random, kit: Kit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """A hello in records of a few bytes each, cut somewhere."""
    message = _hello(kit)[5:]
    size = chance.choice([1, 2, 7])
    pieces = [record(22, message[at : at + size]) for at in range(0, len(message), size)]
    for piece in pieces[: chance.randint(1, len(pieces))]:
        writer.write(piece)
        if not chance.randrange(50):
            await asyncio.sleep(0)


async def _old_versions(
    chance: Random, kit: Kit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """A hello that offers nothing newer than SSL 3, TLS 1.0 or 1.1, and suites that nobody should use."""
    version = chance.choice([0x0300, 0x0301, 0x0302])
    suites = chance.choice(
        [b"\x00\x04\x00\x05", b"\x00\x2f", b"\x00\x01\x00\x02\x00\x3b", b"\x56\x00\x00\x2f"]
    )
    body = struct.pack(">H", version) + chance.randbytes(32) + b"\0"
    body += struct.pack(">H", len(suites)) + suites + b"\x02\x01\x00"
    writer.write(record(22, b"\x01" + len(body).to_bytes(3, "big") + body, version))
    assert (await answer_of(reader))[:1] != b"\x16", "a handshake in a version that is not served goes on"


async def _spoilt_later(
    chance: Random, kit: Kit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """An honest hello, and damage, silence or another hello after the server's answer."""
    client = TlsClient(kit.without)
    writer.write(client.flight())
    answered = await answer_of(reader)
    try:
        flight = bytearray(client.flight(answered))
    except ssl.SSLError:
        return
    how = chance.choice(["damage", "cut", "repeat", "hello", "silence"])
    if how == "damage" and flight:
        flight[chance.randrange(len(flight))] ^= 1 << chance.randrange(8)
    elif how == "cut":
        del flight[chance.randrange(len(flight) + 1) :]
    elif how == "repeat":
        flight *= 2
    elif how == "hello":
        flight = bytearray(_hello(kit))
    else:
        return
    writer.write(flight)


async def _uninvited(
    chance: Random, kit: Kit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """A whole handshake with no certificate or one that is not accepted; a request is sent all the same."""
    client = TlsClient(chance.choice([kit.without, *kit.refused]))
    sent = client.flight()
    for _ in range(3):
        writer.write(sent)
        if client.is_done:
            break
        answered = await answer_of(reader)
        try:
            sent = client.flight(answered)
        except ssl.SSLError:
            return
    if client.is_done:
        writer.write(client.sent(API_VERSIONS * chance.choice([1, 100])))


async def _silent(
    chance: Random, kit: Kit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Nothing at all."""


_ATTACKS = {
    "foreign": _foreign,
    "cut hello": _cut_hello,
    "damaged hello": _damaged_hello,
    "grown hello": _grown_hello,
    "odd records": _odd_records,
    "flood": _flood,
    "in pieces": _in_pieces,
    "old versions": _old_versions,
    "spoilt later": _spoilt_later,
    "uninvited": _uninvited,
    "silent": _silent,
}
