"""ListGroups: which groups there are, by state and by type."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.groups import a_group, a_member, committing, joined, leaving, one
from interop.conformance.talk import Talk
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest


def one_of_each_kind(talk: Talk) -> None:
    """Groups in the states that last."""
    a_member(talk, a_group(talk, "stable"))
    joined(talk, a_group(talk, "completing"))
    empty = a_member(talk, a_group(talk, "empty"))
    talk.do(leaving(empty.group, one(empty)))
    talk.do(committing(a_group(talk, "simple"), talk.topic(), {0: 1}))
    a_member(talk, a_group(talk, "connect"), protocol_type="connect")


@conversation("0+", alone=True)
def groups_are_listed_with_their_protocol_type(talk: Talk) -> None:
    one_of_each_kind(talk)
    talk.ask(ListGroupsRequest())


@conversation("4+", alone=True)
def groups_are_listed_by_state(talk: Talk) -> None:
    one_of_each_kind(talk)
    for states in (
        ["Stable"],
        ["Empty", "CompletingRebalance"],
        ["Dead"],
        ["stable"],
        ["No such state"],
        [" STABLE "],
    ):
        talk.ask(ListGroupsRequest(states_filter=states))


@conversation("5+", alone=True)
def groups_are_listed_by_type(talk: Talk) -> None:
    one_of_each_kind(talk)
    for types in (
        ["classic"],
        ["Classic"],
        ["CONSUMER"],
        ["share", "streams"],
        ["no such type"],
        [" classic "],
    ):
        talk.ask(ListGroupsRequest(types_filter=types))
    talk.ask(ListGroupsRequest(types_filter=["classic"], states_filter=["Empty"]))
