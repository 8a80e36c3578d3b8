"""What the coordinator tells about a group: who joined, left or timed out, and what is so now."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.consumer import turn as consumer_turn
from pykafka_broker.coordinator.groups.core.consumer.state import ConsumerGroup, ConsumerMember
from pykafka_broker.coordinator.groups.core.events import Event
from pykafka_broker.coordinator.groups.core.share import turn as share_turn
from pykafka_broker.coordinator.groups.core.share.state import ShareGroup, ShareMember
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.streams import turn as streams_turn
from pykafka_broker.coordinator.groups.core.streams.state import StreamsGroup, StreamsMember
from pykafka_broker.coordinator.groups.core.topics import TopicInfo
from pykafka_broker.coordinator.groups.counts import Counts
from pykafka_broker.coordinator.groups.decision_texts import (
    CLASSIC_HEARTBEAT_INTERVAL_MS,
    LEFT,
    SILENT,
    SILENT_OR_SLOW,
    TOO_SLOW,
    decisions,
)
from pykafka_broker.coordinator.groups.present import (
    COMES_AND_GOES,
    INTERVALS,
    NOT_MOVING,
    NOTHING_COMMITTED,
    WITHOUT_HOLDER,
    Moment,
    behind,
    comings,
    members,
)
from pykafka_broker.machine.history import Decision, History, Kind
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, TopicPartition
from tests.support.groups import GroupWorld
from tests.support.members import Member
from tests.support.pages import REPOSITORY

PAGE = (REPOSITORY / "docs" / "troubleshooting.md").read_text()


def is_quoted(piece: str, told: str) -> None:
    """The page about groups that are stuck has what is told of one."""
    assert piece in told
    assert f'"{piece}"' in PAGE


class Told(GroupWorld):
    """A world that writes down what has been decided."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Decision] = []
        self.history = History(lambda: self.now_ms)
        self.counts = Counts()

    def step(self, event: Event) -> Step[Groups]:
        step = super().step(event)
        for decision in decisions(self.state, event, step.state, self.config):
            self.told.append(decision)
            self.history.tell(decision)
        self.counts.count_rebalance(self.state.groups.get("g"), event, step.state.groups.get("g"))
        return step

    def new(self) -> list[tuple[str, str]]:
        """The texts and remedies since the last look."""
        told, self.told = self.told, []
        assert all((decision.kind, decision.names) == (Kind.GROUP, ("g",)) for decision in told)
        return [(decision.text, decision.remedy) for decision in told]

    @property
    def moment(self) -> Moment:
        return Moment(self.state, "g", self.config, self.now_ms, self.left_ms)

    def left_ms(self, key: Hashable) -> int | None:
        return self.timers[key] - self.now_ms if key in self.timers else None

    def members(self) -> list[tuple[str, str]]:
        """What is told of the members now."""
        return [*members(self.moment)]

    def behind(self, ends: dict[tuple[str, int], int]) -> list[str]:
        """What is told of partitions that begin at offset 5 and have these ends."""

        def span_of(*place: str | int) -> tuple[int, int] | None:
            return (5, ends[place]) if place in ends else None

        history = self.history.about(Kind.GROUP, "g")
        return [f"{text} {remedy}" for text, remedy in behind(self.moment, span_of, history)]

    def comings(self) -> list[tuple[str, str]]:
        """Who comes and goes."""
        return [*comings(self.history.about(Kind.GROUP, "g"), self.now_ms)]


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
    world.advance(200)
    assert world.members() == [
        (
            f"The group waits for member {other} (127.0.0.1) to assign the partitions, as their leader, "
            "200 ms so far: a member does so with its next heartbeat or poll().",
            "",
        )
    ]
    world.sync(other, 2, {other: b"all"})
    assert world.new() == [
        (f"Generation 2 has 1 member; member {other} assigns the partitions.", ""),
        ("Generation 2 has its assignment.", ""),
    ]
    assert world.counts.completed_rebalances == 2


def test_a_member_that_sends_heartbeats_and_does_not_poll_is_left_behind_by_the_rebalance() -> None:
    world = Told()
    late, other = world.stable_group(2)
    world.leave(other)
    assert world.new()[-1] == (
        f"Member {other} (127.0.0.1) left. The group rebalances: generation 1 ends, and 1 member must join "
        "again.",
        LEFT,
    )
    waits = f"The group waits for member {late} (127.0.0.1) to join again"
    world.advance(198)
    assert world.members() == [
        (f"{waits}, 198 ms so far: a member does so with its next heartbeat or poll().", "")
    ]

    for _ in range(11):
        world.advance(5_000)
        world.heartbeat(late, 1)
    assert world.members() == [
        (
            f"{waits}, 55.2 s so far. It sent a heartbeat 0 ms ago: its process runs, but does not call "
            "poll(), or does not return from it. The group goes on without it in 4.8 s, when its rebalance "
            "time-out (max.poll.interval.ms) is over.",
            TOO_SLOW,
        )
    ]
    is_quoted("its process runs, but does not call poll(), or does not return from it", world.members()[0][0])
    world.advance(5_000)

    assert world.members() == []
    assert world.new() == [
        (
            f"Member {late} (127.0.0.1) was removed: it did not join again within the rebalance time-out of "
            "1 min, though it sent heartbeats. The group is empty.",
            TOO_SLOW,
        )
    ]


def test_a_member_that_is_killed_ends_a_rebalance_with_its_session_and_is_not_called_slow() -> None:
    world = Told()
    killed, other = world.stable_group(2, session_timeout_ms=45_000, rebalance_timeout_ms=300_000)
    world.advance(6_001)
    world.leave(other)

    assert world.members() == [
        (
            f"The group waits for member {killed} (127.0.0.1) to join again, 0 ms so far. It has sent no "
            "heartbeat for 6 s. The group goes on without it in 39 s, when its session ends "
            "(session.timeout.ms=45000).",
            SILENT,
        )
    ]


def test_whether_a_member_runs_is_not_known_if_its_session_outlasts_the_rebalance() -> None:
    world = Told()
    _, other = world.stable_group(2, session_timeout_ms=45_000, rebalance_timeout_ms=30_000)
    world.leave(other)
    world.new()

    world.advance(30_000)

    [(text, remedy)] = world.new()
    assert text.endswith("within the rebalance time-out of 30 s. The group is empty.")
    assert remedy == SILENT_OR_SLOW


def test_a_stable_group_tells_which_member_has_sent_no_heartbeat() -> None:
    world = Told()
    stopped, other = world.stable_group(2, session_timeout_ms=45_000)
    world.advance(6_000)
    assert world.members() == []
    for _ in range(5):
        world.advance(5_000)
        world.heartbeat(other, 1)

    assert world.members() == [
        (
            f"Member {stopped} (127.0.0.1) has sent no heartbeat for 31 s. Without one it is removed in "
            "14 s, when its session ends (session.timeout.ms=45000).",
            SILENT,
        )
    ]
    is_quoted("has sent no heartbeat for 31 s", world.members()[0][0])
    assert f"two intervals of heartbeats ({INTERVALS * CLASSIC_HEARTBEAT_INTERVAL_MS // 1_000} s for " in PAGE


@pytest.mark.parametrize(
    ("turn", "group", "member"),
    [
        (consumer_turn, ConsumerGroup.new("g"), ConsumerMember("m")),
        (share_turn, ShareGroup.new("g"), ShareMember("m")),
        (streams_turn, StreamsGroup.new("g"), StreamsMember("m")),
    ],
)
def test_the_sessions_of_groups_of_all_kinds_are_found(turn: Any, group: Any, member: Any) -> None:
    state = Groups.empty().with_group(group._replace(members=group.members.with_item("m", member)))

    def left_ms(key: Hashable) -> int | None:
        return 14_000 if key == turn.session_timer("g", "m") else None

    told = members(Moment(state, "g", GroupCoordinatorConfig(), 0, left_ms))

    ends = "Without one it is removed in 14 s, when its session ends (session.timeout.ms=45000)."
    assert [*told] == [(f"Member m has sent no heartbeat for 31 s. {ends}", SILENT)]


def test_a_group_that_was_empty_tells_what_it_waits_for() -> None:
    world = Told()
    world.new_member_id()
    world.join(version=3)
    world.advance(1_000)

    assert [text for text, _ in world.members()] == [
        "The group was empty: it waits 2 s more for further members (group.initial.rebalance.delay.ms).",
        "1 client got a member id to join with, and did not join with it yet.",
    ]


def assigned(*numbers: int) -> bytes:
    """The assignment of partitions of topic orders to a classic member."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic="orders", partitions=list(numbers))]
    )
    return b"\x00\x00" + encode(message, 0)


def test_a_member_holds_partitions_whose_offset_it_does_not_commit() -> None:
    world = Told()
    [member] = world.stable_group(1)
    world.join(member_id=member)
    world.sync(member, 2, {member: assigned(0, 1, 4)})
    world.commit({("orders", 0): 5, ("orders", 1): 5, ("orders", 2): 5, ("orders", 3): 5}, Member(member, 2))
    world.advance(9_000)
    world.commit({("orders", 1): 6}, Member(member, 2))
    world.heartbeat(member, 2)
    ends = {("orders", 0): 125, ("orders", 1): 125, ("orders", 2): 6, ("orders", 3): 5, ("orders", 4): 8}
    assert world.behind(ends) == []

    world.advance(9_000)

    holds = f"Member {member} (127.0.0.1) holds"
    committed = "orders-0 (120 records behind, last commit 18 s ago)"
    not_committed = "orders-4 (3 records, no commit in the 18 s since it was assigned)"
    without_holder = f"No member holds orders-2 (1 record behind, last commit 18 s ago). {WITHOUT_HOLDER}"
    assert world.members()[0][0].startswith(f"Member {member} (127.0.0.1) has sent no heartbeat for 9 s.")
    assert world.behind(ends) == [f"{holds} {committed}, {not_committed}. ", without_holder]
    world.heartbeat(member, 2)
    assert world.behind(ends) == [
        f"{holds} {committed}. {NOT_MOVING}",
        without_holder,
        f"{holds} {not_committed}. {NOTHING_COMMITTED}",
    ]
    is_quoted("holds orders-0 (120 records behind, last commit 18 s ago)", world.behind(ends)[0])

    another = world.new_member_id()
    world.join(member_id=another)
    assert world.behind(ends) == [], "members that wait for a rebalance commit nothing"
    world.join(member_id=member)
    world.sync(member, 3, {member: assigned(0), another: assigned(1, 4)})
    assert world.behind(ends) == [], "the new holder has just begun"


def test_a_client_that_comes_and_goes_is_counted_under_its_name_whatever_its_member_ids() -> None:
    world = Told()
    stays, *_ = world.stable_group(1)
    for generation in range(1, 14, 2):
        comes = world.new_member_id()
        world.join(member_id=comes)
        world.join(member_id=stays)
        world.advance(1_000)
        assert world.group().generation == generation + 1
        world.leave(comes)
        world.join(member_id=stays)
        world.advance(1_000)

    assert world.comings() == [
        (
            "The group rebalanced 15 times, the first time 17 s and the last time 1 s ago: client at "
            "127.0.0.1 joined 8 times and left 7 times.",
            COMES_AND_GOES,
        )
    ]
    is_quoted("client at 127.0.0.1 joined 8 times and left 7 times", world.comings()[0][0])
    world.advance(601_000)
    assert world.comings() == []


def test_members_that_fail_at_one_record_again_and_again_lead_to_it() -> None:
    world = Told()
    ends = {("orders", 5): 356, ("orders", 6): 9}
    [member] = world.stable_group(1)
    world.commit({("orders", 5): 236, ("orders", 6): 9, ("orders", 7): 9}, Member(member, 1))
    world.leave(member)
    for _ in range(3):
        assert world.behind(ends) == []
        world.advance(500)
        [member] = world.stable_group(1)
        world.leave(member)

    assert world.comings()[0][0].endswith(": client at 127.0.0.1 joined 4 times and left 4 times.")
    assert world.behind(ends) == [
        "orders-5 is 120 records behind. Since its last commit, 10.5 s ago, members joined 3 times and went "
        "3 times. If each fails at the same record, it is at orders-5 offset 236 or after it: "
        "`pykafka-broker consume orders --partition 5 --from 236 --max-messages 100 "
        "--print offset,key,value`"
    ]
    first, second = world.behind(ends | {("orders", 7): 12})
    assert first.startswith("orders-5 is 120 records behind. Since ")
    assert second.endswith(
        " ago, members joined 3 times and went 3 times. If each fails at the same record, it is in one of "
        "these partitions, at its offset or after it: "
        "`pykafka-broker consume orders --partition 5 --from 236 --max-messages 100 "
        "--print offset,key,value`, "
        "`pykafka-broker consume orders --partition 7 --from 9 --max-messages 100 "
        "--print offset,key,value`"
    )
    is_quoted(
        "members joined 3 times and went 3 times",
        world.behind(ends)[0],
    )


def test_a_client_that_fails_before_its_first_commit_leads_to_the_first_record() -> None:
    world = Told()
    for generation in range(1, 11, 3):
        [member] = world.stable_group(1)
        world.join(member_id=member)
        world.sync(member, generation + 1, {member: assigned(4)})
        world.advance(500)
        if generation < 10:
            assert world.behind({("orders", 4): 8}) == []
            world.leave(member)

    assert world.behind({("orders", 4): 8}) == [
        "orders-4 has 3 records and no commit. client at 127.0.0.1 joined 4 times and went 3 times. If each "
        "fails at the same record, it is at orders-4 offset 5 or after it: "
        "`pykafka-broker consume orders --partition 4 --from 5 --max-messages 100 "
        "--print offset,key,value`"
    ]


def test_an_offset_whose_records_were_removed_is_told_of_and_they_are_not_counted() -> None:
    world = Told()
    [member] = world.stable_group(1)
    world.commit({("orders", 5): 3}, Member(member, 1))

    removed = (
        "The committed offset 3 of orders-5 is below its log start offset 5: 2 offsets were removed before "
        "the group read them. `pykafka-broker doctor --group g` says how to choose the next one."
    )
    assert world.behind({("orders", 5): 5}) == [removed]
    world.leave(member)
    world.advance(11_000)
    told, behind = world.behind({("orders", 5): 9})
    assert told == removed
    assert behind.startswith("The group has orders-5 (4 records behind, last commit 11 s ago).")


def test_members_that_stay_do_not_fail_at_a_record() -> None:
    world = Told()
    stays, *others = world.stable_group(3)
    world.commit({("orders", 5): 236}, Member(stays, 1))
    world.leave(stays, *others)

    stays, *others = world.stable_group(3)
    assert world.behind({("orders", 5): 356}) == [], "the application was started again"

    for _ in range(3):
        world.advance(5_000)
        for member in (stays, *others):
            world.heartbeat(member, world.group().generation)
    [held] = world.behind({("orders", 5): 356})
    assert held.startswith("The group has orders-5 (120 records behind, last commit ")


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
        (
            "Member a (client at 127.0.0.1) joined. The group is in epoch 2: new assignments go to 1 member.",
            "",
        )
    ]

    assert world.commit({("t", 0): 5, ("t", 1): 7}, Member("a", 2), version=9) == {("t", 0): 0, ("t", 1): 0}
    world.advance(10_001)
    world.consumer("a", 2)
    [held] = world.behind({("t", 0): 9, ("t", 1): 7})
    assert held.startswith(
        "Member a (client at 127.0.0.1) holds t-0 (4 records behind, last commit 10 s ago)."
    )
    world.advance(10_001)
    [(silent, _)] = world.members()
    assert silent.startswith(
        "Member a (client at 127.0.0.1) has sent no heartbeat for 10 s. Without one it is removed in 35 s,"
    )

    world.advance(45_000)

    # As in Apache Kafka, an epoch that begins because a member has gone counts as no rebalance.
    assert world.counts.rebalances["consumer"] == 1
    assert world.new() == [
        (
            "Member a (client at 127.0.0.1) timed out: it had sent no heartbeat for 45 s "
            "(session.timeout.ms=45000). The group is in epoch 3: it is empty.",
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

    waits = "The group waits for member a (client at 127.0.0.1) to give up partitions"
    [(text, _)] = world.members()
    assert text == f"{waits}, 0 ms so far: a member does so with its next heartbeat or poll()."

    for _ in range(3):
        world.advance(5_000)
        world.consumer("a", 2)
    [(text, remedy), _] = world.members()
    world.commit({("t", 0): 5}, Member("a", 2))
    for _ in range(4):
        world.join_consumer("c", "t")
        world.consumer("c", -1)
    world.advance(11_000)
    world.consumer("a", 2)
    assert world.behind({("t", 0): 9}) == [], "the others that came and went never had it"
    assert text == (
        f"{waits}, 15 s so far. It sent a heartbeat 0 ms ago: its process runs, but does not call poll(), "
        "or does not return from it. The group goes on without it in 45 s, when its rebalance time-out "
        "(max.poll.interval.ms) is over."
    )
    assert remedy == TOO_SLOW
