"""How the client shows a broker who it is, and what it makes of the broker's answers."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.client.aio import connect
from pykafka_broker.client.blocking import BlockingConnection
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.client.core.authentication import Login
from pykafka_broker.client.core.connection import ClientSecurity, Identity
from pykafka_broker.client.core.conversation import Ask, Reply
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
from pykafka_broker.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeResponse
from tests.support.sasl import AT_ONCE, principals, serving


def login(mechanism: str = "PLAIN", user: str = "alice", password: str = "alice-secret") -> Login:
    return Login(mechanism, user, password, lambda: "nonce")


async def test_a_connection_is_that_of_its_user() -> None:
    async with serving() as (home, _):
        address = parse_address(home.broker.bootstrap_servers)
        async with await connect(address, identity=Identity(security=ClientSecurity(login()))) as connection:
            assert "User:alice" in principals(home)
            assert (await connection.send(ListGroupsRequest())).error_code == 0


async def test_a_wrong_password_is_told() -> None:
    async with serving(AT_ONCE) as (home, _):
        address = parse_address(home.broker.bootstrap_servers)
        with pytest.raises(KafkaError, match="Invalid username or password") as refusal:
            await connect(address, identity=Identity(security=ClientSecurity(login(password="wrong"))))
        assert refusal.value.code == ErrorCode.SASL_AUTHENTICATION_FAILED


async def test_a_mechanism_that_is_not_offered_is_told_with_those_that_are() -> None:
    async with serving(AT_ONCE) as (home, _):
        address = parse_address(home.broker.bootstrap_servers)
        with pytest.raises(KafkaError, match="The broker offers PLAIN, and not SCRAM-SHA-256"):
            await connect(address, identity=Identity(security=ClientSecurity(login("SCRAM-SHA-256"))))


async def test_a_program_that_waits_authenticates_too() -> None:
    import asyncio

    def groups(address: str) -> Any:
        identity = Identity(security=ClientSecurity(login()))
        connection = BlockingConnection(parse_address(address), identity=identity)
        try:
            return connection.send(ListGroupsRequest())
        finally:
            connection.close()

    async with serving() as (home, _):
        assert (await asyncio.to_thread(groups, home.broker.bootstrap_servers)).error_code == 0


def test_a_broker_that_does_not_know_the_password_is_not_trusted() -> None:
    exchange = login("SCRAM-SHA-256").authenticating()
    assert isinstance(next(exchange), Ask)
    exchange.send(Reply(SaslHandshakeResponse(error_code=0, mechanisms=["SCRAM-SHA-256"]), 0))

    def told(token: bytes) -> Reply:
        return Reply(SaslAuthenticateResponse(error_code=0, error_message="", auth_bytes=token), 0)

    exchange.send(told(b"r=nonceX,s=c2FsdA==,i=4096"))
    with pytest.raises(KafkaError, match="Invalid server signature"):
        exchange.send(told(b"v=AAAA"))


def test_mechanisms_that_are_not_known_are_refused_and_no_password_is_shown() -> None:
    with pytest.raises(ValueError, match="GSSAPI is none that this client knows"):
        login("GSSAPI")
    assert repr(Identity(security=ClientSecurity(login()))).count("secret") == 0
