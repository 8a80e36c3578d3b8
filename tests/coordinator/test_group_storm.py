"""Many groups rebalance at once."""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.classic.state import Phase
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.groups import GroupWorld


def test_a_storm_of_300_groups_with_3_members_each_settles_and_misses_no_heartbeat() -> None:
    world = GroupWorld()
    groups = [f"group-{number}" for number in range(300)]
    joins = {group: [world.join(group, version=3) for _ in range(3)] for group in groups}
    world.advance(6_000)
    for group, tokens in joins.items():
        assert {world.joined(token).generation for token in tokens} == {1}
        for token in tokens:
            answer = world.joined(token)
            world.sync(answer.member_id, 1, {name.member_id: b"x" for name in answer.members}, group_id=group)

    members = {group: list(world.state.groups[group].members) for group in groups}
    # The leader of every group rejoins in the same second; the others hear of the rebalance by heartbeat.
    for group in groups:
        world.join(group, members[group][0])
    world.advance(3_000)
    for group in groups:
        for follower in members[group][1:]:
            assert world.heartbeat(follower, 1, group_id=group) is ErrorCode.REBALANCE_IN_PROGRESS
            world.join(group, follower)
    for group in groups:
        for member in reversed(members[group]):
            world.sync(member, 2, dict.fromkeys(members[group], b"y"), group_id=group)

    for group in groups:
        assert world.group(group).phase is Phase.STABLE
        assert list(world.state.groups[group].members) == members[group]
        for member in members[group]:
            assert world.heartbeat(member, 2, group_id=group) is ErrorCode.NONE
