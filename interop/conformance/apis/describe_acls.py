"""DescribeAcls, where no authorizer is configured."""

from __future__ import annotations

from typing import Any

from interop.conformance.conversation import conversation
from interop.conformance.talk import CLOSED, E, Talk
from pykafka_broker.protocol.messages.describe_acls import DescribeAclsRequest

NUMBERS = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")


def describing(**changes: Any) -> DescribeAclsRequest:
    """Every ACL."""
    values = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    return DescribeAclsRequest(**{**values, **changes})


@conversation
def no_authorizer_describes_acls(talk: Talk) -> None:
    talk.ask(describing(), E.SECURITY_DISABLED)
    talk.ask(describing(resource_name_filter="orders", principal_filter="User:alice"), E.SECURITY_DISABLED)
    for field in NUMBERS:
        talk.ask(describing(**{field: 99}), E.SECURITY_DISABLED)


@conversation
def a_number_that_is_unknown_closes_the_connection(talk: Talk) -> None:
    for field in NUMBERS:
        talk.another().ask(describing(**{field: 0}), CLOSED)


@conversation
def controllers_are_asked_themselves(talk: Talk) -> None:
    talk.controllers().ask(describing(), E.SECURITY_DISABLED)
