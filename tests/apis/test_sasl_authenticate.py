"""SaslAuthenticate (36): who gets in, what the others are told, and how long it lasts."""

from __future__ import annotations

import asyncio

import pytest

from pykafka_broker.client.core.frames import request_frame
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
from pykafka_broker.protocol.messages.list_transactions import ListTransactionsRequest
from pykafka_broker.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from pykafka_broker.sasl.plain import plain_token
from pykafka_broker.testing.home import until
from pykafka_broker.testing.user import User
from tests.support.sasl import ALICE, AT_ONCE, BOB, PLAIN, WRONG, authenticate, principals, serving

GROUPS = ListGroupsRequest()
TRANSACTIONS = ListTransactionsRequest(state_filters=[], producer_id_filters=[])


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_user_with_a_password_may_use_the_listener(version: int) -> None:
    async with serving() as (home, user):
        assert principals(home) == ["User:ANONYMOUS"]

        assert await authenticate(user, version=version) == SaslAuthenticateResponse(
            error_code=0, error_message="", auth_bytes=b""
        )

        assert principals(home) == ["User:alice"]
        await user.create_topic("orders")
        assert await user.produce("orders", b"one") == 0
        assert await user.values("orders") == [b"one"]


async def test_a_wrong_password_is_told_after_a_while_and_the_connection_closes() -> None:
    async with serving() as (home, user):
        await user.send(PLAIN, 1)
        before = home.clock.pending_timers
        user.write(SaslAuthenticateRequest(auth_bytes=WRONG), 2)
        await until(lambda: home.clock.pending_timers > before)
        await home.clock.pass_time(100)

        assert await user.read(36, 2) == SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
            error_message="Authentication failed: Invalid username or password",
            auth_bytes=b"",
        )
        assert await user.is_closed()


async def test_another_request_in_the_place_of_a_token_is_told_so() -> None:
    async with serving(AT_ONCE) as (_, user):
        await user.send(PLAIN, 1)
        assert (await user.send(TRANSACTIONS, 1)).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert await user.is_closed()


async def test_after_the_first_version_of_the_handshake_tokens_come_bare() -> None:
    async with serving() as (home, _):
        host, _, port = home.broker.bootstrap_servers.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request_frame(PLAIN, 0, 1, "tests"))
        writer.write(len(ALICE).to_bytes(4, "big") + ALICE)
        writer.write(request_frame(GROUPS, 0, 2, "tests"))
        handshake = await reader.readexactly(4 + 4 + 2 + 4 + 2 + len("PLAIN"))
        assert await reader.readexactly(4) == bytes(4)
        assert await reader.readexactly(4 + 4 + 2 + 4) == bytes.fromhex("0000000a 00000002 0000 00000000")
        assert handshake.endswith(b"PLAIN")
        assert "User:alice" in principals(home)
        writer.close()
        await writer.wait_closed()


async def test_a_bare_token_that_is_refused_has_no_answer() -> None:
    async with serving(AT_ONCE) as (_, user):
        await user.send(PLAIN, 0)
        user.write_bytes(len(WRONG).to_bytes(4, "big") + WRONG)
        assert await user.is_closed()


async def test_requests_that_follow_at_once_wait_for_the_exchange() -> None:
    async with serving() as (_, user):
        user.write(PLAIN, 1)
        user.write(SaslAuthenticateRequest(auth_bytes=ALICE), 2)
        user.write(GROUPS, 5)
        answers = [await user.read(17, 1), await user.read(36, 2), await user.read(16, 5)]
        assert [answer.error_code for answer in answers] == [0, 0, 0]


async def test_before_authentication_requests_are_small() -> None:
    async with serving({"sasl.server.max.receive.size": "100"}) as (_, user):
        assert (await authenticate(user)).error_code == 0
        await user.create_topic("o" * 200)
    async with serving({"sasl.server.max.receive.size": "100"}) as (_, user):
        await user.send(PLAIN, 1)
        user.write(SaslAuthenticateRequest(auth_bytes=ALICE + bytes(100)), 2)
        assert await user.is_closed()


LIFETIME = {"connections.max.reauth.ms": "5000", **AT_ONCE}


async def test_a_session_ends_unless_the_user_authenticates_again() -> None:
    async with serving(LIFETIME) as (home, user):
        assert (await authenticate(user)).session_lifetime_ms == 5000
        for _ in range(3):
            await home.pass_time(4_000)
            assert (await authenticate(user)).session_lifetime_ms == 5000
        await home.pass_time(4_999)
        assert (await user.send(GROUPS, 5)).error_code == 0
        await home.pass_time(1)
        user.write(GROUPS, 5)
        assert await user.is_closed()


async def test_a_user_whose_session_is_over_may_still_authenticate() -> None:
    async with serving(LIFETIME) as (home, user):
        await authenticate(user)
        await home.pass_time(6_000)
        assert (await authenticate(user)).error_code == 0
        assert (await user.send(GROUPS, 5)).error_code == 0


async def test_a_user_stays_the_same() -> None:
    async with serving(LIFETIME) as (_, user):
        await authenticate(user)
        answer = await authenticate(user, BOB)
        assert (answer.error_code, answer.error_message) == (
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            "Cannot change principals during re-authentication from User.alice: User.bob",
        )
        assert await user.is_closed()


async def test_a_password_is_in_no_log_and_no_description(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        async with serving(AT_ONCE) as (home, user):
            await authenticate(user, plain_token("alice", "wrong-secret"))
            assert await user.is_closed()
            async with await User.connect(home.broker.bootstrap_servers) as other:
                await authenticate(other)
                name = "listener.name.clients.plain.sasl.jaas.config"
                assert await other.config(4, "1", name) is None
    assert "Authentication failed: Invalid username or password" in caplog.text
    assert "-secret" not in caplog.text
