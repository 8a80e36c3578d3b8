"""CreateAcls (30): ACLs are created, each by itself."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.create_acls import create_acls
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import create_acls as creating
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.acls import (
    ANY,
    LACKING,
    MATCH,
    OF_CREATIONS,
    UNKNOWN,
    created,
    creation,
    shown,
)
from tests.apis.asking import every
from tests.apis.test_denials import under
from tests.apis.test_envelope import wrapped


@pytest.mark.parametrize("version", every(create_acls))
async def test_acls_are_created(home: Home, user: User, version: int) -> None:
    client, _ = await under(home)
    bobs = creation(principal="User:bob", permission_type=2, host="10.0.0.1")
    prefixed = creation(resource_name="ord", resource_pattern_type=4)

    results = await created(client, creation(), bobs, prefixed, creation(), version=version)

    assert results == [(0, None)] * 4
    assert await shown(client) == [
        (2, "orders", 3, ["User:alice", "User:bob"]),
        (2, "ord", 4, ["User:alice"]),
    ]


async def test_acls_outlive_the_broker(home: Home) -> None:
    async with home.running():
        client, _ = await under(home)
        await created(client, creation())
    async with home.running():
        client, _ = await under(home)
        assert await shown(client) == [(2, "orders", 3, ["User:alice"])]


async def test_each_acl_succeeds_or_fails_by_itself(home: Home, user: User) -> None:
    client, _ = await under(home)
    invalid = int(ErrorCode.INVALID_REQUEST)

    assert await created(
        client,
        creation(resource_type=4),
        creation(resource_name=""),
        creation(operation=LACKING),
        creation(principal="nobody"),
        creation(resource_type=4, resource_name="kafka-cluster"),
    ) == [
        (invalid, "The only valid name for the CLUSTER resource is kafka-cluster"),
        (invalid, "Invalid empty resource name"),
        (invalid, "Invalid operation UNKNOWN"),
        (
            invalid,
            "Could not parse principal from `nobody` (no colon is present separating the principal type from "
            "the principal name)",
        ),
        (0, None),
    ]
    assert await shown(client) == [(4, "kafka-cluster", 3, ["User:alice"])]


@pytest.mark.parametrize(
    "changes", [*({field: ANY} for field in OF_CREATIONS), {"resource_pattern_type": MATCH}]
)
async def test_what_only_a_filter_may_say_creates_nothing(
    home: Home, user: User, changes: dict[str, int]
) -> None:
    client, _ = await under(home)

    failure = (int(ErrorCode.UNKNOWN_SERVER_ERROR), None)
    assert await created(client, creation(), creation(**changes)) == [failure, failure]
    assert await shown(client) == []


async def test_too_many_acls_are_refused_beside_what_is_wrong_anyway(home: Home, user: User) -> None:
    client, _ = await under(home)
    many = [creation(resource_name=str(number)) for number in range(10_001)]

    refused, *others = await created(client, creation(resource_name=""), *many)

    assert refused == (int(ErrorCode.INVALID_REQUEST), "Invalid empty resource name")
    text = "Unable to perform excessively large batch operation."
    assert others == [(int(ErrorCode.POLICY_VIOLATION), text)] * len(many)


@pytest.mark.parametrize("version", every(create_acls))
async def test_without_an_authorizer_no_acls_are_created(user: User, version: int) -> None:
    disabled = (int(ErrorCode.SECURITY_DISABLED), "No Authorizer is configured.")

    assert await created(user, creation(), creation(resource_name=""), version=version) == [disabled] * 2


@pytest.mark.parametrize("field", OF_CREATIONS)
async def test_the_number_of_nothing_closes_the_connection(user: User, field: str) -> None:
    user.write(creating.CreateAclsRequest(creations=[creation(), creation(**{field: UNKNOWN})]), 3)

    assert await user.is_closed()


async def test_the_number_of_nothing_in_an_envelope_leaves_the_connection_of_the_broker_open(
    controllers: User,
) -> None:
    envelope = wrapped(creating.CreateAclsRequest(creations=[creation(operation=UNKNOWN)]), 3)

    for _ in range(2):
        assert (await controllers.send(envelope, 0)).error_code == ErrorCode.INVALID_REQUEST
