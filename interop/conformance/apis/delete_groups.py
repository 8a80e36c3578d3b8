"""DeleteGroups: empty groups go, with their offsets."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.groups import (
    a_group,
    a_member,
    beating,
    committing,
    joined,
    leaving,
    of_group,
    one,
)
from interop.conformance.talk import ANY, E, Talk
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchRequest


@conversation
def an_empty_group_goes_with_its_offsets(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    member = a_member(talk, group)
    talk.do(committing(group, topic, {0: 5}, member_id=member.id, generation=member.generation), version=9)
    talk.do(leaving(group, one(member)))
    talk.ask(DeleteGroupsRequest(groups_names=[group]))
    talk.ask(OffsetFetchRequest(groups=[of_group(group, None)]))


@conversation
def a_group_of_a_simple_consumer_goes(talk: Talk) -> None:
    group = a_group(talk)
    talk.do(committing(group, talk.topic(), {0: 5}))
    talk.ask(DeleteGroupsRequest(groups_names=[group]))
    talk.ask(DeleteGroupsRequest(groups_names=[group]), E.GROUP_ID_NOT_FOUND)


@conversation
def a_group_that_has_members_stays(talk: Talk) -> None:
    group = a_group(talk)
    member = a_member(talk, group)
    talk.ask(DeleteGroupsRequest(groups_names=[group]), E.NON_EMPTY_GROUP)
    talk.ask(beating(member))


@conversation
def a_group_that_waits_for_its_assignment_stays(talk: Talk) -> None:
    group = a_group(talk)
    joined(talk, group)
    talk.ask(DeleteGroupsRequest(groups_names=[group]), E.NON_EMPTY_GROUP)


@conversation
def an_unknown_group_is_not_found(talk: Talk) -> None:
    talk.ask(DeleteGroupsRequest(groups_names=[a_group(talk)]), E.GROUP_ID_NOT_FOUND)


@conversation("0+", alone=True)
def an_empty_group_id_is_not_found(talk: Talk) -> None:
    a_group(talk)
    talk.ask(DeleteGroupsRequest(groups_names=[""]), E.GROUP_ID_NOT_FOUND)


@conversation
def several_groups_are_answered_each(talk: Talk) -> None:
    stays, goes, missing = a_group(talk, "stays"), a_group(talk, "goes"), a_group(talk, "missing")
    a_member(talk, stays)
    talk.do(committing(goes, talk.topic(), {0: 5}))
    talk.ask(DeleteGroupsRequest(groups_names=[missing, goes, stays]), ANY)


@conversation
def a_group_is_named_twice(talk: Talk) -> None:
    group = a_group(talk)
    talk.do(committing(group, talk.topic(), {0: 5}))
    talk.ask(DeleteGroupsRequest(groups_names=[group, group]))


@conversation
def no_groups_are_named(talk: Talk) -> None:
    a_group(talk)
    talk.ask(DeleteGroupsRequest(groups_names=[]))
