"""DeleteAcls, where no authorizer is configured."""

from __future__ import annotations

from typing import Any

from interop.conformance.conversation import conversation
from interop.conformance.talk import CLOSED, E, Talk
from pykafka_broker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest

NUMBERS = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")


def filter_of(**changes: Any) -> DeleteAclsFilter:
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
    return DeleteAclsFilter(**{**values, **changes})


@conversation
def no_authorizer_deletes_acls(talk: Talk) -> None:
    filters = [filter_of(), filter_of(principal_filter="User:alice")]
    talk.ask(DeleteAclsRequest(filters=filters), *[E.SECURITY_DISABLED] * 2)
    talk.ask(DeleteAclsRequest(filters=[]))
    each = [filter_of(**{field: 99}) for field in NUMBERS]
    talk.ask(DeleteAclsRequest(filters=each), *[E.SECURITY_DISABLED] * len(each))


@conversation
def a_number_that_is_unknown_closes_the_connection(talk: Talk) -> None:
    for field in NUMBERS:
        talk.another().ask(DeleteAclsRequest(filters=[filter_of(**{field: 0})]), CLOSED)


@conversation
def controllers_are_asked_themselves(talk: Talk) -> None:
    talk.controllers().ask(DeleteAclsRequest(filters=[filter_of()]), E.SECURITY_DISABLED)
