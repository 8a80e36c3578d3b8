"""DescribeAcls (29): the ACLs that a filter finds."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.describe_acls import describe_acls
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import describe_acls as describing
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.acls import (
    LACKING,
    MATCH,
    OF_FILTERS,
    UNKNOWN,
    asking,
    created,
    creation,
    shown,
)
from tests.apis.asking import every
from tests.apis.test_denials import under


@pytest.mark.parametrize("version", every(describe_acls))
async def test_a_filter_finds_acls(home: Home, user: User, version: int) -> None:
    client, _ = await under(home)
    bobs = creation(principal="User:bob", permission_type=2, host="10.0.0.1")
    await created(client, creation(), bobs, creation(resource_name="ord", resource_pattern_type=4))

    assert await shown(client, version=version) == [
        (2, "orders", 3, ["User:alice", "User:bob"]),
        (2, "ord", 4, ["User:alice"]),
    ]
    of_ordinary = {"resource_name_filter": "ordinary", "pattern_type_filter": MATCH}
    assert await shown(client, version=version, **of_ordinary) == [(2, "ord", 4, ["User:alice"])]
    [resource] = (await client.send(asking(principal_filter="User:bob"), version)).resources
    assert resource.acls == [
        describing.AclDescription(principal="User:bob", host="10.0.0.1", operation=3, permission_type=2)
    ]


async def test_a_filter_with_an_unknown_number_finds_nothing(home: Home, user: User) -> None:
    client, _ = await under(home)
    await created(client, creation())

    assert [await shown(client, **{field: LACKING}) for field in OF_FILTERS] == [[]] * len(OF_FILTERS)


@pytest.mark.parametrize("version", every(describe_acls))
async def test_without_an_authorizer_no_acls_are_shown(user: User, version: int) -> None:
    assert await user.send(asking(), version) == describing.DescribeAclsResponse(
        error_code=int(ErrorCode.SECURITY_DISABLED),
        error_message="No Authorizer is configured on the broker",
        resources=[],
    )


@pytest.mark.parametrize("field", OF_FILTERS)
async def test_the_number_of_nothing_closes_the_connection(user: User, field: str) -> None:
    user.write(asking(**{field: UNKNOWN}), 3)

    assert await user.is_closed()
