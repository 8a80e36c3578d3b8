"""JoinGroup: members of a classic group come, come back and rebalance."""

from __future__ import annotations

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.groups import (
    Member,
    a_group,
    a_member,
    beating,
    committing,
    following,
    joined,
    joining,
    leaving,
    met,
    one,
    rebalancing,
    subscribed,
    syncing,
    two_members,
)
from interop.conformance.talk import E, Talk


@conversation("0-3")
def a_first_member_leads_its_group(talk: Talk) -> None:
    talk.ask(joining(a_group(talk)))


@conversation("4+")
def a_new_member_has_to_come_back_with_the_id_it_is_given(talk: Talk) -> None:
    group = a_group(talk)
    given = talk.ask(joining(group), E.MEMBER_ID_REQUIRED)
    talk.ask(joining(group, given.member_id))


@conversation("5+")
def an_instance_need_not_come_twice(talk: Talk) -> None:
    group = a_group(talk)
    talk.ask(joining(group, instance=f"{group}-i"))


@conversation
def an_empty_group_id_is_invalid(talk: Talk) -> None:
    a_group(talk)
    talk.ask(joining(""), E.INVALID_GROUP_ID)


@conversation
def a_member_id_that_was_not_given_is_unknown(talk: Talk) -> None:
    group = a_group(talk)
    talk.ask(joining(group, "my-own-id"), E.UNKNOWN_MEMBER_ID)


@conversation
def a_stranger_is_unknown_in_a_stable_group(talk: Talk) -> None:
    group = a_group(talk)
    a_member(talk, group)
    talk.ask(joining(group, "my-own-id"), E.UNKNOWN_MEMBER_ID)


@conversation
def a_session_timeout_has_to_be_within_the_bounds(talk: Talk) -> None:
    group = a_group(talk)
    talk.ask(joining(group, session_timeout_ms=5_999), E.INVALID_SESSION_TIMEOUT)
    talk.ask(joining(group, session_timeout_ms=1_800_001), E.INVALID_SESSION_TIMEOUT)
    talk.ask(joining(group, session_timeout_ms=-1), E.INVALID_SESSION_TIMEOUT)


@conversation
def the_session_timeout_is_looked_at_before_the_member_id(talk: Talk) -> None:
    talk.ask(joining(a_group(talk), "stranger", session_timeout_ms=1), E.INVALID_SESSION_TIMEOUT)


@conversation
def a_group_without_protocols_or_without_a_type_of_them_is_inconsistent(talk: Talk) -> None:
    group = a_group(talk)
    talk.ask(joining(group, protocols={}), E.INCONSISTENT_GROUP_PROTOCOL)
    talk.ask(joining(group, protocol_type=""), E.INCONSISTENT_GROUP_PROTOCOL)


@conversation
def another_type_of_protocol_is_inconsistent(talk: Talk) -> None:
    group = a_group(talk)
    a_member(talk, group)
    talk.ask(joining(group, protocol_type="connect"), E.INCONSISTENT_GROUP_PROTOCOL)


@conversation
def protocols_that_no_other_member_knows_are_inconsistent(talk: Talk) -> None:
    group = a_group(talk)
    a_member(talk, group)
    talk.ask(joining(group, protocols={"sticky": subscribed(b"")}), E.INCONSISTENT_GROUP_PROTOCOL)


@conversation
def the_leader_joins_again_and_a_new_generation_begins(talk: Talk) -> None:
    group = a_group(talk)
    member = a_member(talk, group)
    talk.ask(joining(group, member.id))
    talk.ask(beating(Member(group, member.id, member.generation)), E.ILLEGAL_GENERATION)


@conversation
def the_leader_changes_what_it_offers(talk: Talk) -> None:
    group = a_group(talk)
    member = a_member(talk, group)
    talk.ask(
        joining(group, member.id, protocols={"sticky": subscribed(b"new"), "range": subscribed(b"newer")})
    )


@conversation
def a_follower_that_changes_nothing_keeps_its_generation(talk: Talk) -> None:
    group = a_group(talk)
    leader, follower, other = two_members(talk, group)
    other.ask(following(group, follower.id))
    talk.ask(beating(leader))


@conversation
def a_follower_that_changes_its_metadata_starts_a_rebalance(talk: Talk) -> None:
    group = a_group(talk)
    leader, follower, other = two_members(talk, group)
    again = other.send(joining(group, follower.id, protocols={"range": subscribed(b"changed")}))
    again.is_waiting()
    talk.ask(beating(leader), E.REBALANCE_IN_PROGRESS)
    talk.ask(joining(group, leader.id))
    again.answer()


@conversation
def members_come_together_when_the_old_ones_have_come_back(talk: Talk) -> None:
    group = a_group(talk)
    leader = a_member(talk, group)
    other = talk.another()
    comes = other.send(following(group), version=3)
    comes.is_waiting()
    rebalancing(talk, leader)
    talk.ask(joining(group, leader.id))
    comes.answer()


@conversation
def the_protocol_that_most_members_prefer_is_chosen(talk: Talk) -> None:
    group = a_group(talk)
    leader = a_member(talk, group, protocols={"range": subscribed(b"a"), "sticky": subscribed(b"b")})
    second, third = talk.another(), talk.another()
    comes = second.send(
        joining(group, protocols={"sticky": subscribed(b"c"), "range": subscribed(b"d")}), version=3
    )
    rebalancing(talk, leader)
    comes_too = third.send(
        joining(
            group, protocols={"sticky": subscribed(b"e"), "range": subscribed(b"f"), "own": subscribed()}
        ),
        version=3,
    )
    comes_too.is_waiting()
    talk.ask(joining(group, leader.id, protocols={"range": subscribed(b"a"), "sticky": subscribed(b"b")}))
    comes.answer()
    comes_too.answer()


@conversation(LATEST)
def a_tie_between_two_protocols_in_either_order_of_joining(talk: Talk) -> None:
    for first, second in (("range", "sticky"), ("sticky", "range")):
        group = a_group(talk, f"{first}-first")
        leader = a_member(talk, group, protocols={first: subscribed(b"a"), second: subscribed(b"b")})
        other = talk.another()
        comes = other.send(
            joining(group, protocols={second: subscribed(b"c"), first: subscribed(b"d")}), version=3
        )
        rebalancing(talk, leader)
        talk.ask(joining(group, leader.id, protocols={first: subscribed(b"a"), second: subscribed(b"b")}))
        comes.answer()


@conversation(LATEST)
def an_id_that_was_given_out_is_no_instances_id(talk: Talk) -> None:
    group = a_group(talk)
    given = talk.ask(joining(group), E.MEMBER_ID_REQUIRED)
    talk.ask(joining(group, given.member_id, instance=f"{group}-i"), E.UNKNOWN_SERVER_ERROR)
    talk.ask(joining(group, given.member_id))


@conversation(LATEST)
def an_instance_that_comes_again_needs_room_in_a_full_group(talk: Talk) -> None:
    """Both brokers run with group.max.size=4: an instance that comes again needs room as well."""
    group = a_group(talk)
    instance = f"{group}-i"
    member = a_member(talk, group, instance=instance)
    comes = [talk.another().send(following(group, rebalance_timeout_ms=30_000), version=3) for _ in range(3)]
    rebalancing(talk, member)
    for waiting in comes:
        waiting.is_waiting(0.1)
    talk.ask(joining(group, member.id, instance=instance))
    talk.another().ask(joining(group, instance=instance), E.GROUP_MAX_SIZE_REACHED)


@conversation
def the_time_of_a_member_that_left_is_over(talk: Talk) -> None:
    group = a_group(talk)
    member = a_member(talk, group)
    talk.do(leaving(group, one(member)))
    talk.ask(joining(group, member.id), E.UNKNOWN_MEMBER_ID)


@conversation
def an_empty_group_is_led_by_who_comes_next(talk: Talk) -> None:
    group = a_group(talk)
    member = a_member(talk, group)
    talk.do(leaving(group, one(member)))
    talk.ask(joining(group), *([E.MEMBER_ID_REQUIRED] if talk.version >= 4 else []))


@conversation
def an_empty_group_may_change_its_type(talk: Talk) -> None:
    group = a_group(talk)
    talk.do(leaving(group, one(a_member(talk, group))))
    given = talk.ask(
        joining(group, protocol_type="connect"), *([E.MEMBER_ID_REQUIRED] if talk.version >= 4 else [])
    )
    if talk.version >= 4:
        talk.ask(joining(group, given.member_id, protocol_type="connect"))


@conversation
def a_member_may_join_again_before_it_has_synced(talk: Talk) -> None:
    group = a_group(talk)
    member, _ = joined(talk, group)
    talk.ask(joining(group, member.id))


@conversation("5+")
def an_instance_that_comes_again_replaces_itself_without_a_rebalance(talk: Talk) -> None:
    group = a_group(talk)
    instance = f"{group}-i"
    first = a_member(talk, group, instance=instance)
    talk.ask(joining(group, instance=instance))
    talk.ask(beating(first), E.FENCED_INSTANCE_ID)


@conversation("5+")
def an_instance_that_comes_again_with_other_metadata_starts_a_rebalance(talk: Talk) -> None:
    group = a_group(talk)
    instance = f"{group}-i"
    a_member(talk, group, instance=instance)
    talk.ask(joining(group, instance=instance, protocols={"range": subscribed(b"other")}))


@conversation("5+")
def an_instance_with_the_id_of_another_member_is_fenced(talk: Talk) -> None:
    group = a_group(talk)
    a_member(talk, group, instance=f"{group}-i")
    talk.ask(joining(group, "stranger", instance=f"{group}-i"), E.FENCED_INSTANCE_ID)


@conversation("5+")
def an_unknown_instance_with_a_member_id_is_unknown(talk: Talk) -> None:
    group = a_group(talk)
    a_member(talk, group)
    talk.ask(joining(group, "stranger", instance=f"{group}-i"), E.UNKNOWN_MEMBER_ID)


@conversation("5+")
def the_second_instance_of_a_group_is_told_apart_from_the_first(talk: Talk) -> None:
    group = a_group(talk)
    first = a_member(talk, group, instance=f"{group}-1")
    other = talk.another()
    comes = other.send(following(group, instance=f"{group}-2"))
    comes.is_waiting()
    rebalancing(talk, first)
    talk.ask(joining(group, first.id, instance=first.instance))
    comes.answer()


@conversation("8+")
def a_reason_is_taken_and_not_repeated(talk: Talk) -> None:
    group = a_group(talk)
    given = talk.ask(joining(group, reason="r" * 300), E.MEMBER_ID_REQUIRED)
    talk.ask(joining(group, given.member_id, reason="because"))


@conversation
def a_group_takes_no_more_members_than_it_may(talk: Talk) -> None:
    """Both brokers run with group.max.size=4; a rebalancing group counts who waits."""
    group = a_group(talk)
    leader = a_member(talk, group)
    comes = [talk.another().send(joining(group), version=3) for _ in range(4)]
    rebalancing(talk, leader)
    for waiting in comes:
        waiting.is_waiting(0.1)
    talk.another().ask(joining(group), E.GROUP_MAX_SIZE_REACHED)


@conversation(LATEST)
def the_one_that_a_full_group_has_waited_for_is_refused(talk: Talk) -> None:
    group = a_group(talk)
    leader = a_member(talk, group)
    comes = [talk.another().send(joining(group), version=3) for _ in range(4)]
    rebalancing(talk, leader)
    for waiting in comes:
        waiting.is_waiting(0.1)
    talk.ask(joining(group, leader.id), E.GROUP_MAX_SIZE_REACHED)
    comes[0].is_waiting()


@conversation(LATEST)
def a_member_joins_twice_at_once(talk: Talk) -> None:
    group = a_group(talk)
    _, follower, _ = two_members(talk, group)
    first, second = talk.another(), talk.another()
    changed = joining(group, follower.id, protocols={"range": subscribed(b"changed")})
    joins = first.send(changed)
    joins.is_waiting()
    joins_again = second.send(changed)
    joins_again.is_waiting()
    joins.is_waiting()


@conversation(LATEST)
def a_simple_consumers_group_may_be_joined(talk: Talk) -> None:
    group = a_group(talk)
    topic = talk.topic()
    talk.do(committing(group, topic, {0: 5}))
    given = talk.ask(joining(group), E.MEMBER_ID_REQUIRED)
    talk.ask(joining(group, given.member_id))


@conversation(LATEST)
def a_member_that_joins_while_the_group_waits_for_its_leaders_assignment(talk: Talk) -> None:
    group = a_group(talk)
    member, _ = joined(talk, group)
    other = talk.another()
    comes = other.send(following(group), version=3)
    comes.is_waiting()
    talk.ask(syncing(member, {member.id: b""}), E.REBALANCE_IN_PROGRESS)
    talk.ask(joining(group, member.id))
    comes.answer()


@conversation(LATEST)
def a_member_that_is_waiting_joins_again_on_another_connection(talk: Talk) -> None:
    group = a_group(talk)
    leader = a_member(talk, group)
    other, again = talk.another(), talk.another()
    comes = other.send(following(group, instance=f"{group}-i"))
    comes.is_waiting()
    rebalancing(talk, leader)
    comes_again = again.send(following(group, instance=f"{group}-i"))
    comes.answer(E.FENCED_INSTANCE_ID)
    comes_again.is_waiting()
    talk.ask(joining(group, leader.id))
    comes_again.answer()


@conversation(LATEST)
def a_leader_that_leaves_hands_over_to_a_follower(talk: Talk) -> None:
    group = a_group(talk)
    leader, follower, other = two_members(talk, group)
    talk.do(leaving(group, one(leader)))
    other.ask(joining(group, follower.id))


@conversation(LATEST)
def who_leaves_lets_the_waiting_go_on(talk: Talk) -> None:
    group = a_group(talk)
    leader, follower, other = two_members(talk, group)
    again = talk.send(joining(group, leader.id))
    again.is_waiting()
    other.do(leaving(group, one(follower)))
    again.answer()


@conversation(LATEST)
def the_oldest_member_leads_when_the_leader_does_not_come_back(talk: Talk) -> None:
    group = a_group(talk)
    leader = a_member(talk, group, rebalance_timeout_ms=600)
    other = talk.another()
    comes = other.send(joining(group, rebalance_timeout_ms=600), version=3)
    comes.answer()
    talk.ask(beating(leader), E.UNKNOWN_MEMBER_ID)


@conversation(LATEST)
def what_a_waiting_member_is_told_by_its_heartbeat(talk: Talk) -> None:
    group = a_group(talk)
    leader = a_member(talk, group)
    other = talk.another()
    comes = other.send(following(group), version=3)
    rebalancing(talk, leader)
    talk.do(joining(group, leader.id), version=3)
    follower = met(other, comes, group)
    other.ask(beating(follower))


@conversation(LATEST)
def an_unreadable_subscription(talk: Talk) -> None:
    group = a_group(talk)
    given = talk.ask(joining(group), E.MEMBER_ID_REQUIRED)
    claims_a_billion_topics = b"\x00\x00\x40\x00\x00\x00"
    comes = talk.send(joining(group, given.member_id, protocols={"range": claims_a_billion_topics}))
    comes.is_waiting()
