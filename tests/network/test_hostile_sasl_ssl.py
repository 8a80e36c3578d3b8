"""A live broker whose clients log in over TLS, among peers who come to terms with its TLS and then spoil
their login, or ask for one handshake more after the other.

Renegotiation ended with TLS 1.2: one small request had a server work for a new handshake, and what was said
before it could be taken for what was said after it (CVE-2009-3555, CVE-2011-1473). Here it is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import ssl
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from pykafka_broker.network.connection import Connection
from pykafka_broker.network.identity import ANONYMOUS
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.user import User
from pykafka_broker.tls.authority import Authority
from tests.network import test_hostile_handshakes as logins
from tests.network.conftest import Survived
from tests.network.test_hostile_peers import LARGEST_GROWTH_BYTES, resident_bytes
from tests.network.test_hostile_tls import Left
from tests.support.hostile_logins import conversation
from tests.support.hostile_tls import API_VERSIONS, TlsClient, answer_of
from tests.support.hostile_tokens import Forger
from tests.support.sasl import authenticate

#: A login waits for answers, with a handshake before it.
CASES = int(os.environ.get("FUZZ_CASES", "2000")) // 10
AT_ONCE = 40
#: So often one peer asks for another handshake.
MOST_RENEGOTIATIONS = 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    authority = Authority.new(datetime.now(UTC), 1)
    server = authority.for_server(["localhost"])
    (tmp_path / "ca.pem").write_bytes(authority.own.certificate_pem)
    (tmp_path / "server.pem").write_bytes(server.key_pem + server.certificate_pem)
    return tmp_path


def settings(folder: Path) -> dict[str, str]:
    return logins.settings(folder) | {
        "listener.security.protocol.map": (
            "CLIENTS:SASL_SSL,OPEN:SASL_SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "connection.failed.authentication.delay.ms": "0",
    }


def of_client(folder: Path, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.maximum_version = newest
    context.options &= ~ssl.OP_NO_RENEGOTIATION
    return context


def port_of(home: Home) -> int:
    return home.broker.node.listeners.listeners["CLIENTS"].port


async def logs_in(
    chance: Random, client: TlsClient, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """A login as no one should make it, of somebody without an account or with one that may do nothing."""
    forger = chance.choice(
        [
            Forger("alice", "guessed", "guessed", "stranger", chance),
            Forger("mallory", "mallory-secret", "password of mallory", "issuer", chance),
        ]
    )
    said = b""
    for step in conversation(chance, forger):
        writer.write(client.sent(step(said)))
        said = client.received(await answer_of(reader))


async def renegotiates(
    chance: Random, client: TlsClient, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """One hello more after the other; the first refusal says all that is said to any of them."""
    if chance.randrange(2):
        writer.write(client.sent(API_VERSIONS))
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
            answer += client.received(await reader.readexactly(1) + await answer_of(reader))
    writer.write(client.renegotiating())
    with pytest.raises(ssl.SSLError, match=r"(?i)no.renegotiation"):
        while answered := await reader.read(1 << 16):
            client.flight(answered)
    hello = TlsClient(of_client_without_trust()).flight()
    for _ in range(chance.randrange(MOST_RENEGOTIATIONS)):
        writer.write(hello)


def of_client_without_trust() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def attacked(home: Home, folder: Path, number: int) -> str:
    """One peer from its first byte to its last; how it attacks."""
    chance = Random(number)
    attack = chance.choice([logs_in, logs_in, renegotiates])
    is_old = attack is renegotiates or not chance.randrange(3)
    version = ssl.TLSVersion.TLSv1_2 if is_old else ssl.TLSVersion.TLSv1_3
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(home))
    client = TlsClient(of_client(folder, version))
    try:
        await client.shake_hands(reader, writer)
        # What comes behind the end of TLS is an error of this side alone.
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await attack(chance, client, reader, writer)
    except BaseException as error:
        error.add_note(f"attack {number}")
        raise
    finally:
        check(home)
        writer.transport.abort()
    return attack.__name__


def check(home: Home) -> None:
    """Who is inside is one who may be: nobody, mallory, or alice, who is healthy and one."""
    inside = Counter(
        one.principal
        for one in home.broker.node.listeners.shared.connections
        if isinstance(one, Connection) and one.listener_name == "CLIENTS"
    )
    assert inside.pop("User:alice") == 1
    assert all(name == ANONYMOUS or name.startswith("User:mallory") for name in inside), inside


async def test_hostile_peers_inside_of_tls_get_nobody_in_and_leave_nothing(
    folder: Path, caplog: pytest.LogCaptureFixture, survived: Survived
) -> None:
    home = Home(settings(folder), listen=None)
    with caplog.at_level(logging.WARNING):
        async with home.new_broker():
            alice = await User.connect(f"localhost:{port_of(home)}", tls=of_client(folder))
            async with alice:
                assert (await authenticate(alice)).error_code == 0
                await alice.create_topic("orders")
                before, before_bytes = Left.of(home), 0
                kinds = Counter[str]()
                for first in range(0, CASES, AT_ONCE):
                    numbers = range(first, first + AT_ONCE)
                    wave = asyncio.gather(*(attacked(home, folder, number) for number in numbers))
                    while not wave.done():
                        assert list(await alice.topics()) == ["orders"]
                    kinds.update(await wave)
                    await alice.produce("orders", b"%d" % first)
                    if first <= CASES / 10:
                        # What is made once is there, and as much memory as so many need at a time.
                        before_bytes = resident_bytes()
                await until(lambda: Left.of(home) == before)
                assert min(kinds["logs_in"], kinds["renegotiates"]) > CASES / 5
                assert resident_bytes() - before_bytes < LARGEST_GROWTH_BYTES
                assert await alice.values("orders") == [b"%d" % first for first in range(0, CASES, AT_ONCE)]
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    survived(kinds["logs_in"], "hostile logins over TLS")
    survived(kinds["renegotiates"], "renegotiating peers")
