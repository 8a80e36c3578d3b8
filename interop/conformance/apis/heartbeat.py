"""Heartbeat: a member of a classic group stays alive, and hears of rebalances."""

from __future__ import annotations

from dataclasses import replace

from interop.conformance.conversation import conversation
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


@conversation
def a_member_of_a_stable_group_is_alive(talk: Talk) -> None:
    member = a_member(talk, a_group(talk))
    talk.ask(beating(member))


@conversation
def an_unknown_group_has_no_members(talk: Talk) -> None:
    talk.ask(beating(Member(a_group(talk), "unknown", 1)), E.UNKNOWN_MEMBER_ID)


@conversation
def an_empty_group_id_is_invalid(talk: Talk) -> None:
    a_group(talk)
    talk.ask(beating(Member("", "unknown", 1)), E.INVALID_GROUP_ID)


@conversation
def a_stranger_is_unknown_whatever_the_generation(talk: Talk) -> None:
    member = a_member(talk, a_group(talk))
    talk.ask(beating(replace(member, id="stranger")), E.UNKNOWN_MEMBER_ID)
    talk.ask(beating(replace(member, id="stranger", generation=99)), E.UNKNOWN_MEMBER_ID)


@conversation
def an_empty_member_id_is_unknown(talk: Talk) -> None:
    member = a_member(talk, a_group(talk))
    talk.ask(beating(replace(member, id="")), E.UNKNOWN_MEMBER_ID)


@conversation
def another_generation_is_refused_be_it_old_or_to_come(talk: Talk) -> None:
    member = a_member(talk, a_group(talk))
    talk.ask(beating(replace(member, generation=member.generation - 1)), E.ILLEGAL_GENERATION)
    talk.ask(beating(replace(member, generation=member.generation + 1)), E.ILLEGAL_GENERATION)
    talk.ask(beating(replace(member, generation=-1)), E.ILLEGAL_GENERATION)


@conversation
def a_member_that_has_not_synced_yet_is_told_to_go_on(talk: Talk) -> None:
    member, _ = joined(talk, a_group(talk))
    talk.ask(beating(member))


@conversation
def the_members_hear_of_a_rebalance_when_another_joins(talk: Talk) -> None:
    group = a_group(talk)
    member = a_member(talk, group)
    newcomer = talk.another().send(joining(group), version=3)
    newcomer.is_waiting()
    talk.ask(beating(member), E.REBALANCE_IN_PROGRESS)
    talk.ask(beating(replace(member, generation=member.generation + 1)), E.ILLEGAL_GENERATION)


@conversation
def the_others_hear_of_a_rebalance_when_a_member_leaves(talk: Talk) -> None:
    leader, follower, _ = two_members(talk, a_group(talk))
    talk.do(leaving(leader.group, one(follower)))
    talk.ask(beating(leader), E.REBALANCE_IN_PROGRESS)
    talk.ask(beating(follower), E.UNKNOWN_MEMBER_ID)


@conversation("3+")
def an_instance_with_the_id_of_its_member_is_alive(talk: Talk) -> None:
    group = a_group(talk)
    member = a_member(talk, group, instance=f"{group}-i")
    talk.ask(beating(member))


@conversation("3+")
def an_instance_that_was_replaced_is_fenced(talk: Talk) -> None:
    group = a_group(talk)
    member = a_member(talk, group, instance=f"{group}-i")
    talk.ask(beating(replace(member, id=f"{group}-i-other")), E.FENCED_INSTANCE_ID)
    talk.ask(beating(replace(member, instance="stranger")), E.UNKNOWN_MEMBER_ID)
    talk.ask(beating(replace(member, id="other", generation=99)), E.FENCED_INSTANCE_ID)
