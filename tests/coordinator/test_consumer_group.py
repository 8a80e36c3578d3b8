"""Consumer groups (KIP-848): joining, moving partitions without two owners, epochs, leaving, time."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.consumer.state import GroupState, MemberState
from pykafka_broker.coordinator.groups.core.events import ConsumerGroupHeartbeatResult
from pykafka_broker.coordinator.groups.core.offset_record import OffsetRecord
from pykafka_broker.coordinator.groups.core.record import AnyRecord, Record
from pykafka_broker.coordinator.groups.core.records import Entry, replay
from pykafka_broker.coordinator.groups.core.topics import TopicInfo, group_hash, topic_hash
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records import group as m
from tests.support.groups import GroupWorld, MemberMetadata, plain
from tests.support.members import Member

T, U = b"t" * 16, b"u" * 16
TOPIC = TopicInfo("t", T, 6)


@pytest.fixture
def world() -> GroupWorld:
    world = GroupWorld()
    world.set_topics(TOPIC, TopicInfo("u", U, 2))
    return world


def error(result: ConsumerGroupHeartbeatResult) -> ErrorCode:
    assert (result.member_id, result.assignment) == (None, None) or result.error is ErrorCode.NONE
    return result.error


def kinds(records: tuple[Entry, ...]) -> list[str]:
    """The records by what they are about; a deletion has a minus."""
    return [_kind(plain(record)) for record in records]


def _kind(record: AnyRecord) -> str:
    if isinstance(record, OffsetRecord):
        return "OffsetCommit" if record.committed is not None else "-OffsetCommit"
    name = type(record.key).__name__.removeprefix("ConsumerGroup").removesuffix("Key")
    return name if record.value is not None else f"-{name}"


def test_the_first_member_gets_everything_in_epoch_2(world: GroupWorld) -> None:
    answer = world.join_consumer("a", "t")

    assert answer == ConsumerGroupHeartbeatResult(
        member_id="a", member_epoch=2, heartbeat_interval_ms=5_000, assignment=((T, (0, 1, 2, 3, 4, 5)),)
    )
    assert kinds(world.last_records) == [
        "MemberMetadata",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]
    assert world.consumer_group().state is GroupState.STABLE
    assert replay(world.log).groups["g"] == world.consumer_group()._replace(refresh_deadline_ms=0)


def test_a_heartbeat_without_news_changes_nothing_and_brings_nothing(world: GroupWorld) -> None:
    world.join_consumer("a", "t")
    before = world.state

    answer = world.consumer("a", 2)

    assert answer == ConsumerGroupHeartbeatResult(member_id="a", member_epoch=2, heartbeat_interval_ms=5_000)
    assert world.state is before
    assert world.timers["consumer-session", "g", "a"] == world.now_ms + 45_000


def test_a_newcomer_waits_until_others_have_given_up_its_partitions(world: GroupWorld) -> None:
    world.join_consumer("a", "t")
    world.advance(1_000)

    assert world.join_consumer("b", "t").assignment == ()
    assert world.consumer_group().members["b"].state is MemberState.UNRELEASED_PARTITIONS
    # The first member is told to keep three, in its old epoch, and has its rebalance timeout to do so.
    told = world.consumer("a", 2, owned={T: range(6)})
    assert told.member_epoch == 2
    kept = dict(told.assignment or ())[T]
    assert len(kept) == 3
    assert world.consumer_group().members["a"].state is MemberState.UNREVOKED_PARTITIONS
    assert world.timers["consumer-revocation", "g", "a"] == world.now_ms + 60_000
    assert world.consumer("b", 3).assignment is None
    assert world.consumer_group().state is GroupState.RECONCILING
    # It has done so: it moves on, and the newcomer gets the rest.
    assert world.consumer("a", 2, owned={T: kept}).member_epoch == 3
    assert ("consumer-revocation", "g", "a") not in world.timers
    rest = tuple(sorted(set(range(6)) - set(kept)))
    assert world.consumer("b", 3).assignment == ((T, rest),)
    assert world.consumer_group().state is GroupState.STABLE


def test_a_member_that_gives_nothing_up_in_time_is_fenced(world: GroupWorld) -> None:
    world.join_consumer("a", "t")
    world.advance(1_000)
    world.join_consumer("b", "t")
    world.consumer("a", 2, owned={T: range(6)})
    for _ in range(6):
        world.advance(9_999)
        world.consumer("a", 2, owned={T: range(6)})
        assert world.consumer("b", 3).assignment is None

    world.advance(6)

    assert list(world.consumer_group().members) == ["b"]
    assert error(world.consumer("a", 2, owned={T: range(6)})) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.consumer("b", 3).assignment == ((T, (0, 1, 2, 3, 4, 5)),)


def test_a_silent_member_is_fenced_and_its_partitions_are_given_to_others(world: GroupWorld) -> None:
    world.join_consumer("a", "t")
    world.advance(1_000)
    world.join_consumer("b", "t")
    world.advance(40_000)
    world.consumer("b", 3)

    world.advance(4_000)

    assert list(world.consumer_group().members) == ["b"]
    assert world.consumer("b", 3).assignment == ((T, (0, 1, 2, 3, 4, 5)),)


JOINING = MemberMetadata(topics=("t",), rebalance_timeout_ms=5_000)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"group_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"instance": ""}, ErrorCode.INVALID_REQUEST),
        ({"metadata": JOINING._replace(rack="")}, ErrorCode.INVALID_REQUEST),
        ({"metadata": JOINING._replace(rebalance_timeout_ms=-1)}, ErrorCode.INVALID_REQUEST),
        ({"owned": None}, ErrorCode.INVALID_REQUEST),
        ({"owned": {T: [1]}}, ErrorCode.INVALID_REQUEST),
        ({"metadata": JOINING._replace(topics=None)}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_epoch": 1}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"metadata": JOINING._replace(assignor="sticky")}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"metadata": JOINING._replace(regex="a(")}, ErrorCode.INVALID_REGULAR_EXPRESSION),
    ],
)
def test_requests_that_make_no_sense_are_refused_and_leave_no_trace(
    world: GroupWorld, said: dict[str, object], expected: ErrorCode
) -> None:
    before = world.state
    request: dict[str, Any] = {"member_id": "a", "member_epoch": 0, "metadata": JOINING, "owned": {}, **said}

    assert error(world.consumer(**request)) is expected
    assert world.state == before
    assert world.log == []


def test_epochs_that_are_not_the_members_fence_it(world: GroupWorld) -> None:
    world.join_consumer("a", "t")
    world.advance(1_000)
    world.join_consumer("b", "t")
    world.consumer("a", 2, owned={T: range(6)})
    kept = [*world.consumer_group().members["a"].assigned[T]]
    assert world.consumer("a", 2, owned={T: kept}).member_epoch == 3

    assert error(world.consumer("a", 4)) is ErrorCode.FENCED_MEMBER_EPOCH
    assert error(world.consumer("a", 1)) is ErrorCode.FENCED_MEMBER_EPOCH
    # It has lost the answer to its last heartbeat, and says what it owns: it may repeat itself.
    assert error(world.consumer("a", 2)) is ErrorCode.FENCED_MEMBER_EPOCH
    assert error(world.consumer("a", 2, owned={T: range(6)})) is ErrorCode.FENCED_MEMBER_EPOCH
    assert world.consumer("a", 2, owned={T: kept}).member_epoch == 3


def test_a_member_that_leaves_is_forgotten_and_the_empty_group_stays(world: GroupWorld) -> None:
    world.join_consumer("a", "t")

    answer = world.consumer("a", -1)

    assert answer == ConsumerGroupHeartbeatResult(member_id="a", member_epoch=-1)
    assert kinds(world.last_records) == [
        "-CurrentMemberAssignment",
        "-TargetAssignmentMember",
        "-MemberMetadata",
        "Metadata",
    ]
    assert world.consumer_group().state is GroupState.EMPTY
    assert world.timers == {}
    assert replay(world.log).groups["g"] == world.consumer_group()._replace(refresh_deadline_ms=0)


def test_a_static_member_that_restarts_gets_the_same_partitions_without_a_rebalance(
    world: GroupWorld,
) -> None:
    world.join_consumer("a", "t", instance="pod-a")
    world.advance(1_000)
    world.join_consumer("b", "t", instance="pod-b")
    kept = dict(world.consumer("a", 2, owned={T: range(6)}, instance="pod-a").assignment or ())[T]
    world.consumer("a", 2, owned={T: kept}, instance="pod-a")
    theirs = world.consumer("b", 3, instance="pod-b").assignment
    assert error(world.join_consumer("b2", "t", instance="pod-b")) is ErrorCode.UNRELEASED_INSTANCE_ID

    assert world.consumer("b", -2, instance="pod-b").member_epoch == -2
    back = world.join_consumer("b2", "t", instance="pod-b")

    assert (back.member_epoch, back.assignment) == (3, theirs)
    assert world.consumer_group().group_epoch == 3
    assert error(world.consumer("b", 3, instance="pod-b")) is ErrorCode.FENCED_INSTANCE_ID
    assert error(world.consumer("c", 3, instance="pod-c")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert replay(world.log).groups["g"] == world.consumer_group()._replace(refresh_deadline_ms=0)


def test_a_static_member_that_does_not_come_back_is_fenced_with_its_session(world: GroupWorld) -> None:
    world.join_consumer("a", "t", instance="pod-a")
    world.consumer("a", -2, instance="pod-a")

    world.advance(45_000)

    assert not world.consumer_group().members


def test_new_partitions_and_new_topics_reach_the_members(world: GroupWorld) -> None:
    world.join_consumer("a", "t", "later")
    world.advance(1_000)

    world.set_topics(TOPIC._replace(partition_count=7), TopicInfo("later", U, 1))

    answer = world.consumer("a", 2)
    assert answer.member_epoch == 3
    assert dict(answer.assignment or ()) == {T: tuple(range(7)), U: (0,)}


def test_a_deleted_topic_is_taken_away(world: GroupWorld) -> None:
    world.join_consumer("a", "t", "u")
    world.advance(1_000)

    world.set_topics(TOPIC)

    answer = world.consumer("a", 2)
    assert (answer.member_epoch, answer.assignment) == (2, ((T, (0, 1, 2, 3, 4, 5)),))


def test_topics_without_subscribers_do_not_rebalance_a_group(world: GroupWorld) -> None:
    world.join_consumer("a", "t")

    world.set_topics(TOPIC, TopicInfo("u", U, 99))

    assert world.consumer("a", 2).member_epoch == 2
    assert world.consumer_group().group_epoch == 2


def test_a_member_says_only_what_has_changed(world: GroupWorld) -> None:
    world.join_consumer("a", "t", rack="r1", assignor="range")
    world.advance(1_000)

    answer = world.consumer("a", 2, MemberMetadata(topics=("u",)))

    member = world.consumer_group().members["a"]
    assert (member.rack_id, member.server_assignor) == ("r1", "range")
    assert (member.rebalance_timeout_ms, member.subscribed_topic_names) == (60_000, frozenset({"u"}))
    # It still owns the other topic, so it has to give that up first.
    assert (answer.member_epoch, answer.assignment) == (2, ())
    assert world.consumer("a", 2, owned={}).assignment == ((U, (0, 1)),)


def test_assignments_are_made_once_a_second_at_most(world: GroupWorld) -> None:
    world.join_consumer("a", "t")
    world.advance(999)

    late = world.join_consumer("b", "t")
    assert (late.member_epoch, late.assignment) == (2, ())
    assert world.consumer_group().state is GroupState.ASSIGNING

    world.advance(1)
    assert world.consumer("b", 2).member_epoch == 3
    assert world.consumer_group().assignment_epoch == 3


def test_a_full_group_takes_no_new_member(world: GroupWorld) -> None:
    world.config = world.config._replace(consumer_group_max_size=1)
    world.join_consumer("a", "t")

    assert error(world.join_consumer("b", "t")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.consumer("a", 2).error is ErrorCode.NONE


def test_a_member_without_an_id_is_given_one_in_version_0(world: GroupWorld) -> None:
    answer = world.join_consumer("", "t", version=0)

    assert answer.member_id is not None
    assert answer.member_id.startswith("made-")
    assert list(world.consumer_group().members) == [answer.member_id]


def test_a_restarted_broker_knows_the_group_and_expects_its_members(world: GroupWorld) -> None:
    world.join_consumer("a", "t")
    world.advance(1_000)
    world.join_consumer("b", "t")
    world.consumer("a", 2, owned={T: range(6)})

    other = world.reload()

    assert other.consumer_group() == world.consumer_group()._replace(refresh_deadline_ms=0)
    assert other.timers["consumer-session", "g", "a"] == other.now_ms + 45_000
    assert other.timers["consumer-revocation", "g", "a"] == other.now_ms + 60_000
    kept = [*other.consumer_group().members["a"].assigned[T]]
    assert other.consumer("a", 2, owned={T: kept}).member_epoch == 3


def test_a_member_in_an_unknown_state_is_fenced_and_joins_again(world: GroupWorld) -> None:
    world.join_consumer("a", "t")
    for record in world.log:
        if isinstance(record, Record) and isinstance(
            record.value, m.ConsumerGroupCurrentMemberAssignmentValue
        ):
            record.value.state = 9
    other = world.reload()

    assert other.consumer_group().members["a"].state is MemberState.UNKNOWN
    assert error(other.consumer("a", 2, owned={T: range(6)})) is ErrorCode.FENCED_MEMBER_EPOCH
    assert other.join_consumer("a", "t").assignment == ((T, (0, 1, 2, 3, 4, 5)),)
    assert other.consumer_group().members["a"].state is MemberState.STABLE


def test_fingerprints_are_those_of_apache_kafka() -> None:
    topic_id = bytes.fromhex("01020304050607081112131415161718")
    racked = TopicInfo("töpic", topic_id, 2, (("r1",), ()))

    # Computed with the classes that Apache Kafka 4.3.1 uses.
    assert topic_hash(racked) == -4801005882545145069
    both = racked._replace(racks=(("r2", "r1"), ()))
    assert topic_hash(both) == topic_hash(both._replace(racks=(("r1", "r2"), ())))
    assert group_hash(["nothing"], GroupWorld().state.topics) == 0


def test_a_storm_of_300_consumer_groups_settles_without_a_member_being_lost() -> None:
    world = GroupWorld()
    world.set_topics(TOPIC)
    groups = [f"group-{number}" for number in range(300)]
    epochs: dict[tuple[str, str], int] = {}
    for name in "abc":
        for group in groups:
            answer = world.join_consumer(name, "t", group_id=group)
            epochs[group, name] = answer.member_epoch
        world.advance(500)

    # The topic of all groups grows.
    world.set_topics(TOPIC._replace(partition_count=9))
    for _ in range(6):
        world.advance(5_000)
        for (group, name), epoch in epochs.items():
            held = world.consumer_group(group).members[name].assigned
            answer = world.consumer(name, epoch, group_id=group, owned=held)
            assert answer.error is ErrorCode.NONE
            epochs[group, name] = answer.member_epoch

    for group in groups:
        settled = world.consumer_group(group)
        assert settled.state is GroupState.STABLE
        assert [len(member.assigned[T]) for member in settled.members.values()] == [3, 3, 3]


def test_a_regular_expression_is_resolved_when_it_is_new_and_when_topics_come(world: GroupWorld) -> None:
    world.join_consumer("a", regex="t.*")
    assert [work.regexes for work in world.work] == [("t.*",)]
    world.resolve_regexes()
    assert world.consumer("a", 1).assignment == ((T, (0, 1, 2, 3, 4, 5)),)

    # Another member with the same expression needs no new answer, one with another does.
    world.advance(10_001)
    world.join_consumer("b", regex="t.*")
    assert world.work == []
    world.join_consumer("c", regex="u.*")
    assert [set(work.regexes) for work in world.work] == [{"t.*", "u.*"}]
    world.resolve_regexes()
    assert set(world.consumer_group().regexes) == {"t.*", "u.*"}

    # New topics are looked at, but not within ten seconds of the last time.
    world.set_topics(TOPIC, TopicInfo("t-new", U, 1))
    world.consumer("a", 2)
    assert world.work == []
    world.advance(10_001)
    world.consumer("a", 2)
    world.resolve_regexes()
    assert world.consumer_group().regexes["t.*"].topics == {"t", "t-new"}

    # The last one to use an expression takes it along.
    world.consumer("c", -1)
    assert set(world.consumer_group().regexes) == {"t.*"}
    assert replay(world.log).groups["g"] == world.consumer_group()._replace(refresh_deadline_ms=0)


def test_an_expression_that_replaces_the_only_one_is_resolved_by_the_next_heartbeat(
    world: GroupWorld,
) -> None:
    # It was resolved at once, as the ten seconds had been forgotten with the expression before.
    world.join_consumer("a", regex="t.*")
    world.resolve_regexes()

    world.consumer("a", 1, MemberMetadata(regex="t"))
    assert set(world.consumer_group().regexes) == set()
    assert world.work == []
    assert world.consumer("a", world.consumer_group().members["a"].member_epoch).error is ErrorCode.NONE
    assert [work.regexes for work in world.work] == [("t",)]


def test_a_clock_that_is_set_back_does_not_hold_up_assignments_and_expressions(world: GroupWorld) -> None:
    # Both waited for the time of the last ones to come again, as in Apache Kafka 4.3.
    world.join_consumer("a", regex="t.*")
    world.resolve_regexes()
    world.consumer("a", 1)
    world.now_ms -= 600_000

    world.join_consumer("b", regex="t")
    world.resolve_regexes()
    world.consumer("b", world.consumer_group().members["b"].member_epoch)

    assert set(world.consumer_group().regexes) == {"t.*", "t"}
    assert world.consumer_group().assignment_epoch == world.consumer_group().group_epoch


def test_an_expression_is_looked_at_again_after_its_interval_even_if_nothing_happens(
    world: GroupWorld,
) -> None:
    world.config = world.config._replace(consumer_group_regex_refresh_interval_ms=30_000)
    world.join_consumer("a", regex="t.*")
    world.resolve_regexes()
    world.advance(30_000)
    world.consumer("a", 1)
    assert world.work == []
    world.advance(1)
    world.consumer("a", 2)
    assert len(world.work) == 1
    # While one answer is awaited, no second one is asked for; if there is none, it is asked for again.
    world.consumer("a", 2)
    assert len(world.work) == 1
    world.submit(events.RegexesResolved(world.now_ms, "g", world.now_ms, 1, None))
    world.consumer("a", 2)
    assert len(world.work) == 2


def test_offsets_of_subscribed_topics_stay_and_others_expire_by_their_commit() -> None:
    world = GroupWorld(
        GroupCoordinatorConfig(offsets_retention_ms=60_000, offsets_retention_check_interval_ms=30_000)
    )
    world.submit(events.Loaded(world.now_ms))
    world.set_topics(TOPIC)
    world.join_consumer("a", "t")
    world.commit({("t", 0): 5, ("old", 0): 6}, Member("a", 2), version=9)

    for _ in range(10):
        world.advance(10_000)
        world.consumer("a", 2)
    assert world.fetch() == {("t", 0): 5}

    world.consumer("a", -1)
    world.advance(30_000)
    assert "g" not in world.state.groups
    assert "g" not in replay(world.log).groups
    assert kinds(tuple(world.log))[-3:] == ["-TargetAssignmentMetadata", "-PartitionMetadata", "-Metadata"]


def test_what_is_too_long_to_be_stored_is_not_asked_whose_it_is(world: GroupWorld) -> None:
    world.join_consumer("a", "t")
    world.config = world.config._replace(offset_metadata_max_bytes=3)
    late, early = Member("a", 1), Member("a", 3)
    by_id: dict[str, Any] = {"version": 9, "topic_id": b"?" * 16}

    assert world.commit({("t", 0): 5}, late, **by_id) == {("t", 0): ErrorCode.STALE_MEMBER_EPOCH}
    assert world.commit({("t", 0): 5}, late, **by_id, metadata="long") == {
        ("t", 0): ErrorCode.OFFSET_METADATA_TOO_LARGE
    }
    assert world.commit({("t", 0): 5}, early, **by_id, metadata="long") == {
        ("t", 0): ErrorCode.STALE_MEMBER_EPOCH
    }


def test_of_assignors_that_as_many_ask_for_the_one_the_sender_alone_asks_for_is_taken(
    world: GroupWorld,
) -> None:
    """Apache Kafka counts the sender's wish last, which puts it in front; it used to be `uniform` always."""
    world.join_consumer("b", "t", assignor="uniform")
    world.advance(1_000)
    world.join_consumer("a", "t", assignor="range")

    targets = world.consumer_group().targets
    assert (targets["a"], targets["b"]) == ({T: frozenset({0, 1, 2})}, {T: frozenset({3, 4, 5})})


def test_members_of_the_same_place_are_served_as_apache_kafka_walks_its_table(world: GroupWorld) -> None:
    """Both ids have the same bucket of a Java map of 16; Apache puts them there as its own table has them,
    not in that in which they came.
    """
    world.set_topics(TopicInfo("t", T, 5))
    for member_id in ("member-3-94590762-v0", "member-1-94590762-v0", "member-0-94590762-v0"):
        world.join_consumer(member_id, "t")
        world.advance(1_000)
    world.consumer("member-0-94590762-v0", 4, MemberMetadata(topics=()))

    targets = {name: len(target.get(T, ())) for name, target in world.consumer_group().targets.items()}
    assert targets == {"member-3-94590762-v0": 2, "member-1-94590762-v0": 3, "member-0-94590762-v0": 0}
