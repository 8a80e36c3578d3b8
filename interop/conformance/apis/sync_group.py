"""SyncGroup: the leader hands in the assignment, each member gets its share."""

from __future__ import annotations

from dataclasses import replace

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.groups import (
    Member,
    a_group,
    a_member,
    joined,
    joining,
    leaving,
    met,
    one,
    rebalancing,
    syncing,
    two_members,
)
from interop.conformance.talk import E, Talk


@conversation
def the_leader_gets_what_it_assigned_to_itself(talk: Talk) -> None:
    member, _ = joined(talk, a_group(talk))
    talk.ask(syncing(member, {member.id: b"mine"}))


@conversation
def a_leader_without_an_assignment_gets_nothing(talk: Talk) -> None:
    member, _ = joined(talk, a_group(talk))
    talk.ask(syncing(member))


@conversation
def an_assignment_for_an_unknown_member_is_ignored(talk: Talk) -> None:
    member, _ = joined(talk, a_group(talk))
    talk.ask(syncing(member, {"stranger": b"lost", member.id: b"mine"}))


@conversation
def the_same_member_named_twice_gets_the_last_share(talk: Talk) -> None:
    member, _ = joined(talk, a_group(talk))
    request = syncing(member, {member.id: b"first"})
    request.assignments += syncing(member, {member.id: b"last"}).assignments
    talk.ask(request)


@conversation
def a_member_of_a_stable_group_may_ask_again(talk: Talk) -> None:
    member = a_member(talk, a_group(talk))
    talk.ask(syncing(member))
    talk.ask(syncing(member, {member.id: b"too late"}))


@conversation
def an_unknown_group(talk: Talk) -> None:
    talk.ask(syncing(Member(a_group(talk), "unknown", 1)), E.UNKNOWN_MEMBER_ID)


@conversation
def an_empty_group_id_is_invalid(talk: Talk) -> None:
    a_group(talk)
    talk.ask(syncing(Member("", "unknown", 1)), E.INVALID_GROUP_ID)


@conversation
def a_stranger_is_unknown(talk: Talk) -> None:
    member = a_member(talk, a_group(talk))
    talk.ask(syncing(replace(member, id="stranger")), E.UNKNOWN_MEMBER_ID)
    talk.ask(syncing(replace(member, id="stranger", generation=9)), E.UNKNOWN_MEMBER_ID)


@conversation
def another_generation_is_refused(talk: Talk) -> None:
    member = a_member(talk, a_group(talk))
    talk.ask(syncing(replace(member, generation=member.generation - 1)), E.ILLEGAL_GENERATION)
    talk.ask(syncing(replace(member, generation=member.generation + 1)), E.ILLEGAL_GENERATION)


@conversation
def a_follower_waits_for_the_leader(talk: Talk) -> None:
    group = a_group(talk)
    leader = a_member(talk, group)
    other = talk.another()
    comes = other.send(joining(group), version=3)
    rebalancing(talk, leader)
    answer = talk.do(joining(group, leader.id), version=3)
    follower = met(other, comes, group)
    waits = other.send(syncing(follower))
    waits.is_waiting()
    talk.ask(syncing(replace(leader, generation=answer.generation_id), {follower.id: b"yours"}))
    waits.answer()


@conversation
def no_member_syncs_while_others_join(talk: Talk) -> None:
    group = a_group(talk)
    member = a_member(talk, group)
    talk.another().send(joining(group), version=3)
    rebalancing(talk, member)
    talk.ask(syncing(member), E.REBALANCE_IN_PROGRESS)


@conversation
def no_member_syncs_in_an_empty_group(talk: Talk) -> None:
    group = a_group(talk)
    member = a_member(talk, group)
    talk.do(leaving(group, one(member)))
    talk.ask(syncing(member), E.UNKNOWN_MEMBER_ID)


@conversation("3+")
def an_instance_syncs_with_its_member_id_only(talk: Talk) -> None:
    group = a_group(talk)
    member, _ = joined(talk, group, instance=f"{group}-i")
    talk.ask(syncing(replace(member, id="another")), E.FENCED_INSTANCE_ID)
    talk.ask(syncing(replace(member, instance="unknown")), E.UNKNOWN_MEMBER_ID)
    talk.ask(syncing(member, {member.id: b"mine"}))


@conversation("5+")
def the_protocol_has_to_be_the_one_that_was_chosen(talk: Talk) -> None:
    member, _ = joined(talk, a_group(talk))
    talk.ask(syncing(member, protocol_name="sticky"), E.INCONSISTENT_GROUP_PROTOCOL)
    talk.ask(syncing(member, protocol_type="connect"), E.INCONSISTENT_GROUP_PROTOCOL)
    talk.ask(syncing(member, protocol_type=None), E.INCONSISTENT_GROUP_PROTOCOL)
    talk.ask(syncing(member, protocol_name=None), E.INCONSISTENT_GROUP_PROTOCOL)


@conversation("5+")
def the_member_is_looked_at_before_the_protocol(talk: Talk) -> None:
    member, _ = joined(talk, a_group(talk))
    talk.ask(syncing(replace(member, id="x"), protocol_name="sticky"), E.UNKNOWN_MEMBER_ID)
    talk.ask(syncing(replace(member, generation=9), protocol_name="sticky"), E.ILLEGAL_GENERATION)


@conversation(LATEST)
def a_follower_in_a_stable_group_gets_its_share_again(talk: Talk) -> None:
    _, follower, other = two_members(talk, a_group(talk))
    other.ask(syncing(follower))


@conversation(LATEST)
def a_follower_waits_again_on_another_connection(talk: Talk) -> None:
    group = a_group(talk)
    leader = a_member(talk, group)
    other, again = talk.another(), talk.another()
    comes = other.send(joining(group), version=3)
    rebalancing(talk, leader)
    answer = talk.do(joining(group, leader.id), version=3)
    follower = met(other, comes, group)
    waits = other.send(syncing(follower))
    waits.is_waiting()
    waits_again = again.send(syncing(follower))
    waits_again.is_waiting()
    talk.ask(syncing(replace(leader, generation=answer.generation_id), {follower.id: b"yours"}))
    waits_again.answer()


@conversation(LATEST)
def who_waits_for_a_leader_that_leaves_has_to_join_again(talk: Talk) -> None:
    group = a_group(talk)
    leader = a_member(talk, group)
    other = talk.another()
    comes = other.send(joining(group), version=3)
    rebalancing(talk, leader)
    talk.do(joining(group, leader.id), version=3)
    follower = met(other, comes, group)
    waits = other.send(syncing(follower))
    waits.is_waiting()
    talk.do(leaving(group, one(leader)))
    waits.answer(E.REBALANCE_IN_PROGRESS)


@conversation(LATEST)
def who_waits_for_its_assignment_is_removed(talk: Talk) -> None:
    group = a_group(talk)
    leader = a_member(talk, group)
    other = talk.another()
    comes = other.send(joining(group), version=3)
    rebalancing(talk, leader)
    talk.do(joining(group, leader.id), version=3)
    follower = met(other, comes, group)
    waits = other.send(syncing(follower))
    waits.is_waiting()
    talk.do(leaving(group, one(follower)))
    waits.is_waiting()


@conversation(LATEST)
def an_assignment_that_is_larger_than_a_batch_may_be(talk: Talk) -> None:
    group = a_group(talk)
    member, _ = joined(talk, group)
    talk.ask(syncing(member, {member.id: b"x" * 1_200_000}), E.UNKNOWN_SERVER_ERROR)
    talk.ask(syncing(member, {member.id: b"x"}), E.REBALANCE_IN_PROGRESS)
