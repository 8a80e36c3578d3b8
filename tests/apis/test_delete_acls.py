"""DeleteAcls (31): what filters find is deleted."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.delete_acls import delete_acls
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import delete_acls as deleting
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.acls import (
    LACKING,
    OF_FILTERS,
    UNKNOWN,
    created,
    creation,
    filtering,
    removing,
    shown,
)
from tests.apis.asking import every
from tests.apis.test_denials import ALTER, CLUSTER, ON_CLUSTER, under


@pytest.mark.parametrize("version", every(delete_acls))
async def test_each_filter_deletes_what_it_finds(home: Home, user: User, version: int) -> None:
    client, _ = await under(home)
    bobs = creation(principal="User:bob", permission_type=2, host="10.0.0.1")
    await created(client, creation(), bobs)
    wanted = [filtering(principal_filter="User:bob"), filtering(principal_filter="User:carol")]

    first, second = (await client.send(removing(*wanted), version)).filter_results

    assert first == deleting.DeleteAclsFilterResult(
        error_code=0,
        matching_acls=[
            deleting.DeleteAclsMatchingAcl(
                error_code=0,
                resource_type=2,
                resource_name="orders",
                pattern_type=3,
                principal="User:bob",
                host="10.0.0.1",
                operation=3,
                permission_type=2,
            )
        ],
    )
    assert second == deleting.DeleteAclsFilterResult(error_code=0, matching_acls=[])
    assert await shown(client) == [(2, "orders", 3, ["User:alice"])]


@pytest.mark.parametrize(
    ("field", "text"),
    [(f, "Unknown patternFilter." if "type_filter" in f else "Unknown entryFilter.") for f in OF_FILTERS],
)
async def test_a_filter_with_an_unknown_number_deletes_nothing(
    home: Home, user: User, field: str, text: str
) -> None:
    client, _ = await under(home)
    await created(client, creation())

    [result] = (await client.send(removing(filtering(**{field: LACKING})), 3)).filter_results

    assert (result.error_code, result.error_message) == (int(ErrorCode.INVALID_REQUEST), text)
    assert len(await shown(client)) == 1


@pytest.mark.parametrize("version", every(delete_acls))
async def test_without_an_authorizer_no_acls_are_deleted(user: User, version: int) -> None:
    answer = await user.send(removing(filtering(), filtering()), version)

    refused = deleting.DeleteAclsFilterResult(
        error_code=int(ErrorCode.SECURITY_DISABLED),
        error_message="No Authorizer is configured.",
        matching_acls=[],
    )
    assert answer.filter_results == [refused, refused]


@pytest.mark.parametrize("field", OF_FILTERS)
async def test_the_number_of_nothing_closes_the_connection(user: User, field: str) -> None:
    user.write(removing(filtering(), filtering(**{field: UNKNOWN})), 3)

    assert await user.is_closed()


async def test_it_closes_also_the_connection_of_a_client_that_may_not_delete(home: Home, user: User) -> None:
    """Apache Kafka refuses the number while it reads the request, before it asks its authorizer."""
    client, _ = await under(home, (ALTER, CLUSTER, ON_CLUSTER))
    client.write(removing(filtering(operation=UNKNOWN)), 3)

    assert await client.is_closed()
