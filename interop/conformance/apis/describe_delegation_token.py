"""DescribeDelegationToken: which tokens a user sees."""

from __future__ import annotations

import time

from interop.conformance.apis.create_delegation_token import (
    WITH_TOKENS,
    WITH_TOKENS_AND_ACLS,
    created,
    holder,
    known_to,
    user,
)
from interop.conformance.apis.sasl_scram import USERS, WITH_SCRAM
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from pykafka_broker.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)

USER, DELEGATION_TOKEN, LITERAL, DESCRIBE, DESCRIBE_TOKENS, ALLOW = 7, 6, 3, 8, 14, 3


def describing(*owners: str, kind: str = "User") -> DescribeDelegationTokenRequest:
    return DescribeDelegationTokenRequest(
        owners=[DescribeDelegationTokenOwner(principal_type=kind, principal_name=name) for name in owners]
    )


EVERYTHING = DescribeDelegationTokenRequest(owners=None)


@conversation(settings=WITH_TOKENS)
def tokens_of_owners_and_of_renewers(talk: Talk) -> None:
    me, renewer, nobody = (talk.name(label) for label in ("me", "renewer", "nobody"))
    alice = user(talk, "alice")
    created(alice, renewer, owner=me)
    alice.ask(describing(me))
    alice.ask(describing(renewer, nobody))
    alice.ask(describing(me, me, renewer))
    alice.ask(describing(nobody))
    alice.ask(describing(me, kind="Group"))
    alice.ask(describing())


@conversation(settings=WITH_TOKENS_AND_ACLS)
def what_others_see(talk: Talk) -> None:
    alice, bob, carol = (user(talk, name) for name in USERS)
    owners = [talk.name(label) for label in ("first", "second", "third")]
    first = created(bob, owner=owners[0])
    second = created(bob, owner=owners[1])
    created(bob, "alice", owner=owners[2])
    for acl_type, name, operation in (
        (DELEGATION_TOKEN, first.token_id, DESCRIBE),
        (USER, f"User:{owners[1]}", DESCRIBE_TOKENS),
    ):
        creation = AclCreation(
            resource_type=acl_type,
            resource_name=name,
            resource_pattern_type=LITERAL,
            principal="User:alice",
            host="*",
            operation=operation,
            permission_type=ALLOW,
        )
        bob.do(CreateAclsRequest(creations=[creation]))
    while not {first.token_id, second.token_id} <= known_to(alice):
        time.sleep(0.02)
    for other in (alice, bob, carol):
        other.ask(describing(*owners))
        other.ask(describing(owners[0]))


@conversation(settings=WITH_SCRAM)
def there_are_no_tokens(talk: Talk) -> None:
    alice = user(talk, "alice")
    alice.ask(EVERYTHING, E.DELEGATION_TOKEN_AUTH_DISABLED)
    alice.ask(describing(), E.DELEGATION_TOKEN_AUTH_DISABLED)


@conversation
def a_plain_connection(talk: Talk) -> None:
    talk.ask(EVERYTHING, E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


@conversation(settings=WITH_TOKENS)
def the_holder_of_a_token(talk: Talk) -> None:
    token = created(user(talk, "alice"))
    holder(talk, token).ask(EVERYTHING, E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
