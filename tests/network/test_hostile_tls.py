"""A live broker whose clients have to show certificates, among peers that spoil their handshakes: they stay
out, and others are served.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import ssl
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from pykafka_broker.network import transports
from pykafka_broker.network.connection import Connection
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.user import User
from pykafka_broker.tls.authority import Authority, Issued
from tests.network.conftest import Survived
from tests.network.test_hostile_peers import LARGEST_GROWTH_BYTES, resident_bytes
from tests.support.hostile_tls import API_VERSIONS, Kit, an_attack, slow_hello

CASES = int(os.environ.get("FUZZ_CASES", "400"))
#: So many peers at a time.
AT_ONCE = 40
#: Beyond a whole first flight of the server with its certificate, nothing is said to a stranger.
MOST_ANSWERED_BYTES = 4_096


def pem(issued: Issued) -> bytes:
    return issued.key_pem + issued.certificate_pem


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    now = datetime.now(UTC)
    authority = Authority.new(now, 1)
    (tmp_path / "ca.pem").write_bytes(authority.own.certificate_pem)
    (tmp_path / "server.pem").write_bytes(pem(authority.for_server(["localhost"])))
    (tmp_path / "alice.pem").write_bytes(pem(authority.for_client("alice")))
    (tmp_path / "strange.pem").write_bytes(pem(Authority.new(now, 1).for_client("alice")))
    past = Authority(authority.own, now - timedelta(days=9), 1)
    (tmp_path / "expired.pem").write_bytes(pem(past.for_client("alice")))
    return tmp_path


def of_client(folder: Path, key: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if key:
        context.load_cert_chain(str(folder / key))
    return context


def settings(folder: Path) -> dict[str, str]:
    return {
        "listeners": "CLIENTS://127.0.0.1:0,INSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "ssl.client.auth": "required",
    }


def port_of(home: Home, listener: str) -> int:
    return home.broker.node.listeners.listeners[listener].port


async def attacked(home: Home, kit: Kit, number: int, left_open: list[asyncio.StreamWriter]) -> str:
    """One attack from its first byte to its end; it is answered with little, and is no client. Some say no
    end, and stay. Its kind.
    """
    attack = an_attack(Random(number), kit)
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(home, "CLIENTS"))
    try:
        with contextlib.suppress(ConnectionError):
            await attack.says(reader, writer)
            await writer.drain()
            if not number % 8:
                left_open.append(writer)
                return attack.kind
            if writer.can_write_eof():
                writer.write_eof()
            assert len(await reader.read()) < MOST_ANSWERED_BYTES
    except BaseException as error:
        error.add_note(f"attack {number}")
        raise
    if writer not in left_open:
        writer.transport.abort()
    return attack.kind


class Left(NamedTuple):
    """What the peers of a broker leave there."""

    connections: int
    files: int

    @classmethod
    def of(cls, home: Home) -> Left:
        gc.collect()
        connections = len(home.broker.node.listeners.shared.connections)
        return cls(connections, len(os.listdir("/dev/fd")))


async def test_hostile_handshakes_get_nobody_in_and_leave_nothing(
    folder: Path, caplog: pytest.LogCaptureFixture, survived: Survived
) -> None:
    home = Home(settings(folder), listen=None)
    refused = tuple(of_client(folder, name) for name in ("strange.pem", "expired.pem"))
    kit = Kit(of_client(folder), refused)
    with caplog.at_level(logging.WARNING):
        async with home.new_broker() as broker:
            alice = await asyncio.open_connection(
                "localhost", port_of(home, "CLIENTS"), ssl=of_client(folder, "alice.pem")
            )
            async with await User.connect(f"127.0.0.1:{port_of(home, 'INSIDE')}") as user:
                await user.create_topic("orders")
                await until(lambda: len(asyncio.all_tasks()) == 1)
                before, before_bytes = Left.of(home), 0
                kinds = Counter[str]()
                for first in range(0, CASES, AT_ONCE):
                    left_open: list[asyncio.StreamWriter] = []
                    numbers = range(first, first + AT_ONCE)
                    wave = asyncio.gather(*(attacked(home, kit, number, left_open) for number in numbers))
                    while not wave.done():
                        assert await answered(alice), "a client with a certificate is served all the time"
                    kinds.update(await wave)
                    await user.produce("orders", b"%d" % first)
                    for writer in left_open:
                        writer.transport.abort()
                    if first <= CASES / 10:
                        # What is made once is there, and as much memory as so many need at a time.
                        before_bytes = resident_bytes()
                await until(lambda: len(asyncio.all_tasks()) == 1 and Left.of(home) == before)
                assert len(kinds) == 11
                assert resident_bytes() - before_bytes < LARGEST_GROWTH_BYTES
                assert await user.values("orders") == [b"%d" % first for first in range(0, CASES, AT_ONCE)]
            connections = broker.node.listeners.shared.connections
            inside = [one for one in connections if one.listener_name == "CLIENTS"]
            assert [one.principal for one in inside if isinstance(one, Connection)] == ["User:CN=alice"]
            alice[1].close()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    survived(kinds.total(), "hostile TLS handshakes")


async def answered(client: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> bool:
    """Whether a request of this client is answered."""
    reader, writer = client
    writer.write(API_VERSIONS)
    answer = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    return answer[:4] == API_VERSIONS[8:12]


async def test_a_peer_that_never_finishes_its_handshake_is_closed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transports, "HANDSHAKE_TIMEOUT_S", 0.05)
    home = Home(settings(folder), listen=None)
    async with home.new_broker():
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(home, "CLIENTS"))
        assert await reader.read() == b""
        writer.close()


async def test_a_peer_that_sends_its_handshake_byte_by_byte_is_closed_in_the_midst_of_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time limit is that of the whole handshake: it does not begin anew with each byte."""
    monkeypatch.setattr(transports, "HANDSHAKE_TIMEOUT_S", 0.005)
    home = Home(settings(folder), listen=None)
    async with home.new_broker():
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(home, "CLIENTS"))
        for byte in slow_hello():
            if reader.at_eof() or writer.is_closing():
                break
            writer.write(byte)
            await asyncio.sleep(0)
        else:
            pytest.fail("the whole hello was taken")
        with contextlib.suppress(ConnectionError):  # bytes that came after the close
            assert await reader.read() == b""
        writer.close()


async def test_a_broker_that_stops_breaks_off_handshakes(folder: Path) -> None:
    """A peer may take ten seconds for one; the stop does not wait for that."""
    home = Home(settings(folder), listen=None)
    async with home.new_broker() as broker:
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(home, "CLIENTS"))
        acceptor = broker.node.listeners.acceptor
        await until(lambda: acceptor.opening == 1)
    assert acceptor.opening == 0
    assert await reader.read() == b""
    writer.close()
