"""AlterClientQuotas (49): quotas are set and removed, each entity by itself."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.alter_client_quotas import alter_client_quotas
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import every
from tests.apis.quotas import Names, described, entity_of, set_quotas, setting

ALICE: Names = {"user": "alice"}


def result(names: Names, text: str | None = None) -> AlterClientQuotasResponseEntryData:
    code = ErrorCode.NONE if text is None else ErrorCode.INVALID_REQUEST
    return AlterClientQuotasResponseEntryData(
        error_code=int(code), error_message=text, entity=entity_of(names)
    )


@pytest.mark.parametrize("version", every(alter_client_quotas))
async def test_each_entity_succeeds_or_fails_by_itself(user: User, version: int) -> None:
    request = AlterClientQuotasRequest(
        entries=[
            setting(ALICE, producer_byte_rate=1024.0, request_percentage=12.5),
            setting({"user": None}, connection_creation_rate=3.0),
            setting({"ip": "127.0.0.1"}, connection_creation_rate=3.0),
        ],
        validate_only=False,
    )

    assert await user.send(request, version) == AlterClientQuotasResponse(
        entries=[
            result(ALICE),
            result({"user": None}, "Invalid configuration key connection_creation_rate"),
            result({"ip": "127.0.0.1"}),
        ]
    )
    assert await described(user) == [
        ({"user": "alice"}, {"producer_byte_rate": 1024.0, "request_percentage": 12.5}),
        ({"ip": "127.0.0.1"}, {"connection_creation_rate": 3.0}),
    ]


async def test_quotas_are_removed(user: User) -> None:
    await set_quotas(user, ALICE, producer_byte_rate=1024.0, request_percentage=12.5)
    await set_quotas(user, ALICE, producer_byte_rate=None, consumer_byte_rate=None)
    assert await described(user) == [({"user": "alice"}, {"request_percentage": 12.5})]

    await set_quotas(user, ALICE, request_percentage=None)
    assert await described(user) == []


async def test_what_is_only_validated_is_not_set(user: User) -> None:
    request = AlterClientQuotasRequest(
        entries=[setting(ALICE, producer_byte_rate=1024.0)], validate_only=True
    )

    assert await user.send(request, 1) == AlterClientQuotasResponse(entries=[result(ALICE)])
    assert await described(user) == []


@pytest.mark.parametrize(
    ("host", "text"),
    [
        ("::1", None),
        ("[::1]", None),
        ("localhost", None),
        ("no host", "no host is not a valid IP or resolvable host."),
    ],
)
async def test_an_address_may_be_a_host_that_is_known(user: User, host: str, text: str | None) -> None:
    entry = setting({"ip": host}, connection_creation_rate=3.0)

    answer = await user.send(AlterClientQuotasRequest(entries=[entry], validate_only=True), 1)

    assert answer.entries == [result({"ip": host}, text)]


async def test_quotas_outlast_the_broker(home: Home) -> None:
    async with home.running() as user:
        await set_quotas(user, ALICE, producer_byte_rate=1024.0)
    async with home.running() as user:
        assert await described(user) == [({"user": "alice"}, {"producer_byte_rate": 1024.0})]


async def test_a_listener_of_controllers_sets_quotas_too(controllers: User) -> None:
    entry = setting(ALICE, producer_byte_rate=1024.0)

    answer = await controllers.send(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)

    assert answer == AlterClientQuotasResponse(entries=[result(ALICE)])
