"""SaslHandshake (17): which mechanism, when, and what else may be asked before."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis import APIS
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
from pykafka_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from pykafka_broker.testing.home import Home
from tests.support.sasl import ALICE, AT_ONCE, PLAIN, authenticate, serving

VERSIONS = ApiVersionsRequest(client_software_name="tests", client_software_version="1.0")
GROUPS = ListGroupsRequest()
LIFETIME = {"connections.max.reauth.ms": "5000", **AT_ONCE}


async def test_whoever_asks_first_is_told_everything_that_the_listener_serves() -> None:
    async with serving({"telemetry.receiver.enable": "true"}) as (_, user):
        answer = await user.send(VERSIONS, 4)
        assert [row.api_key for row in answer.api_keys] == [api.key for api in APIS]
        assert (await authenticate(user)).error_code == 0


async def test_an_answer_that_is_an_error_lets_the_peer_ask_again() -> None:
    async with serving() as (_, user):
        nameless = ApiVersionsRequest(client_software_name="", client_software_version="")
        assert (await user.send(nameless, 4)).error_code == ErrorCode.INVALID_REQUEST
        assert (await user.send(VERSIONS, 4)).error_code == 0
        assert (await authenticate(user)).error_code == 0


@pytest.mark.parametrize("request_", [GROUPS, SaslAuthenticateRequest(auth_bytes=ALICE)])
async def test_before_the_handshake_nothing_else_is_answered(request_: Any) -> None:
    async with serving() as (_, user):
        user.write(request_, 2)
        assert await user.is_closed()


async def test_versions_are_asked_for_once() -> None:
    async with serving() as (_, user):
        await user.send(VERSIONS, 3)
        user.write(VERSIONS, 3)
        assert await user.is_closed()


async def test_an_unknown_mechanism_is_answered_with_those_that_there_are() -> None:
    async with serving(AT_ONCE) as (_, user):
        answer = await user.send(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
        assert answer == SaslHandshakeResponse(
            error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["PLAIN"]
        )
        assert await user.is_closed()


@pytest.mark.parametrize("request_", [PLAIN, VERSIONS])
async def test_so_is_a_second_handshake(request_: Any) -> None:
    async with serving(AT_ONCE) as (_, user):
        await user.send(PLAIN, 1)
        assert (await user.send(request_, 1)).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert await user.is_closed()


async def test_without_a_lifetime_nobody_authenticates_again() -> None:
    async with serving() as (_, user):
        await authenticate(user)
        again = await user.send(PLAIN, 1)
        assert again == SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
        token = await user.send(SaslAuthenticateRequest(auth_bytes=ALICE), 2)
        assert (token.error_code, token.error_message) == (
            ErrorCode.ILLEGAL_SASL_STATE,
            "SaslAuthenticate request received after successful authentication",
        )
        assert (await user.send(GROUPS, 5)).error_code == 0


async def test_two_exchanges_are_a_second_apart() -> None:
    async with serving(LIFETIME) as (home, user):
        await authenticate(user)
        await authenticate(user)
        assert (await user.send(PLAIN, 1)).error_code == ErrorCode.ILLEGAL_SASL_STATE
        await home.pass_time(1_000)
        assert (await authenticate(user)).error_code == 0


async def test_without_sasl_a_listener_has_no_exchange() -> None:
    async with Home().running() as user:
        for version in (0, 1):
            answer = await user.send(PLAIN, version)
            assert answer == SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
        assert (await user.send(GROUPS, 5)).error_code == 0
