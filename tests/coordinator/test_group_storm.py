"""Many groups rebalance at once, and seeded clients do what real ones do, for thousands of steps."""

from __future__ import annotations

import random

import pytest

from pykafka_broker.coordinator.group.classic.state import Phase
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.groups import GroupWorld, check_books


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
    # Everybody's leader wants a rebalance in the same second; the others hear of it by heartbeat.
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
        assert world.state.groups[group].phase is Phase.STABLE
        assert list(world.state.groups[group].members) == members[group]
        for member in members[group]:
            assert world.heartbeat(member, 2, group_id=group) is ErrorCode.NONE


class Client:
    """A consumer as clients implement it: joins, syncs, heartbeats, commits, and now and then restarts."""

    def __init__(self, world: GroupWorld, rng: random.Random, instance: str | None) -> None:
        self.world = world
        self.rng = rng
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self.parked: int | None = None
        self.step = self.join
        self.committed = 0

    def restart(self) -> None:
        """The process is gone without a word, and a new one starts."""
        self.__init__(self.world, self.rng, self.instance)  # type: ignore[misc]

    def join(self) -> None:
        self.parked = self.world.join(
            member_id=self.member_id, instance=self.instance, rebalance_timeout_ms=15_000
        )
        self.step = self.await_join

    def await_join(self) -> None:
        assert self.parked is not None
        if self.parked not in self.world.answers:
            return
        answer = self.world.joined(self.parked)
        if answer.error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""
            self.step = self.join
            return
        self.member_id = answer.member_id
        if answer.error is not ErrorCode.NONE:
            assert answer.error in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS)
            self.step = self.join
            return
        self.generation = answer.generation
        leads = answer.leader_id == answer.member_id and not answer.skip_assignment
        assignments = {member.member_id: member.member_id.encode() for member in answer.members}
        self.parked = self.world.sync(
            self.member_id, self.generation, assignments if leads else None, instance=self.instance
        )
        self.step = self.await_sync

    def await_sync(self) -> None:
        assert self.parked is not None
        if self.parked not in self.world.answers:
            return
        answer = self.world.synced(self.parked)
        self.react(answer.error)
        if answer.error is ErrorCode.NONE:
            self.step = self.work

    def work(self) -> None:
        if self.rng.random() < 0.1:
            self.world.leave(self.member_id)
            self.restart()
        elif self.rng.random() < 0.3:
            self.commit()
        else:
            self.react(self.world.heartbeat(self.member_id, self.generation, instance=self.instance))

    def commit(self) -> None:
        offset = self.committed + 1
        key = (self.instance or self.member_id, 0)
        (error,) = self.world.commit(
            {key: offset}, self.member_id, self.generation, instance=self.instance
        ).values()
        if error is ErrorCode.NONE:
            self.committed = offset
            assert self.world.fetch()[key] == offset
        self.react(error)

    def react(self, error: ErrorCode) -> None:
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""
            self.step = self.join
        elif error in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            self.step = self.join
        else:
            assert error is ErrorCode.NONE


@pytest.mark.parametrize("seed", range(8))
def test_random_clients_are_never_stuck_and_generations_only_grow(seed: int) -> None:
    rng = random.Random(seed)
    world = GroupWorld(group_initial_rebalance_delay_ms=rng.choice([0, 3_000]))
    clients = [Client(world, rng, rng.choice([None, f"static-{number}"])) for number in range(6)]
    generation = 0

    for _ in range(1_000):
        client = rng.choice(clients)
        if rng.random() < 0.02:
            client.restart()
        if rng.random() < 0.005:
            world = world.reload()
            # As in Kafka, a generation that was joined but never assigned leaves no trace.
            generation = world.group().generation if "g" in world.state.groups else 0
            for each in clients:
                each.world = world
                each.restart()
        client.step()
        world.advance(rng.choice([0, 10, 300, 1_000]))
        group = world.state.groups.get("g")
        if group is not None:
            check_books(group)
            assert group.generation >= generation
            generation = group.generation

    # Left in peace, they settle.
    for _ in range(400):
        for client in clients:
            if client.step != client.work:
                client.step()
            else:
                client.react(world.heartbeat(client.member_id, client.generation, instance=client.instance))
        world.advance(300)
    assert world.group().phase is Phase.STABLE
    assert {client.member_id for client in clients} <= set(world.group().members)
    assert {client.generation for client in clients} == {world.group().generation}
