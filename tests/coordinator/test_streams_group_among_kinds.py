"""Streams groups beside groups of other kinds: requests that name another kind, offsets, topics, deletion.

interop/conformance holds the same conversations with Apache Kafka.
"""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig, StreamsGroupSettings
from pykafka_broker.coordinator.groups.core.events import (
    CommitTransactionalOffsets,
    ConsumerGroupHeartbeatResult,
    DeleteGroup,
    DeleteOffsets,
    DeleteOffsetsResult,
    DescribeConsumerGroup,
    DescribedGroup,
    DescribeGroup,
    FetchOffsets,
    FetchResult,
    JoinResult,
    LeavingMember,
    ListedGroup,
    ListGroups,
    PartitionCommit,
    TimerFired,
    TopicCommit,
    TopicPartitions,
    TopicsDeleted,
)
from pykafka_broker.coordinator.groups.core.offset_record import OffsetRecord
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.records import replay
from pykafka_broker.coordinator.groups.core.share.events import DescribeShareGroup
from pykafka_broker.coordinator.groups.core.streams.events import (
    DescribedStreamsGroup,
    DescribeStreamsGroup,
    StreamsGroupHeartbeatResult,
)
from pykafka_broker.coordinator.groups.core.streams.records import streams_group_tombstones
from pykafka_broker.coordinator.groups.core.streams.state import GroupState, StreamsGroup
from pykafka_broker.coordinator.groups.core.streams.status import StatusCode
from pykafka_broker.coordinator.groups.core.streams.tasks import Tasks
from pykafka_broker.coordinator.groups.core.streams.topology.declared import (
    InternalTopic,
    Subtopology,
    Topology,
)
from pykafka_broker.coordinator.groups.core.topics import TopicInfo
from pykafka_broker.coordinator.groups.core.transitions import EXPIRY_TIMER
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.members import Member
from tests.support.streams_shard import READING, StreamsShard

T, U = b"t" * 16, b"u" * 16
NOT_FOUND = ErrorCode.GROUP_ID_NOT_FOUND
AT_ONCE = StreamsGroupSettings(initial_rebalance_delay_ms=0, assignment_interval_ms=0)


def shard(settings: StreamsGroupSettings = AT_ONCE, members: int = 1) -> StreamsShard:
    """A shard with the group "g", whose members "a", "b", ... read the topic "t"."""
    world = StreamsShard(GroupCoordinatorConfig(streams_group=settings))
    world.set_topics(TopicInfo("t", T, 2))
    for number in range(members):
        world.join_streams("abc"[number])
    return world


def some(*partitions: int) -> dict[str, frozenset[int]]:
    return {"0": frozenset(partitions)}


# ---- who is who ----


def test_a_classic_client_that_joins_is_told_that_the_protocol_is_another() -> None:
    world = shard()
    before = world.state

    assert world.joined(world.join("g")) == JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    assert world.state is before


def test_a_classic_client_that_believes_it_is_a_member_is_not() -> None:
    world = shard()
    unknown = ErrorCode.UNKNOWN_MEMBER_ID

    assert world.synced(world.sync("a", 1)).error is unknown
    assert world.heartbeat("a", 1) is unknown
    assert world.leave("a").members == ((LeavingMember("a"), unknown),)


def test_a_consumer_of_the_new_protocol_finds_no_group_of_its_own() -> None:
    world = shard()

    for member_epoch in (0, 1, -1):
        heard = world.join_consumer("c", "t") if member_epoch == 0 else world.consumer("c", member_epoch)
        assert heard == ConsumerGroupHeartbeatResult(NOT_FOUND, "Group g is not a consumer group.")
    for event, kind in ((DescribeConsumerGroup, "consumer"), (DescribeShareGroup, "share")):
        described = world.ask(event, "g")
        assert (described.error, described.error_message) == (NOT_FOUND, f"Group g is not a {kind} group.")


def test_a_thread_of_an_application_finds_no_group_of_its_own_under_another_kind() -> None:
    world = shard(members=0)
    world.join_consumer("c", "t")
    world.stable_group(group_id="classic")
    before = world.state

    for group_id in ("g", "classic"):
        refused = StreamsGroupHeartbeatResult(NOT_FOUND, f"Group {group_id} is not a streams group.")
        assert world.join_streams("a", group_id=group_id) == refused
        assert world.stream("a", 1, group_id=group_id) == refused
        assert world.stream("a", -1, group_id=group_id) == refused
    assert world.state is before
    flawed = world.stream("a", 0, rebalance_timeout_ms=-1)
    assert flawed.error_code is ErrorCode.INVALID_REQUEST, "what is wrong with the request itself comes first"


def test_a_group_that_is_missing_is_told_in_the_words_of_each_request() -> None:
    world = shard(members=0)

    assert world.stream("a", 1).error_message == "Streams group g not found."
    assert world.stream("a", -1).error_message == "Group g not found."
    assert world.ask(DescribeStreamsGroup, "g") == DescribedStreamsGroup(
        "g", error=NOT_FOUND, error_message="Group g not found."
    )


def test_only_streams_groups_are_described_with_tasks() -> None:
    world = shard()
    world.commit({("t", 0): 5}, group_id="simple")

    described = world.ask(DescribeStreamsGroup, "g")
    assert (described.error, described.state, described.topology) == (ErrorCode.NONE, "Stable", READING)
    [member] = described.members
    assert (member.member.member_id, member.target) == ("a", Tasks(some(0, 1)))
    assert world.ask(DescribeStreamsGroup, "simple") == DescribedStreamsGroup(
        "simple", error=NOT_FOUND, error_message="Group simple is not a streams group."
    )


def test_describe_groups_shows_a_dead_group_and_newer_versions_why() -> None:
    world = shard()

    assert world.ask(DescribeGroup, 5, "g") == DescribedGroup(ErrorCode.NONE, "g", "Dead")
    assert world.ask(DescribeGroup, 6, "g") == DescribedGroup(
        NOT_FOUND, "g", "Dead", error_message="Group g is not a classic group."
    )


def test_groups_are_listed_with_their_kind_and_state() -> None:
    world = shard()
    world.join_consumer("c", "t", group_id="consumers")
    mine = ListedGroup("g", "streams", "Stable", "streams")

    assert world.ask(ListGroups, (), ("Streams",)) == (mine,)
    assert world.ask(ListGroups, ("stable",), ("streams",)) == (mine,)
    world.set_topics()
    world.beat("a")
    waiting = mine._replace(state="NotReady")
    assert world.ask(ListGroups, (), ("streams",)) == (waiting,)
    assert world.ask(ListGroups, ("NotReady",), ("streams",)) == (), "as Apache Kafka 4.3.1"
    assert world.ask(ListGroups, ("not_ready",), ("streams",)) == (waiting,)
    world.stream("a", -1)
    assert world.ask(ListGroups, ("Empty",), ("streams",)) == (mine._replace(state="Empty"),)


# ---- one kind takes the place of another ----


def test_an_application_takes_the_place_of_an_empty_classic_group_and_its_offsets() -> None:
    world = shard(members=0)
    world.commit({("t", 0): 5})

    joined = world.join_streams("a")

    assert joined.error_code is ErrorCode.NONE
    first = world.last_records[0]
    assert isinstance(first, Record)
    assert (type(first.key).__name__, first.value) == ("GroupMetadataKey", None)
    assert isinstance(world.state.groups["g"], StreamsGroup)
    assert world.fetch() == {("t", 0): 5}
    assert isinstance(replay(world.log).groups["g"], StreamsGroup)


def test_a_classic_group_takes_the_place_of_an_application_that_has_ended() -> None:
    world = shard()
    world.stream("a", -1)
    ended = world.streams_group()

    member_id = world.new_member_id()

    assert world.group().pending_members == {member_id}
    assert world.last_records[:-1] == tuple(streams_group_tombstones(ended))
    world.join("g", member_id)
    assert replay(world.log).classic("g") is not None
    assert world.join_streams("a").error_message == "Group g is not a streams group."


def test_a_client_that_is_refused_leaves_the_group_as_it_is() -> None:
    world = shard()
    world.stream("a", -1)
    before = world.state

    assert world.joined(world.join("g", "stranger")).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.state is before


# ---- offsets ----


def test_members_commit_and_fetch_in_their_epoch() -> None:
    world = shard()
    epoch = world.epoch_of("a")

    assert world.commit({("t", 0): 5}, Member("a", epoch), version=9) == {("t", 0): ErrorCode.NONE}
    assert world.commit({("t", 0): 6}, Member("a", epoch + 1), version=9) == {
        ("t", 0): ErrorCode.STALE_MEMBER_EPOCH
    }
    assert world.commit({("t", 0): 6}, Member("b", epoch), version=9) == {
        ("t", 0): ErrorCode.UNKNOWN_MEMBER_ID
    }
    assert world.commit({("t", 0): 6}) == {("t", 0): ErrorCode.UNKNOWN_MEMBER_ID}
    assert world.fetch() == {("t", 0): 5}
    stale = world.ask(FetchOffsets, "g", None, False, "a", epoch - 1)
    assert stale == FetchResult(ErrorCode.STALE_MEMBER_EPOCH)


def test_a_transaction_of_an_older_epoch_may_only_be_about_topics_that_exist() -> None:
    world = shard()
    epoch = world.epoch_of("a")
    world.join_streams("b")
    world.beat("a")
    assert world.streams_group().members["a"].assigned.active == {"0": {0: epoch}}
    one = (TopicCommit("t", (PartitionCommit(0, 5),)),)

    def error(generation: int) -> ErrorCode:
        answer = world.ask(CommitTransactionalOffsets, world.now_ms, "g", one, 7, 0, 0, "a", generation)
        [(_, _, ((_, code),))] = answer
        found: ErrorCode = code
        return found

    world.beat_owning("a")
    assert world.epoch_of("a") == epoch + 1
    assert error(epoch) is ErrorCode.NONE
    world.set_topics()
    assert error(epoch) is ErrorCode.ILLEGAL_GENERATION
    assert error(epoch + 1) is ErrorCode.NONE


def test_offsets_of_topics_that_an_application_reads_are_not_deleted() -> None:
    world = shard()
    world.commit({("t", 0): 5, ("u", 0): 6}, Member("a", world.epoch_of("a")), version=9)
    asked = (TopicPartitions("t", (0,)), TopicPartitions("u", (0,)))

    deleted = world.ask(DeleteOffsets, "g", asked)

    kept, gone = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE
    assert deleted == DeleteOffsetsResult(ErrorCode.NONE, (("t", ((0, kept),)), ("u", ((0, gone),))))
    world.stream("a", -1)
    world.ask(DeleteOffsets, "g", asked)
    assert world.fetch() == {}


# ---- the end of a group ----


def test_a_group_with_members_stays_and_an_empty_one_goes_with_its_offsets() -> None:
    world = shard()
    world.commit({("t", 0): 5}, Member("a", world.epoch_of("a")), version=9)

    assert world.ask(DeleteGroup, "g") is ErrorCode.NON_EMPTY_GROUP
    world.stream("a", -1)
    empty = world.streams_group()
    assert world.ask(DeleteGroup, "g") is ErrorCode.NONE

    assert world.last_records == (OffsetRecord("g", "t", 0, None), *streams_group_tombstones(empty))
    assert not world.state.groups
    assert not replay(world.log).groups


def test_a_group_is_forgotten_some_time_after_its_members_and_offsets_are() -> None:
    world = shard()
    world.commit({("t", 0): 5}, Member("a", world.epoch_of("a")), version=9)
    world.advance(10 * 24 * 3_600_000)
    assert not world.streams_group().members, "no heartbeat has come"

    world.submit(TimerFired(EXPIRY_TIMER, world.now_ms))

    assert not world.state.groups
    assert world.fetch() == {}


def test_offsets_that_an_application_reads_do_not_age() -> None:
    world = shard()
    world.commit({("t", 0): 5}, Member("a", world.epoch_of("a")), version=9)
    for _ in range(3):
        world.now_ms += 3 * 24 * 3_600_000
        world.beat("a")
        world.submit(TimerFired(EXPIRY_TIMER, world.now_ms))

    assert world.fetch() == {("t", 0): 5}


# ---- timers ----


def test_a_silent_member_is_expelled_and_the_others_get_its_tasks() -> None:
    world = shard(members=2)
    world.beat("a")
    world.beat_owning("a")
    assert world.beat("b").tasks == Tasks(some(1))
    for _ in range(4):
        world.advance(15_000)
        world.beat_owning("b")

    assert set(world.streams_group().members) == {"b"}
    assert world.streams_group().members["b"].assigned.active == {"0": {0: 4, 1: 3}}


def test_a_member_that_gives_nothing_up_is_expelled() -> None:
    world = shard(members=2)
    world.beat("a")
    for _ in range(3):
        world.advance(25_000)
        for member_id in world.streams_group().members:
            world.beat(member_id)

    assert set(world.streams_group().members) == {"b"}


def test_the_first_assignment_waits_for_more_members() -> None:
    world = shard(StreamsGroupSettings(initial_rebalance_delay_ms=3_000, assignment_interval_ms=0))
    assert [status.code for status in world.beat("a").statuses] == [StatusCode.ASSIGNMENT_DELAYED]
    world.advance(2_000)
    world.join_streams("b")
    assert world.streams_group().state is GroupState.ASSIGNING

    world.advance(1_000)

    assert world.beat("a").tasks == Tasks(some(1))
    assert world.beat("b").tasks == Tasks(some(0))


def test_the_wait_of_a_group_that_is_gone_is_not_that_of_its_successor() -> None:
    world = shard(StreamsGroupSettings(initial_rebalance_delay_ms=3_000, assignment_interval_ms=60_000))
    world.stream("a", -1)
    world.ask(DeleteGroup, "g")
    world.config = world.config._replace(
        streams_group=StreamsGroupSettings(initial_rebalance_delay_ms=0, assignment_interval_ms=60_000)
    )
    world.join_streams("b")
    world.join_streams("c")
    waiting = world.streams_group()
    assert waiting.group_epoch > waiting.assignment_epoch

    world.advance(3_000)

    assert world.streams_group() == waiting


def test_a_new_coordinator_waits_a_whole_session_for_each_member() -> None:
    world = shard(members=2)
    world.beat("a")
    world.advance(40_000)
    world = world.reload()
    world.advance(40_000)
    assert set(world.streams_group().members) == {"a", "b"}
    assert world.beat("b").error_code is ErrorCode.NONE
    world.advance(6_000)
    assert set(world.streams_group().members) == {"b"}


# ---- topics ----


def test_a_topic_that_comes_or_grows_is_seen_with_the_next_heartbeat() -> None:
    world = shard(members=0)
    world.set_topics()
    assert [status.code for status in world.join_streams("a").statuses] == [StatusCode.MISSING_SOURCE_TOPICS]

    world.set_topics(TopicInfo("t", T, 1))
    assert world.beat("a").tasks == Tasks(some(0))
    world.set_topics(TopicInfo("t", T, 3))
    assert world.beat("a").tasks == Tasks(some(0, 1, 2))
    world.set_topics(TopicInfo("t", T, 3), TopicInfo("u", U, 1))
    assert world.beat("a").tasks is None
    world.set_topics(TopicInfo("u", U, 1))
    gone = world.beat("a")
    assert [status.code for status in gone.statuses] == [StatusCode.MISSING_SOURCE_TOPICS]
    assert world.streams_group().state is GroupState.NOT_READY


@pytest.mark.parametrize("name", ["changelog", "repartition"])
def test_an_internal_topic_that_goes_is_noticed_too(name: str) -> None:
    part = Subtopology(
        "0",
        ("t",),
        state_changelog_topics=(InternalTopic("changelog"),),
        repartition_source_topics=(InternalTopic("repartition", 2),),
    )
    world = shard(members=0)
    there = {name: TopicInfo(name, name.encode().ljust(16), 2) for name in ("t", "changelog", "repartition")}
    world.set_topics(*there.values())
    world.join_streams("a", Topology(0, (part,)))
    assert world.beat("a").statuses == ()

    del there[name]
    world.set_topics(*there.values())

    missing = world.beat("a")
    assert [topic.name for topic in missing.internal_topics] == [name]
    assert [status.code for status in missing.statuses] == [StatusCode.MISSING_INTERNAL_TOPICS]


def test_the_offsets_of_a_deleted_topic_go() -> None:
    world = shard()
    world.commit({("t", 0): 5}, Member("a", world.epoch_of("a")), version=9)

    world.submit(TopicsDeleted((("t", T),), world.now_ms))

    assert world.fetch() == {}
