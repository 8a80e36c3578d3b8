"""LeaveGroup: members go, one or many at a time, by member id or by instance id."""

from __future__ import annotations

from dataclasses import replace

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.groups import (
    Member,
    a_group,
    a_member,
    beating,
    joined,
    joining,
    leaving,
    one,
    two_members,
)
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.leave_group import MemberIdentity


def by_instance(instance: str | None, member_id: str = "") -> MemberIdentity:
    return MemberIdentity(member_id=member_id, group_instance_id=instance)


@conversation
def a_member_leaves_and_is_gone(talk: Talk) -> None:
    group = a_group(talk)
    member = a_member(talk, group)
    talk.ask(leaving(group, one(member)))
    talk.ask(beating(member), E.UNKNOWN_MEMBER_ID)
    talk.ask(DescribeGroupsRequest(groups=[group]))


@conversation
def who_left_cannot_leave_again(talk: Talk) -> None:
    group = a_group(talk)
    member = a_member(talk, group)
    talk.do(leaving(group, one(member)))
    talk.ask(leaving(group, one(member)), E.UNKNOWN_MEMBER_ID)


@conversation
def an_unknown_group_cannot_be_left(talk: Talk) -> None:
    talk.ask(leaving(a_group(talk), MemberIdentity(member_id="unknown")), E.UNKNOWN_MEMBER_ID)


@conversation
def an_empty_group_id_is_invalid(talk: Talk) -> None:
    a_group(talk)
    talk.ask(leaving("", MemberIdentity(member_id="unknown")), E.INVALID_GROUP_ID)


@conversation
def an_empty_member_id_is_unknown(talk: Talk) -> None:
    group = a_group(talk)
    a_member(talk, group)
    talk.ask(leaving(group, MemberIdentity(member_id="")), E.UNKNOWN_MEMBER_ID)


@conversation
def a_member_leaves_before_it_has_synced(talk: Talk) -> None:
    group = a_group(talk)
    member, _ = joined(talk, group)
    talk.ask(leaving(group, one(member)))
    talk.ask(DescribeGroupsRequest(groups=[group]))


@conversation("3+")
def no_member_leaves(talk: Talk) -> None:
    group = a_group(talk)
    a_member(talk, group)
    talk.ask(leaving(group))


@conversation("3+")
def several_leave_and_each_is_answered(talk: Talk) -> None:
    group = a_group(talk)
    leader, follower, _ = two_members(talk, group)
    strangers = [MemberIdentity(member_id="stranger"), MemberIdentity(member_id="")]
    talk.ask(
        leaving(group, one(leader), *strangers, one(follower), one(leader)),
        *[E.UNKNOWN_MEMBER_ID] * 3,
    )


@conversation("3+")
def an_instance_leaves_by_its_name_alone(talk: Talk) -> None:
    group = a_group(talk)
    member = a_member(talk, group, instance=f"{group}-i")
    talk.ask(leaving(group, by_instance(f"{group}-i")))
    talk.ask(beating(member), E.UNKNOWN_MEMBER_ID)


@conversation("3+")
def an_instance_leaves_with_its_member_id(talk: Talk) -> None:
    group = a_group(talk)
    talk.ask(leaving(group, one(a_member(talk, group, instance=f"{group}-i"))))


@conversation("3+")
def an_instance_with_the_id_of_another_is_fenced(talk: Talk) -> None:
    group = a_group(talk)
    member = a_member(talk, group, instance=f"{group}-i")
    talk.ask(leaving(group, by_instance(f"{group}-i", "another")), E.FENCED_INSTANCE_ID)
    talk.ask(leaving(group, by_instance("unknown", member.id)), E.UNKNOWN_MEMBER_ID)
    talk.ask(leaving(group, by_instance("unknown")), E.UNKNOWN_MEMBER_ID)


@conversation("3+")
def an_instance_may_leave_without_naming_itself(talk: Talk) -> None:
    group = a_group(talk)
    member = a_member(talk, group, instance=f"{group}-i")
    talk.ask(leaving(group, one(replace(member, instance=None))))


@conversation("4+")
def a_member_that_was_only_given_an_id_leaves(talk: Talk) -> None:
    group = a_group(talk)
    given = talk.ask(joining(group), E.MEMBER_ID_REQUIRED)
    talk.ask(leaving(group, one(Member(group, given.member_id, 0))))
    talk.ask(joining(group, given.member_id), E.UNKNOWN_MEMBER_ID)


@conversation(LATEST)
def many_strangers_leave_an_unknown_group(talk: Talk) -> None:
    group = a_group(talk)
    strangers = [MemberIdentity(member_id="a"), by_instance("b"), by_instance("c", "d")]
    talk.ask(leaving(group, *strangers), *[E.UNKNOWN_MEMBER_ID] * 3)
