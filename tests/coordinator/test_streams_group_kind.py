"""What a streams group answers to offsets, administrators and loads."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.coordinator.groups.core.committed_offset import CommittedOffset
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig, StreamsGroupSettings
from pykafka_broker.coordinator.groups.core.events import (
    CommitOffsets,
    CommitTransactionalOffsets,
    FetchOffsets,
    PartitionCommit,
    TopicCommit,
)
from pykafka_broker.coordinator.groups.core.streams import commits
from pykafka_broker.coordinator.groups.core.streams.describe import described
from pykafka_broker.coordinator.groups.core.streams.events import (
    DescribedStreamsGroup,
    DescribedStreamsMember,
)
from pykafka_broker.coordinator.groups.core.streams.kind import StreamsKind
from pykafka_broker.coordinator.groups.core.streams.records import streams_group_tombstones
from pykafka_broker.coordinator.groups.core.streams.state import MemberState, StreamsGroup, StreamsMember
from pykafka_broker.coordinator.groups.core.streams.tasks import OwnedTasks, Tasks
from pykafka_broker.coordinator.groups.core.streams.topology.configured import configured
from pykafka_broker.coordinator.groups.core.streams.topology.declared import (
    InternalTopic,
    Subtopology,
    Topology,
)
from pykafka_broker.coordinator.groups.core.topics import TopicInfo, Topics
from pykafka_broker.machine.step import SetTimer
from pykafka_broker.protocol.errors import ErrorCode

KIND = StreamsKind()
TOPOLOGY = Topology(
    0,
    (
        Subtopology(
            "1",
            ("u", "t"),
            repartition_sink_topics=("r", "q"),
            repartition_source_topics=(InternalTopic("r"),),
        ),
        Subtopology("0", ("in",), state_changelog_topics=(InternalTopic("z"), InternalTopic("store"))),
    ),
)
#: It has had partition 0 since epoch 2 and 1 since epoch 4; it still has to give up 2, which it got in 3.
MEMBER = StreamsMember(
    "a",
    5,
    4,
    MemberState.UNREVOKED_TASKS,
    process_id="p",
    rebalance_timeout_ms=9_000,
    assigned=OwnedTasks({"0": {0: 2, 1: 4}}, {"0": frozenset([3])}),
    pending_revocation=OwnedTasks({"0": {2: 3}}),
)
GROUP = StreamsGroup.new("g")._replace(topology=TOPOLOGY, group_epoch=6).with_member(MEMBER)


def commit(*partitions: int, topic: str = "in", **said: Any) -> CommitOffsets:
    topics = (TopicCommit(topic, tuple(PartitionCommit(partition, 1, -1, "") for partition in partitions)),)
    whole: dict[str, Any] = {"member_id": "a", "generation": 5, "version": 9, **said}
    return CommitOffsets(1, 0, group_id="g", topics=topics, **whole)


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (commit(0, 99, topic="elsewhere"), ErrorCode.NONE),
        (commit(0, generation=4), ErrorCode.NONE),
        (commit(0, generation=2), ErrorCode.NONE),
        (commit(0, generation=1), ErrorCode.STALE_MEMBER_EPOCH),
        (commit(0, 1, generation=3), ErrorCode.STALE_MEMBER_EPOCH),
        (commit(2, generation=3), ErrorCode.NONE),
        (commit(2, generation=2), ErrorCode.STALE_MEMBER_EPOCH),
        (commit(3, generation=4), ErrorCode.STALE_MEMBER_EPOCH),
        (commit(0, topic="elsewhere", generation=4), ErrorCode.STALE_MEMBER_EPOCH),
        (commit(0, topic="store", generation=4), ErrorCode.STALE_MEMBER_EPOCH),
        (commit(0, generation=6), ErrorCode.STALE_MEMBER_EPOCH),
        (commit(0, member_id="b"), ErrorCode.UNKNOWN_MEMBER_ID),
        (commit(0, member_id="", generation=-1), ErrorCode.UNKNOWN_MEMBER_ID),
        (commit(0, version=8), ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_member_commits_in_its_epoch_or_what_it_has_had_since_an_older_one(
    event: CommitOffsets, error: ErrorCode
) -> None:
    assert KIND.commit_error(GROUP, event) is error


def test_anybody_commits_to_an_empty_group() -> None:
    empty = StreamsGroup.new("g")

    assert KIND.commit_error(empty, commit(0, generation=-1, member_id="")) is ErrorCode.NONE
    assert KIND.commit_error(empty, commit(0)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_without_a_topology_only_the_newest_epoch_counts() -> None:
    group = GROUP._replace(topology=None)

    assert KIND.commit_error(group, commit(0)) is ErrorCode.NONE
    assert KIND.commit_error(group, commit(0, generation=4)) is ErrorCode.STALE_MEMBER_EPOCH


def transactional(generation: int, member_id: str = "a", *partitions: int) -> CommitTransactionalOffsets:
    topics = commit(*partitions or (0,)).topics
    return CommitTransactionalOffsets(1, 0, "g", topics, 7, 0, 0, member_id, generation)


def test_in_a_transaction_a_client_without_identity_may_commit() -> None:
    topics = Topics({"in": TopicInfo("in", b"i" * 16, 4)})

    def error(event: CommitTransactionalOffsets, group: StreamsGroup = GROUP) -> ErrorCode:
        return KIND.commit_error_in_transaction(group, event, topics)

    assert error(transactional(-1, "")) is ErrorCode.NONE
    assert error(transactional(5)) is ErrorCode.NONE
    assert error(transactional(4)) is ErrorCode.NONE
    assert error(transactional(1)) is ErrorCode.ILLEGAL_GENERATION
    assert error(transactional(6)) is ErrorCode.ILLEGAL_GENERATION
    assert error(transactional(5, "b")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert error(transactional(-1, "b")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert error(transactional(-1, "b"), StreamsGroup.new("g")) is ErrorCode.NONE


def test_a_member_fetches_in_its_epoch_only() -> None:
    def error(member_id: str | None, epoch: int) -> ErrorCode:
        return KIND.fetch_error(GROUP, FetchOffsets(1, "g", None, member_id=member_id, member_epoch=epoch))

    assert error(None, -1) is ErrorCode.NONE
    assert error("a", 5) is ErrorCode.NONE
    assert error("a", 4) is ErrorCode.STALE_MEMBER_EPOCH
    assert error("b", 5) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_describes_itself_as_a_kind() -> None:
    assert (KIND.name, KIND.protocol_type(GROUP), KIND.state_of(GROUP)) == ("streams", "streams", "Assigning")
    assert not KIND.is_empty(GROUP)
    assert KIND.is_empty(StreamsGroup.new("g"))
    assert KIND.tombstones(GROUP) == streams_group_tombstones(GROUP)
    assert KIND.is_subscribed_to(GROUP, "r")
    assert not KIND.is_subscribed_to(GROUP, "store")
    assert KIND.commit_effects(GROUP, commit(0)) == []
    assert KIND.deletion_error(GROUP) is ErrorCode.NONE
    committed = CommittedOffset(1, -1, "", 77)
    assert KIND.ages_since_ms(GROUP, committed) == committed.commit_timestamp_ms


def test_after_a_load_every_member_has_its_whole_time() -> None:
    config = GroupCoordinatorConfig(
        streams_group_overrides={"g": StreamsGroupSettings(session_timeout_ms=50_000)}
    )
    group = GROUP.with_member(StreamsMember("b", 5))

    loaded, effects = KIND.on_loaded(group, 1_000, config)

    assert loaded is group
    assert set(effects) == {
        SetTimer(("streams-session", "g", "a"), 51_000),
        SetTimer(("streams-revocation", "g", "a"), 10_000),
        SetTimer(("streams-session", "g", "b"), 51_000),
    }


# ---- describing ----


def test_a_group_whose_topics_are_missing_shows_what_was_declared() -> None:
    shown = described(GROUP._replace(targets=GROUP.targets.with_item("a", Tasks({"0": frozenset([0])}))))

    assert shown == DescribedStreamsGroup(
        "g",
        "Assigning",
        6,
        1,
        Topology(
            0,
            (
                Subtopology(
                    "0", ("in",), state_changelog_topics=(InternalTopic("store"), InternalTopic("z"))
                ),
                Subtopology(
                    "1",
                    ("t", "u"),
                    repartition_sink_topics=("q", "r"),
                    repartition_source_topics=(InternalTopic("r"),),
                ),
            ),
        ),
        (DescribedStreamsMember(MEMBER, Tasks({"0": frozenset([0])})),),
    )


def test_a_group_that_is_ready_shows_how_many_partitions_its_topics_have() -> None:
    names = {"in": 3, "t": 2, "u": 2, "r": 2, "store": 3, "z": 3}
    topics = Topics({name: TopicInfo(name, name.encode().ljust(16), count) for name, count in names.items()})
    view = configured(TOPOLOGY, topics, 0)
    assert view.is_ready

    shown = described(GROUP._replace(configured=view))

    assert shown.topology is not None
    assert [part.subtopology_id for part in shown.topology.subtopologies] == ["0", "1"]
    first, second = shown.topology.subtopologies
    assert first.state_changelog_topics == (InternalTopic("store", 3), InternalTopic("z", 3))
    assert second.repartition_source_topics == (InternalTopic("r", 2),)


# ---- planted bugs ----


def _always(*_: Any) -> bool:
    return True


def _never(*_: Any) -> bool:
    return False


@pytest.mark.parametrize("wrong", [_always, _never])
def test_a_planted_bug_is_caught(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "had_all_since", wrong)

    with pytest.raises(AssertionError):
        test_in_a_transaction_a_client_without_identity_may_commit()
