"""What the coordinator tells about members of a group: who joined, left or timed out, and what followed."""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.events import Event
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.topics import TopicInfo
from pykafka_broker.coordinator.groups.counts import Counts
from pykafka_broker.coordinator.groups.decisions import LEFT, SILENT, TOO_SLOW, awaited, decisions
from pykafka_broker.machine.history import Decision, Kind
from pykafka_broker.machine.step import Step
from tests.support.groups import GroupWorld


class Told(GroupWorld):
    """A world that writes down what has been decided."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Decision] = []
        self.counts = Counts()

    def step(self, event: Event) -> Step[Groups]:
        step = super().step(event)
        self.told += decisions(self.state, event, step.state, self.config)
        self.counts.count_rebalance(self.state.groups.get("g"), event, step.state.groups.get("g"))
        return step

    def new(self) -> list[tuple[str, str]]:
        """The texts and remedies since the last look."""
        told, self.told = self.told, []
        assert all((decision.kind, decision.names) == (Kind.GROUP, ("g",)) for decision in told)
        return [(decision.text, decision.remedy) for decision in told]


def awaited_by(world: Told) -> str:
    """The sentences about the members for which the group waits."""
    return " ".join(text for text, _ in awaited(world.state.groups["g"], world.now_ms))


def test_a_member_that_falls_silent_times_out_and_the_others_join_again() -> None:
    world = Told()
    silent, other = world.stable_group(2)
    world.new()

    world.advance(6_000)
    world.heartbeat(other, 1)
    world.advance(4_000)

    assert world.new() == [
        (
            f"Member {silent} (127.0.0.1) timed out: it had sent no heartbeat for "
            "10 s (session.timeout.ms=10000). The group rebalances: generation 1 ends, and "
            "1 member must join again.",
            SILENT,
        )
    ]
    world.join(member_id=other)
    assert awaited_by(world) == (
        f"Member {other} (127.0.0.1), the leader, has not sent the assignment: "
        "the group has waited for 0 ms, of at most 1 min."
    )
    world.sync(other, 2, {other: b"all"})
    assert world.new() == [
        (f"Generation 2 has 1 member; member {other} assigns the partitions.", ""),
        ("Generation 2 has its assignment.", ""),
    ]
    assert world.counts.completed_rebalances == 2


def test_a_member_that_polls_too_late_is_left_behind_by_the_rebalance() -> None:
    world = Told()
    late, other = world.stable_group(2)
    world.leave(other)
    assert world.new()[-1] == (
        f"Member {other} (127.0.0.1) left. The group rebalances: generation 1 ends, and 1 member must join "
        "again.",
        LEFT,
    )

    for _ in range(12):
        world.heartbeat(late, 1)
        assert f"Member {late} (127.0.0.1) has not joined again" in awaited_by(world)
        world.advance(5_000)
    assert awaited_by(world) == ""

    assert world.new() == [
        (
            f"Member {late} (127.0.0.1) was removed: it did not join again within the rebalance timeout of "
            "1 min. The group is empty.",
            TOO_SLOW,
        )
    ]


def test_a_leader_that_wants_another_assignment_and_a_new_subscription_are_told_apart() -> None:
    world = Told()
    leader, _ = world.stable_group(2)
    world.new()

    world.join(member_id=leader)
    [(text, _)] = world.new()

    assert text.startswith(f"Member {leader} (127.0.0.1), the leader, asked for a new assignment")


def test_what_changes_nothing_is_not_told() -> None:
    world = Told()
    _, other = world.stable_group(2)
    world.new()

    world.heartbeat(other, 1)
    world.sync(other, 1)
    world.heartbeat("unknown", 1)

    assert world.new() == []


def test_a_member_of_a_consumer_group_joins_and_times_out() -> None:
    world = Told()
    world.set_topics(TopicInfo("t", b"t" * 16, 2))
    world.join_consumer("a", "t")
    assert world.new() == [
        ("Member a (127.0.0.1) joined. The group is in epoch 2: new assignments go to 1 member.", "")
    ]

    world.advance(45_000)

    # As in Apache Kafka, an epoch that begins because a member has gone counts as no rebalance.
    assert world.counts.rebalances["consumer"] == 1
    assert world.new() == [
        (
            "Member a (127.0.0.1) timed out: it had sent no heartbeat for 45 s (session.timeout.ms=45000). "
            "The group is in epoch 3: it is empty.",
            SILENT,
        )
    ]


def test_a_group_waits_for_a_member_that_is_to_give_up_partitions() -> None:
    world = Told()
    world.set_topics(TopicInfo("t", b"t" * 16, 2))
    world.join_consumer("a", "t")
    world.join_consumer("b", "t")
    world.advance(world.config.consumer_settings("g").assignment_interval_ms)
    world.consumer("a", 2)

    assert awaited_by(world) == (
        "Member a (127.0.0.1) has not given up 1 partition that others are to get: "
        "the group waits at most 1 min."
    )
