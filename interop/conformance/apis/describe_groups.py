"""DescribeGroups: state and members of classic groups."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.groups import (
    a_group,
    a_member,
    committing,
    following,
    joined,
    leaving,
    one,
    rebalancing,
    two_members,
)
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest


@conversation
def a_stable_group_shows_members_and_assignments(talk: Talk) -> None:
    group = a_group(talk)
    two_members(talk, group)
    talk.ask(DescribeGroupsRequest(groups=[group]))


@conversation
def a_group_that_waits_for_its_assignment(talk: Talk) -> None:
    group = a_group(talk)
    joined(talk, group)
    talk.ask(DescribeGroupsRequest(groups=[group]))


@conversation
def a_group_that_rebalances(talk: Talk) -> None:
    group = a_group(talk)
    member = a_member(talk, group)
    talk.another().send(following(group), version=3)
    rebalancing(talk, member)
    talk.ask(DescribeGroupsRequest(groups=[group]))


@conversation
def an_empty_group_and_one_of_a_simple_consumer(talk: Talk) -> None:
    empty, simple = a_group(talk, "empty"), a_group(talk, "simple")
    talk.do(leaving(empty, one(a_member(talk, empty))))
    talk.do(committing(simple, talk.topic(), {0: 1}))
    talk.ask(DescribeGroupsRequest(groups=[simple, empty]))


@conversation("0-5")
def an_unknown_group_is_dead(talk: Talk) -> None:
    talk.ask(DescribeGroupsRequest(groups=[a_group(talk)]))


@conversation("6+")
def an_unknown_group_is_not_found(talk: Talk) -> None:
    talk.ask(DescribeGroupsRequest(groups=[a_group(talk)]), E.GROUP_ID_NOT_FOUND)


@conversation("0-5", alone=True)
def an_empty_group_id_is_a_dead_group_among_others(talk: Talk) -> None:
    group = a_group(talk)
    a_member(talk, group)
    talk.ask(DescribeGroupsRequest(groups=["", group]))


@conversation("6+", alone=True)
def an_empty_group_id_is_not_found(talk: Talk) -> None:
    group = a_group(talk)
    a_member(talk, group)
    talk.ask(DescribeGroupsRequest(groups=["", group]), E.GROUP_ID_NOT_FOUND)


@conversation
def a_group_is_asked_for_twice(talk: Talk) -> None:
    group = a_group(talk)
    a_member(talk, group)
    talk.ask(DescribeGroupsRequest(groups=[group, group]))


@conversation
def no_groups_are_asked_for(talk: Talk) -> None:
    a_group(talk)
    talk.ask(DescribeGroupsRequest(groups=[]))


@conversation("3+")
def what_may_be_done_with_a_group_is_told_when_asked(talk: Talk) -> None:
    group = a_group(talk)
    a_member(talk, group)
    talk.ask(DescribeGroupsRequest(groups=[group], include_authorized_operations=True))


@conversation("4+")
def an_instance_is_shown(talk: Talk) -> None:
    group = a_group(talk)
    a_member(talk, group, instance=f"{group}-i")
    talk.ask(DescribeGroupsRequest(groups=[group]))


@conversation
def a_group_of_another_kind_of_protocol(talk: Talk) -> None:
    group = a_group(talk)
    a_member(talk, group, protocol_type="connect", protocols={"eager": b"\x00", "lazy": b"\x01"})
    talk.ask(DescribeGroupsRequest(groups=[group]))
