"""Short words for the requests about ACLs."""

from __future__ import annotations

from typing import Any

from pykafka_broker.protocol.messages import create_acls as creating
from pykafka_broker.protocol.messages import delete_acls as deleting
from pykafka_broker.protocol.messages import describe_acls as describing
from pykafka_broker.testing.user import User

ANY, MATCH, UNKNOWN, LACKING = 1, 2, 0, 99
OF_CREATIONS = ("resource_type", "resource_pattern_type", "operation", "permission_type")
OF_FILTERS = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")


def creation(**changes: Any) -> creating.AclCreation:
    """Alice may read the topic "orders"."""
    values = {
        "resource_type": 2,
        "resource_name": "orders",
        "resource_pattern_type": 3,
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return creating.AclCreation(**{**values, **changes})


def filtering(**changes: Any) -> dict[str, Any]:
    """Every ACL."""
    values = {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    return {**values, **changes}


def asking(**changes: Any) -> describing.DescribeAclsRequest:
    return describing.DescribeAclsRequest(**filtering(**changes))


def removing(*filters: dict[str, Any]) -> deleting.DeleteAclsRequest:
    return deleting.DeleteAclsRequest(filters=[deleting.DeleteAclsFilter(**each) for each in filters])


async def created(client: User, *creations: creating.AclCreation, version: int = 3) -> list[tuple[int, Any]]:
    """The error and the text of each."""
    answer = await client.send(creating.CreateAclsRequest(creations=list(creations)), version)
    return [(each.error_code, each.error_message) for each in answer.results]


async def shown(client: User, *, version: int = 3, **wanted: Any) -> list[tuple[int, str, int, list[str]]]:
    """Each pattern with the principals of its ACLs."""
    answer = await client.send(asking(**wanted), version)
    assert (answer.error_code, answer.error_message) == (0, None)
    return [
        (each.resource_type, each.resource_name, each.pattern_type, [acl.principal for acl in each.acls])
        for each in answer.resources
    ]
