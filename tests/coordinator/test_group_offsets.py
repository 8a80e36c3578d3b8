"""Committed offsets: who may commit, what is read back, and what is forgotten when."""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.groups.core.classic.records import group_record, group_tombstone
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Phase, Protocol
from pykafka_broker.coordinator.groups.core.committed_offset import CommittedOffset
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import (
    CommitOffsets,
    DeleteOffsets,
    DeleteOffsetsResult,
    FetchedOffset,
    FetchOffsets,
    FetchResult,
    Loaded,
    PartitionCommit,
    TopicCommit,
    TopicPartitions,
    TopicsDeleted,
)
from pykafka_broker.coordinator.groups.core.forgetting import (
    GROUPS_PER_EXPIRY_SLICE,
    OFFSETS_PER_EXPIRY_SLICE,
    OFFSETS_PER_SLICE,
)
from pykafka_broker.coordinator.groups.core.offset_record import OffsetRecord
from pykafka_broker.coordinator.groups.core.records import Entry, replay
from pykafka_broker.coordinator.groups.core.transitions import EXPIRY_TIMER
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.groups import START_MS, GroupWorld, subscription
from tests.support.members import Member

T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)
OK = ErrorCode.NONE
DAY_MS = 24 * 60 * 60 * 1000
TOPIC_ID, OTHER_ID = b"\1" * 16, b"\2" * 16


# ---- committing ----


def test_a_commit_for_a_group_that_does_not_exist_creates_it() -> None:
    world = GroupWorld()

    assert world.commit({T0: 5}, metadata="m") == {T0: OK}

    assert world.group().is_simple
    assert world.fetch() == {T0: 5}
    assert world.log == [
        OffsetRecord("g", "t", 0, CommittedOffset(5, 7, "m", START_MS)),
    ]


def test_a_commit_of_no_partitions_creates_a_group_too() -> None:
    world = GroupWorld()

    assert world.commit({}) == {}

    assert world.group().is_simple
    assert world.log == []


@pytest.mark.parametrize(
    ("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_commit_of_a_generation_needs_the_group(version: int, error: ErrorCode) -> None:
    world = GroupWorld()

    assert world.commit({T0: 5}, Member("m", 1), version=version) == {T0: error}
    assert len(world.state.groups) == 0


def test_a_member_commits_in_its_generation_and_shows_that_it_is_alive() -> None:
    world = GroupWorld()
    (member,) = world.stable_group()
    world.advance(5_000)

    assert world.commit({T0: 5, T1: 6}, Member(member, 1)) == {T0: OK, T1: OK}

    assert world.timers["session", "g", member] == world.now_ms + 10_000


def test_members_of_the_last_generation_may_commit_before_they_rejoin() -> None:
    world = GroupWorld()
    leader, follower = world.stable_group(2)
    world.join(member_id=leader)
    world.advance(5_000)

    assert world.commit({T0: 5}, Member(follower, 1)) == {T0: OK}
    assert world.timers["session", "g", follower] == world.now_ms + 10_000


@pytest.mark.parametrize(
    ("member", "generation", "error"),
    [
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("unknown", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("unknown", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("client-1", 0, ErrorCode.ILLEGAL_GENERATION),
        ("client-1", -1, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_strangers_may_not_commit_for_a_group_with_members(
    member: str, generation: int, error: ErrorCode
) -> None:
    world = GroupWorld()
    world.stable_group()

    assert world.commit({T0: 5, U0: 1}, Member(member, generation)) == {T0: error, U0: error}
    assert world.fetch() == {}


def test_commits_are_refused_while_the_assignment_is_made() -> None:
    world = GroupWorld()
    token = world.join(version=3)
    world.advance(3_000)

    answer = world.commit({T0: 5}, Member(world.joined(token).member_id, 1))

    assert answer == {T0: ErrorCode.REBALANCE_IN_PROGRESS}


def test_a_group_without_members_takes_commits_of_no_generation_only() -> None:
    world = GroupWorld()
    (member,) = world.stable_group()
    world.leave(member)

    assert world.commit({T0: 5}) == {T0: OK}
    assert world.commit({T0: 6}, Member(member, 2)) == {T0: ErrorCode.UNKNOWN_MEMBER_ID}


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ("x" * 4096, OK),
        ("x" * 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("é" * 4096, OK),
        ("😀" * 2048, OK),
        ("😀" * 2049, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_metadata_is_limited_in_the_characters_java_counts(metadata: str, error: ErrorCode) -> None:
    world = GroupWorld()

    assert world.commit({T0: 5}, metadata=metadata) == {T0: error}


def test_missing_metadata_is_read_back_as_empty_and_negative_offsets_are_kept() -> None:
    world = GroupWorld()

    world.commit({T0: -3})

    assert world.state.committed("g", "t", 0) == CommittedOffset(-3, 7, "", START_MS)


def test_a_commit_with_its_own_retention_is_stored_with_its_expiry_and_without_its_epoch() -> None:
    world = GroupWorld()

    world.commit({T0: 5}, version=4, retention_ms=1_000, topic_id=TOPIC_ID)

    committed = world.state.committed("g", "t", 0)
    assert committed == CommittedOffset(5, -1, "", START_MS, START_MS + 1_000)
    assert replay(world.log).committed("g", "t", 0) == committed


def test_a_retention_that_outlives_all_clocks_is_cut_to_the_last_moment_there_is() -> None:
    world = GroupWorld()

    world.commit({T0: 5}, version=4, retention_ms=2**63 - 1)

    assert world.state.committed("g", "t", 0) == CommittedOffset(
        5, commit_timestamp_ms=START_MS, expire_timestamp_ms=2**63 - 1
    )


def test_the_newest_commit_of_a_request_that_names_a_partition_twice_wins() -> None:
    world = GroupWorld()
    twice = tuple(TopicCommit("t", (PartitionCommit(0, offset),)) for offset in (6, 7))

    world.ask(CommitOffsets, world.now_ms, 8, "g", twice)

    assert world.fetch() == {T0: 7}
    assert replay(world.log) == world.state


def test_the_empty_group_id_is_a_group_of_its_own() -> None:
    world = GroupWorld()

    assert world.commit({T0: 5}, group_id="") == {T0: OK}
    assert world.fetch("") == {T0: 5}


# ---- fetching ----


def fetch(world: GroupWorld, *topics: TopicPartitions) -> FetchResult:
    result = world.ask(FetchOffsets, "g", topics)
    assert isinstance(result, FetchResult)
    return result


def test_what_is_not_committed_reads_as_minus_one_without_an_error() -> None:
    world = GroupWorld()
    world.commit({T0: 5}, metadata="m")

    assert fetch(world, TopicPartitions("t", (0, 1)), TopicPartitions("u", (0,))) == FetchResult(
        OK,
        (
            ("t", bytes(16), (FetchedOffset(0, 5, 7, "m"), FetchedOffset(1, -1, -1, "", OK))),
            ("u", bytes(16), (FetchedOffset(0, -1, -1, "", OK),)),
        ),
    )


def test_a_group_that_does_not_exist_reads_like_one_without_offsets() -> None:
    world = GroupWorld()

    assert fetch(world, TopicPartitions("t", (0,))).topics == (("t", bytes(16), (FetchedOffset(0),)),)
    assert world.fetch("unknown") == {}


def test_an_offset_of_a_topic_that_was_deleted_does_not_count_for_its_namesake() -> None:
    world = GroupWorld()
    world.commit({T0: 5}, topic_id=TOPIC_ID)

    same, other, unnamed = (
        fetch(world, TopicPartitions("t", (0,), topic_id)).topics[0][2][0].offset
        for topic_id in (TOPIC_ID, OTHER_ID, bytes(16))
    )

    assert (same, other, unnamed) == (5, -1, 5)


def test_all_offsets_are_told_with_their_topic_ids() -> None:
    world = GroupWorld()
    world.commit({T0: 5, T1: 6}, topic_id=TOPIC_ID)
    world.commit({U0: 7})

    result = world.ask(FetchOffsets, "g", None)

    assert result == FetchResult(
        OK,
        (
            ("t", TOPIC_ID, (FetchedOffset(0, 5, 7), FetchedOffset(1, 6, 7))),
            ("u", bytes(16), (FetchedOffset(0, 7, 7),)),
        ),
    )


# ---- deleting ----


def delete(world: GroupWorld, *topics: TopicPartitions) -> DeleteOffsetsResult:
    result = world.ask(DeleteOffsets, "g", topics)
    assert isinstance(result, DeleteOffsetsResult)
    return result


def test_offsets_of_topics_without_subscribers_can_be_deleted() -> None:
    world = GroupWorld()
    (member,) = world.stable_group()
    world.commit({T0: 5, U0: 6}, Member(member, 1))

    result = delete(world, TopicPartitions("t", (0,)), TopicPartitions("u", (0, 1)))

    assert result == DeleteOffsetsResult(
        OK, (("t", ((0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),)), ("u", ((0, OK), (1, OK))))
    )
    assert world.last_records == (OffsetRecord("g", "u", 0, None),)
    assert world.fetch() == {T0: 5}


def test_deleting_the_last_offset_of_a_simple_group_leaves_the_group() -> None:
    world = GroupWorld()
    world.commit({T0: 5})

    delete(world, TopicPartitions("t", (0,)))

    assert world.fetch() == {}
    assert world.group().phase is Phase.EMPTY


def test_offsets_of_a_group_that_does_not_exist_cannot_be_deleted() -> None:
    assert delete(GroupWorld(), TopicPartitions("t", (0,))) == DeleteOffsetsResult(
        ErrorCode.GROUP_ID_NOT_FOUND
    )


def test_offsets_of_a_living_group_that_is_not_a_consumers_cannot_be_deleted() -> None:
    world = GroupWorld()
    world.stable_group(protocol_type="connect", protocols=(Protocol("v1", b""),))

    assert delete(world, TopicPartitions("t", (0,))) == DeleteOffsetsResult(ErrorCode.NON_EMPTY_GROUP)


def test_offsets_go_with_their_topic_but_not_those_of_its_namesake() -> None:
    world = GroupWorld()
    world.commit({T0: 1, T1: 2, U0: 3}, topic_id=TOPIC_ID)
    world.commit({T0: 4}, group_id="h")
    world.commit({T1: 5}, group_id="i", topic_id=OTHER_ID)

    world.submit(TopicsDeleted((("t", TOPIC_ID), ("missing", OTHER_ID))))

    assert (world.fetch(), world.fetch("h"), world.fetch("i")) == ({U0: 3}, {}, {T1: 5})
    assert replay(world.log).offsets == world.state.offsets


# ---- ageing ----


def loaded_world() -> GroupWorld:
    """A world whose expiry runs every ten minutes, with a retention of seven days."""
    return GroupWorld().reload()


def test_offsets_of_a_simple_group_age_from_their_commit() -> None:
    world = loaded_world()
    world.commit({T0: 1})
    world.advance(DAY_MS)
    world.commit({T1: 2})

    world.advance(6 * DAY_MS + 600_000)
    assert world.fetch() == {T1: 2}
    world.advance(DAY_MS)

    assert len(world.state.groups) == 0
    assert world.log[-2:] == [OffsetRecord("g", "t", 1, None), group_tombstone("g")]


def test_offsets_of_an_empty_group_age_from_when_it_became_empty() -> None:
    world = loaded_world()
    (member,) = world.stable_group(session_timeout_ms=1_800_000)
    world.commit({T0: 1}, Member(member, 1))
    for _ in range(8 * 48):
        world.advance(DAY_MS // 48 - 1)
        world.heartbeat(member, 1)
    world.leave(member)

    world.advance(7 * DAY_MS - 600_000)
    assert world.fetch() == {T0: 1}
    world.advance(1_200_000)

    assert len(world.state.groups) == 0


def test_offsets_of_a_group_an_old_broker_stored_as_empty_age_from_their_commit() -> None:
    empty_since_an_unknown_time = ClassicGroup("g", generation=1, protocol_type="consumer")
    young, old = CommittedOffset(1, commit_timestamp_ms=START_MS), CommittedOffset(2, commit_timestamp_ms=0)
    records: list[Entry] = [
        group_record(empty_since_an_unknown_time),
        OffsetRecord("g", "t", 0, young),
        OffsetRecord("g", "t", 1, old),
    ]
    world = GroupWorld(state=replay(records))
    world.submit(Loaded(START_MS))

    world.advance(7 * DAY_MS - 1)

    assert world.fetch() == {T0: 1}


def test_offsets_of_a_group_with_members_expire_only_for_topics_without_subscribers() -> None:
    world = loaded_world()
    (member,) = world.stable_group(session_timeout_ms=1_800_000)
    world.commit({T0: 1, U0: 2}, Member(member, 1))

    for _ in range(8 * 48):
        world.advance(DAY_MS // 48 - 1)
        world.heartbeat(member, 1)

    assert world.fetch() == {T0: 1}
    assert world.group().phase is Phase.STABLE


def test_offsets_of_a_living_group_of_another_type_do_not_age() -> None:
    world = loaded_world()
    (member,) = world.stable_group(
        session_timeout_ms=1_800_000, protocol_type="connect", protocols=(Protocol("v1", b""),)
    )
    world.commit({T0: 1}, Member(member, 1))

    for _ in range(8 * 48):
        world.advance(DAY_MS // 48 - 1)
        world.heartbeat(member, 1)

    assert world.fetch() == {T0: 1}


def test_a_retention_of_its_own_overrides_the_brokers() -> None:
    world = loaded_world()
    world.commit({T0: 1}, version=4, retention_ms=3_600_000)
    world.commit({T1: 2}, version=4, retention_ms=30 * DAY_MS)

    world.advance(3_600_000 + 600_000)
    assert world.fetch() == {T1: 2}
    world.advance(8 * DAY_MS)
    assert world.fetch() == {T1: 2}


def test_a_subscribed_topic_is_spared_even_by_a_retention_of_its_own() -> None:
    world = loaded_world()
    (member,) = world.stable_group(protocols=(Protocol("range", subscription("t")),))
    world.commit({T0: 1}, Member(member, 1), version=4, retention_ms=1)

    for _ in range(100):
        world.advance(9_000)
        world.heartbeat(member, 1)

    assert world.fetch() == {T0: 1}


def test_a_group_with_only_a_pending_member_is_forgotten_at_the_next_check() -> None:
    world = loaded_world()
    world.new_member_id()

    world.advance(600_000)

    assert len(world.state.groups) == 0
    assert world.log[-1] == group_tombstone("g")


def test_the_check_goes_on_with_the_interval_that_is_configured_now() -> None:
    world = loaded_world()
    world.config = world.config._replace(offsets_retention_check_interval_ms=1_000)
    world.advance(600_000)

    assert world.timers["expiry",] == world.now_ms + 1_000


def test_many_groups_are_searched_for_old_offsets_in_slices() -> None:
    world = GroupWorld(
        GroupCoordinatorConfig(offsets_retention_ms=60_000, offsets_retention_check_interval_ms=30_000)
    )
    world.submit(Loaded(world.now_ms))
    for number in range(2 * GROUPS_PER_EXPIRY_SLICE + 1):
        world.commit({("t", 0): 1}, group_id=f"g-{number}")
    world.advance(59_999)
    looks = []

    while world.state.groups:
        at_ms = world.timers[EXPIRY_TIMER]
        world.fire(EXPIRY_TIMER)
        looks.append((at_ms, len(world.state.groups)))

    one_moment = START_MS + 60_000
    assert looks == [
        (one_moment, GROUPS_PER_EXPIRY_SLICE + 1),
        (one_moment, 1),
        (one_moment, 0),
    ]
    assert world.timers[EXPIRY_TIMER] == one_moment + 30_000
    assert replay(world.log).groups == {}


def test_no_slice_of_the_search_drops_more_offsets_than_fit_be_it_of_one_group() -> None:
    world = GroupWorld(
        GroupCoordinatorConfig(offsets_retention_ms=60_000, offsets_retention_check_interval_ms=30_000)
    )
    world.submit(Loaded(world.now_ms))
    half = {("t", partition): 1 for partition in range(OFFSETS_PER_EXPIRY_SLICE // 2)}
    for number in range(3):
        world.commit(half, group_id=f"half-{number}")
    world.commit({("t", partition): 1 for partition in range(2 * OFFSETS_PER_EXPIRY_SLICE)}, group_id="big")
    world.advance(59_999)
    looks = []

    while world.state.groups:
        world.fire(EXPIRY_TIMER)
        dropped = sum(isinstance(record, OffsetRecord) for record in world.last_records)
        looks.append((dropped, sorted(world.state.groups)))

    assert looks == [
        (OFFSETS_PER_SLICE, ["big", "half-0", "half-1", "half-2"]),
        (OFFSETS_PER_SLICE, ["big", "half-1", "half-2"]),
        (OFFSETS_PER_SLICE, ["big", "half-2"]),
        *[(OFFSETS_PER_SLICE, ["big"])] * 4,
        (0, []),
    ]
    assert world.timers[EXPIRY_TIMER] == START_MS + 90_000
