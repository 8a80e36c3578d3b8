"""A broker with a listener that asks for SASL/PLAIN, and how its clients authenticate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from pykafka_broker.network.connection import Connection
from pykafka_broker.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from pykafka_broker.sasl.plain import plain_token
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User

ALICE = plain_token("alice", "alice-secret")
BOB = plain_token("bob", "bob-secret")
WRONG = plain_token("alice", "wrong")
PLAIN_LISTENER = {
    "listeners": "CLIENTS://127.0.0.1:0,INSIDE://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.clients.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'user_alice="alice-secret" user_bob="bob-secret";'
    ),
}
#: A failed authentication is answered without delay.
AT_ONCE = {"connection.failed.authentication.delay.ms": "0"}
PLAIN = SaslHandshakeRequest(mechanism="PLAIN")


@asynccontextmanager
async def serving(settings: Mapping[str, str] | None = None) -> AsyncIterator[tuple[Home, User]]:
    """A broker, and a user of its listener who has not authenticated."""
    home = Home(PLAIN_LISTENER | dict(settings or {}), listen=None)
    async with home.new_broker() as broker, await User.connect(broker.bootstrap_servers) as user:
        yield home, user


async def authenticate(user: User, token: bytes = ALICE, version: int = 2) -> SaslAuthenticateResponse:
    """The answer to `token`, after a handshake."""
    handshake: SaslHandshakeResponse = await user.send(PLAIN, 1)
    assert (handshake.error_code, "PLAIN" in handshake.mechanisms) == (0, True)
    answer: SaslAuthenticateResponse = await user.send(SaslAuthenticateRequest(auth_bytes=token), version)
    return answer


def principals(home: Home) -> list[str]:
    """Those of all connections."""
    connections = home.broker.node.listeners.shared.connections
    return [one.principal for one in connections if isinstance(one, Connection)]
