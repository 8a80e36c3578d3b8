"""CreateAcls, where no authorizer is configured."""

from __future__ import annotations

from typing import Any

from interop.conformance.conversation import conversation
from interop.conformance.talk import CLOSED, E, Talk
from pykafka_broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest

NUMBERS = ("resource_type", "resource_pattern_type", "operation", "permission_type")


def creation(**changes: Any) -> AclCreation:
    """Alice may read a topic."""
    values = {
        "resource_type": 2,
        "resource_name": "orders",
        "resource_pattern_type": 3,
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return AclCreation(**{**values, **changes})


@conversation
def no_authorizer_creates_acls(talk: Talk) -> None:
    two = [creation(), creation(principal="nobody")]
    talk.ask(CreateAclsRequest(creations=two), *[E.SECURITY_DISABLED] * 2)
    talk.ask(CreateAclsRequest(creations=[]))
    for number in (1, 99):
        each = [creation(**{field: number}) for field in NUMBERS]
        talk.ask(CreateAclsRequest(creations=each), *[E.SECURITY_DISABLED] * len(each))


@conversation
def a_number_that_is_unknown_closes_the_connection(talk: Talk) -> None:
    for field in NUMBERS:
        each = [creation(), creation(**{field: 0})]
        talk.another().ask(CreateAclsRequest(creations=each), CLOSED)


@conversation
def controllers_are_asked_themselves(talk: Talk) -> None:
    talk.controllers().ask(CreateAclsRequest(creations=[creation()]), E.SECURITY_DISABLED)
