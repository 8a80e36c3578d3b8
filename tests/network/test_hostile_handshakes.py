"""A live broker among peers that log in as no one should: they stay out, and others are served.

The peers have no socket, so that `make fuzz` can send a hundred thousand of them.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from pykafka_broker.client.core.frames import request_frame
from pykafka_broker.config.oauth_listeners import SIGNED_HANDLER
from pykafka_broker.network.connection import Connection
from pykafka_broker.network.connection_factory import Accepted
from pykafka_broker.network.identity import ANONYMOUS
from pykafka_broker.network.limits import ConnectionLimits
from pykafka_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from pykafka_broker.testing.clock import settle
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.memory_transport import MemoryTransport
from pykafka_broker.testing.user import User
from tests.network.conftest import Survived
from tests.network.test_hostile_peers import LARGEST_GROWTH_BYTES, resident_bytes
from tests.support.hostile_logins import conversation
from tests.support.hostile_tokens import Forger
from tests.support.oauth import AUDIENCE, ISSUER, key_set
from tests.support.sasl import authenticate
from tests.support.scram import SHA_256, SHA_512, altering, put

CASES = int(os.environ.get("FUZZ_CASES", "600"))
#: Peers that log in byte by byte.
SLOW = max(CASES // 100, 40)
#: So many peers at a time, who talk in turns.
AT_ONCE = 100
#: More than so many peers that say nothing are not kept: then time passes until they are closed.
MOST_SILENT = 500
MODULES = "org.apache.kafka.common.security"


def settings(folder: Path) -> dict[str, str]:
    """CLIENTS has every mechanism; OPEN takes tokens without a signature; INSIDE asks for nothing."""
    keys = folder / "keys.json"
    keys.write_bytes(key_set())
    mechanisms = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
    clients, opened = "listener.name.clients", "listener.name.open"
    return {
        "listeners": "CLIENTS://127.0.0.1:0,OPEN://127.0.0.1:0,INSIDE://127.0.0.1:0",
        "listener.security.protocol.map": (
            "CLIENTS:SASL_PLAINTEXT,OPEN:SASL_PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "inter.broker.listener.name": "INSIDE",
        "sasl.enabled.mechanisms": mechanisms,
        f"{clients}.plain.sasl.jaas.config": (
            f"{MODULES}.plain.PlainLoginModule required "
            'user_alice="alice-secret" user_mallory="mallory-secret";'
        ),
        f"{clients}.scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
        f"{clients}.scram-sha-512.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
        f"{clients}.oauthbearer.sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        f"{clients}.oauthbearer.sasl.server.callback.handler.class": SIGNED_HANDLER,
        f"{clients}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        f"{clients}.oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,
        f"{clients}.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
        f"{clients}.scram-sha-256.connections.max.reauth.ms": "5000",
        f"{opened}.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{opened}.oauthbearer.sasl.jaas.config": (
            f"{MODULES}.oauthbearer.OAuthBearerLoginModule required "
            'unsecuredValidatorAllowableClockSkewMs="0";'
        ),
        "auto.create.topics.enable": "false",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # Who gets past the login without being anybody may do everything.
        "super.users": f"User:alice;{ANONYMOUS}",
    }


class HostilePeer:
    """The peer of one conversation; its number says all of it."""

    def __init__(self, home: Home, number: int) -> None:
        chance = Random(number)
        kind = chance.choice(["stranger"] * 4 + ["insider"] * 4 + ["anybody"])
        forger = {
            "stranger": Forger("alice", "guessed", "guessed", "stranger", chance),
            "insider": Forger("mallory", "mallory-secret", "password of mallory", "issuer", chance),
            "anybody": Forger("mallory", "", "", "stranger", chance),
        }[kind]
        self.number = number
        self.kind = kind
        #: Whether it goes in the end, or stays without a word.
        self.goes = chance.randrange(20) > 0
        self._steps = iter(conversation(chance, forger, unsecured=kind == "anybody"))
        self._piece_bytes = chance.choice([1 << 20, 1 << 20, 1 << 20, 3, 1_000])
        self._heard = 0
        listener = home.broker.node.listeners.listeners["OPEN" if kind == "anybody" else "CLIENTS"]
        accepted = Accepted(listener.name, (f"10.0.0.{number % 5}", 1_024 + number % 60_000), lambda: None)
        protocol, _ = listener.service.new_connection(accepted)
        assert isinstance(protocol, Connection)
        self.connection = protocol
        self.transport = MemoryTransport(protocol)

    @property
    def principal(self) -> str:
        return self.connection.principal

    def speaks(self) -> bool:
        """Send the next part, after a look at what the last one has brought; False at the end."""
        said = bytes(self.transport.written[self._heard :])
        self._heard += len(said)
        step = next(self._steps, None)
        if step is None or self.transport.closing:
            return False
        data = step(said)
        pieces = self._piece_bytes if len(data) < 100_000 else 1 << 20
        for at in range(0, len(data), pieces):
            self.transport.offer(data[at : at + pieces])
        return True

    def check(self) -> None:
        """It is nobody that it may not be, and every answer to it is whole."""
        assert self.principal == ANONYMOUS or self.kind != "stranger"
        if self.kind == "insider":
            # Maybe with more behind it, where the issuer has signed that.
            assert self.principal == ANONYMOUS or self.principal.startswith("User:mallory")
        # Who comes without a signature may be whom he likes, and likes to be mallory.
        assert self.principal != "User:alice"
        written, at = self.transport.written, 0
        while at < len(written):
            at += 4 + int.from_bytes(written[at : at + 4], "big")
        assert at == len(written)

    def disconnect(self) -> None:
        if not self.connection.closed:
            self.transport.disconnect()


async def attacked(home: Home, numbers: range) -> list[HostilePeer]:
    """These conversations, their steps in turns; the peers as the last step has left them."""
    peers = [HostilePeer(home, number) for number in numbers]
    talking = peers
    while talking:
        still = []
        for peer in talking:
            try:
                if peer.speaks():
                    still.append(peer)
                peer.check()
            except BaseException as error:
                error.add_note(f"Conversation {peer.number}")
                for each in peers:
                    each.disconnect()
                raise
        talking = still
        await settle(3)
    return peers


async def in_waves(home: Home, user: User, numbers: range) -> Counter[str]:
    """Conversations, so many at once, beside a user who is served; who their peers were in the end."""
    became = Counter[str]()
    silent: list[HostilePeer] = []
    for first in numbers[::AT_ONCE]:
        peers = await attacked(home, range(first, first + AT_ONCE))
        # Those who are refused have waited for it.
        await home.pass_time(100)
        await user.produce("orders", b"%d" % first)
        for peer in peers:
            peer.check()
            became[peer.principal] += 1
            if peer.goes:
                peer.disconnect()
            elif not peer.connection.closed:
                silent.append(peer)
        if len(silent) > MOST_SILENT:
            await all_gone(home, user, silent)
            silent.clear()
    await all_gone(home, user, silent)
    return became


class Left(NamedTuple):
    """What the peers of a broker leave there."""

    connections: int
    handlers: int
    timers: int
    request_bytes: int
    unsent_bytes: int
    files: int

    @classmethod
    async def of(cls, home: Home) -> Left:
        """Once no task is left but the test's: a round of the broker's own may be on its way."""
        await until(lambda: len(asyncio.all_tasks()) == 1)
        gc.collect()
        shared = home.broker.node.listeners.shared
        kept = sum(isinstance(each, Connection) for each in gc.get_objects())
        assert kept == len(shared.connections)
        return cls(
            kept,
            len(shared.handlers),
            home.clock.pending_timers,
            shared.request_memory.used_bytes,
            shared.unsent.used_bytes,
            len(os.listdir("/dev/fd")),
        )


async def test_hostile_logins_get_nobody_in_and_leave_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, survived: Survived
) -> None:
    home = Home(settings(tmp_path), listen=None)
    with caplog.at_level(logging.WARNING):
        async with home.new_broker() as broker, healthy_user(home) as user:
            counters = broker.node.listeners.shared.counters
            # What is made once, for the first of them, is there.
            await in_waves(home, user, range(-AT_ONCE, 0))
            before, before_bytes = await Left.of(home), resident_bytes()
            closed_before = counters.connections_closed_for_errors
            became = await in_waves(home, user, range(CASES))

            assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
            assert counters.handler_failures == 0
            assert await Left.of(home) == before
            assert resident_bytes() - before_bytes < LARGEST_GROWTH_BYTES
            assert await user.values("orders") == [b"%d" % first for first in range(-AT_ONCE, CASES, AT_ONCE)]
            assert list(await user.topics()) == ["orders"]
            assert {name for name, _ in broker.node.image.scram_credentials} == {"alice", "mallory"}
            assert became["User:mallory"] > CASES / 20
            assert counters.connections_closed_for_errors - closed_before > CASES / 4
            # A line for each kind, address and ten seconds, not for each of them.
            assert len(caplog.records) < 100 + CASES / 5
    survived(became.total(), "hostile logins")


class SlowPeer:
    """Who has the right credentials, and says them byte by byte from some moment of the login on."""

    def __init__(self, home: Home, number: int) -> None:
        chance = Random(number)
        forger = Forger("mallory", "mallory-secret", "password of mallory", "issuer", chance)
        mechanism = chance.choice(["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"])
        token = {
            "PLAIN": forger.plain(),
            "SCRAM-SHA-256": forger.scram_first("nonce"),
            "OAUTHBEARER": forger.bearer(),
        }[mechanism]
        # So long that no request arrives in time, byte by byte.
        name = "x" * 1_000
        hello = request_frame(SaslHandshakeRequest(mechanism=mechanism), 1, 1, name)
        login = request_frame(SaslAuthenticateRequest(auth_bytes=token), 2, 2, name)
        at_once = chance.randrange(len(hello) + len(login) // 2)
        self._to_say = memoryview(hello + login)
        accepted = Accepted("CLIENTS", (f"10.0.1.{number % 5}", 1_024 + number % 60_000), lambda: None)
        protocol, _ = home.broker.node.listeners.listeners["CLIENTS"].service.new_connection(accepted)
        assert isinstance(protocol, Connection)
        self.connection = protocol
        self._transport = MemoryTransport(protocol)
        self.says(at_once)

    def says(self, count: int) -> None:
        """Send the next bytes."""
        self._transport.offer(bytes(self._to_say[:count]))
        self._to_say = self._to_say[count:]


async def test_hostile_peers_that_log_in_byte_by_byte_are_cut_off(tmp_path: Path, survived: Survived) -> None:
    """On a simulated clock: the time limit is that of a whole request, however often a byte comes."""
    home = Home(settings(tmp_path), listen=None)
    async with home.new_broker(), healthy_user(home) as user:
        # What is made once, for the first of them, is there.
        await cut_off(home, range(-1, 0))
        before = await Left.of(home)
        for first in range(0, SLOW, AT_ONCE):
            await cut_off(home, range(first, min(first + AT_ONCE, SLOW)))
            assert list(await user.topics()) == ["orders"]
        assert await Left.of(home) == before
    survived(SLOW, "slow logins")


async def cut_off(home: Home, numbers: range) -> None:
    """Slow peers with these numbers, each of which says two requests at most; they are nobody to the end."""
    peers = [SlowPeer(home, number) for number in numbers]
    for _ in range(2 * ConnectionLimits().request_arrival_ms // 1_000 + 5):
        for peer in peers:
            if not peer.connection.closed:
                peer.says(1)
                assert peer.connection.principal == ANONYMOUS
        await home.pass_time(1_000)
    assert all(peer.connection.closed for peer in peers)


@asynccontextmanager
async def healthy_user(home: Home) -> AsyncIterator[User]:
    """Alice, with a topic; mallory has a password for SCRAM too."""
    listeners = home.broker.node.listeners.listeners
    async with await User.connect(f"127.0.0.1:{listeners['CLIENTS'].port}") as user:
        assert (await authenticate(user)).error_code == 0
        for kind in (SHA_256, SHA_512):
            answer = await user.send(altering(put("alice", kind), put("mallory", kind)), 0)
            assert [each.error_code for each in answer.results] == [0, 0]
        await user.create_topic("orders")
        yield user


async def all_gone(home: Home, user: User, peers: list[HostilePeer]) -> None:
    """After the longest time that a peer may say nothing; who asks now and then stays."""
    for _ in range(2):
        await home.pass_time(310_000)
        assert list(await user.topics()) == ["orders"]
    assert [peer.number for peer in peers if not peer.connection.closed] == []
