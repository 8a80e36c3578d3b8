"""DescribeUserScramCredentials: the users that there are, and those that there are not."""

from __future__ import annotations

from interop.conformance.apis.alter_user_scram_credentials import (
    SHA_512,
    altering,
    describing,
    drop,
    put,
)
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)

#: Of users in the same place of a hash map the order depends on when they were put there.
BY_USER = {"results": "user", "credential_infos": "mechanism"}


@conversation(alone=True)
def every_user(talk: Talk) -> None:
    names = [talk.name(label) for label in ("a", "b", "c")]
    talk.do(altering(*(put(name) for name in names)))
    talk.do(altering(put(names[1], SHA_512, 10_000)))
    talk.ask(
        DescribeUserScramCredentialsRequest(users=None),
        until=lambda answer: sum(len(each.credential_infos) for each in answer.results) == 4,
        in_any_order=BY_USER,
    )
    talk.ask(describing(), in_any_order=BY_USER)
    talk.do(altering(*(drop(name) for name in names)))
    talk.do(altering(drop(names[1], SHA_512)))


@conversation
def users_that_are_named(talk: Talk) -> None:
    names = [talk.name(label) for label in ("a", "b", "c")]
    talk.do(altering(*(put(name) for name in names)))
    for users in (names, names[::-1][:2]):
        talk.ask(
            describing(*users),
            until=lambda answer: all(each.credential_infos for each in answer.results),
        )
    talk.ask(describing(names[0], names[0]), E.DUPLICATE_RESOURCE)
    talk.do(altering(*(drop(name) for name in names)))


@conversation
def users_that_there_are_not(talk: Talk) -> None:
    talk.ask(describing(talk.name("nobody")), E.RESOURCE_NOT_FOUND)
    talk.ask(describing(""), E.RESOURCE_NOT_FOUND)
    talk.ask(describing("", ""), E.DUPLICATE_RESOURCE)
