"""Large groups and topics are forgotten slice by slice, and who asks meanwhile sees no half of a group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pykafka_broker.coordinator.groups.core import deletion, events, forgetting
from pykafka_broker.coordinator.groups.core.classic.records import group_tombstone
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.offset_record import OffsetRecord
from pykafka_broker.coordinator.groups.core.records import replay
from pykafka_broker.coordinator.groups.core.transitions import EXPIRY_TIMER
from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from tests.support.groups import GroupWorld

OK = ErrorCode.NONE
#: What the tests below make of `OFFSETS_PER_SLICE`.
SLICE = 2
FIVE = {("t", partition): partition for partition in range(5)}
DELETION = (deletion.TIMER, "g")
FETCHED = events.FetchedOffset(4, 44)


@pytest.fixture(autouse=True)
def _short_slices(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (deletion, forgetting):
        monkeypatch.setattr(module, "OFFSETS_PER_SLICE", SLICE)
    monkeypatch.setattr(forgetting, "OFFSETS_AT_ONCE", 0)
    yield


def check_law(world: GroupWorld) -> None:
    """The log leads to the offsets and to where they are counted."""
    replayed = replay(world.log)
    assert replayed.offsets == world.state.offsets
    assert replayed.offset_counts == world.state.offset_counts
    assert replayed.pending == world.state.pending


def submit(world: GroupWorld, event_class: Any, *fields: Any) -> int:
    """Submit a request that may have to wait; its token."""
    token = world.token()
    world.submit(event_class(token, *fields))
    return token


def test_a_large_group_goes_slice_by_slice_its_offsets_first_and_is_answered_at_the_end() -> None:
    world = GroupWorld()
    world.commit(FIVE)
    before = len(world.log)
    token = submit(world, events.DeleteGroup, "g")
    slices = [world.last_records]
    while DELETION in world.timers:
        assert token not in world.answers
        assert "g" in world.state.groups
        check_law(world)
        world.fire(DELETION)
        slices.append(world.last_records)

    assert [len(records) for records in slices] == [2, 2, 2]
    gone = [OffsetRecord("g", *place, None) for place in FIVE]
    assert world.log[before:] == [*gone, group_tombstone("g")]
    assert world.answers[token] is OK
    assert (len(world.state.groups), len(world.state.offsets), world.state.deletions) == (0, 0, {})
    check_law(world)


def test_offsets_of_open_transactions_go_with_their_group() -> None:
    world = GroupWorld()
    world.commit({("t", 0): 1})
    for partition in range(4):
        topics = (events.TopicCommit("u", (events.PartitionCommit(partition, 1),)),)
        world.submit(
            events.CommitTransactionalOffsets(world.token(), world.now_ms, "g", topics, 7, 0, guard=1)
        )
    token = submit(world, events.DeleteGroup, "g")
    world.advance(0)

    assert world.answers[token] is OK
    assert len(world.state.pending.by_group) == 0
    world.submit(events.CompleteTransaction(world.token(), Marker(7, 0, True, 0)))
    assert world.fetch() == {}


def requests(world: GroupWorld) -> list[int]:
    """One of everything that can be asked about a group, in an order in which the answers depend on it."""
    now_ms = world.now_ms
    t9 = (events.TopicPartitions("t", (4,)),)
    commit = (events.TopicCommit("t", (events.PartitionCommit(4, 44),)),)
    return [
        submit(world, events.DescribeGroup, 6, "g"),
        submit(world, events.FetchOffsets, "g", None),
        submit(world, events.DeleteOffsets, "g", t9),
        submit(world, events.Heartbeat, now_ms, "g", "m", 1),
        submit(world, events.DeleteGroup, "g"),
        submit(world, events.CommitOffsets, now_ms, 8, "g", commit),
        submit(world, events.FetchOffsets, "g", None),
        world.join(version=3),
        submit(world, events.DescribeConsumerGroup, "g"),
        submit(world, events.LeaveGroup, now_ms, "g", (events.LeavingMember("stranger", None),)),
        world.sync("stranger", 1),
    ]


def test_requests_wait_for_the_end_of_the_deletion_and_are_answered_as_if_it_had_been_short() -> None:
    at_once, sliced = GroupWorld(), GroupWorld()
    for world in (at_once, sliced):
        world.commit(FIVE)
    deleted = [submit(at_once, events.DeleteGroup, "g")]
    at_once.advance(0)
    deleted += requests(at_once)
    waiting = [submit(sliced, events.DeleteGroup, "g"), *requests(sliced)]
    assert [token for token in waiting if token in sliced.answers] == []
    assert sliced.state.deletions["g"].waiting
    while DELETION in sliced.timers:
        sliced.fire(DELETION)
        check_law(sliced)

    for world in (at_once, sliced):
        world.advance(3_000)  # the new member's generation begins
    assert [sliced.answers[token] for token in waiting] == [at_once.answers[token] for token in deleted]
    assert sliced.answers[waiting[7]] == events.FetchResult(OK, (("t", bytes(16), (FETCHED,)),))
    assert (sliced.log, sliced.state.deletions) == (at_once.log, {})


def test_other_groups_do_not_wait_and_a_list_shows_the_group_until_it_is_gone() -> None:
    world = GroupWorld()
    world.commit(FIVE)
    world.commit({("t", 0): 7}, group_id="h")
    submit(world, events.DeleteGroup, "g")

    assert world.fetch("h") == {("t", 0): 7}
    assert world.commit({("t", 0): 8}, group_id="h") == {("t", 0): OK}
    assert [group.group_id for group in world.ask(events.ListGroups)] == ["g", "h"]
    world.advance(0)
    assert [group.group_id for group in world.ask(events.ListGroups)] == ["h"]


def test_a_large_group_can_be_made_and_deleted_once_more_while_requests_wait() -> None:
    world = GroupWorld()
    world.commit(FIVE)
    first = submit(world, events.DeleteGroup, "g")
    commit = (events.TopicCommit("u", tuple(events.PartitionCommit(each, 1) for each in range(5))),)
    submit(world, events.CommitOffsets, world.now_ms, 8, "g", commit)
    second = submit(world, events.DeleteGroup, "g")
    fetch = submit(world, events.FetchOffsets, "g", None)
    world.advance(0)

    assert (world.answers[first], world.answers[second]) == (OK, OK)
    assert world.answers[fetch] == events.FetchResult(OK, ())
    assert (len(world.state.groups), len(world.state.offsets), world.state.deletions) == (0, 0, {})


def test_a_slice_that_cannot_be_written_is_answered_and_tried_again_and_no_half_is_seen() -> None:
    world = GroupWorld()
    world.commit(FIVE)
    full = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    deleted = submit(world, events.DeleteGroup, "g")
    fetched = submit(world, events.FetchOffsets, "g", None)
    world.timers.pop(DELETION)  # the shell has told the core, and could not write what it said
    world.submit(events.DeletionRefused("g", world.now_ms, full))
    assert (world.answers[deleted], world.answers[fetched]) == (full, full)

    fetched_later = submit(world, events.FetchOffsets, "g", None)
    assert fetched_later not in world.answers
    world.advance(deletion.RETRY_MS)
    assert world.answers[fetched_later] == events.FetchResult(OK, ())
    assert world.state.deletions == {}
    check_law(world)


def test_a_waiting_request_that_cannot_be_written_is_answered_and_the_next_has_its_turn() -> None:
    world = GroupWorld()
    world.commit(FIVE)
    full = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    submit(world, events.DeleteGroup, "g")
    commit = (events.TopicCommit("t", (events.PartitionCommit(0, 9),)),)
    committed = submit(world, events.CommitOffsets, world.now_ms, 8, "g", commit)
    fetched = submit(world, events.FetchOffsets, "g", None)
    while not world.state.deletions["g"].is_done:
        world.fire(DELETION)
    world.timers.pop(DELETION)
    world.submit(events.DeletionRefused("g", world.now_ms, full))
    assert world.answers[committed] == full
    assert fetched not in world.answers
    world.advance(0)

    assert world.answers[fetched] == events.FetchResult(OK, ())
    assert world.state.deletions == {}


def test_a_broker_that_is_killed_between_slices_leaves_a_group_that_can_be_deleted() -> None:
    world = GroupWorld()
    world.commit(FIVE)
    submit(world, events.DeleteGroup, "g")
    after = world.reload()

    assert after.fetch() == {("t", 2): 2, ("t", 3): 3, ("t", 4): 4}
    token = submit(after, events.DeleteGroup, "g")
    after.advance(0)
    assert after.answers[token] is OK
    assert len(replay(after.log).groups) == 0


# ---- topics ----

OLD_ID, NEW_ID = b"o" * 16, b"n" * 16
TOPICS = forgetting.DELETED_TOPICS_TIMER


def test_offsets_of_a_deleted_topic_go_slice_by_slice() -> None:
    world = GroupWorld()
    for group_id in ("g", "h"):
        world.commit(FIVE, group_id=group_id, topic_id=OLD_ID)
        world.commit({("u", 0): 1}, group_id=group_id)
    world.submit(events.TopicsDeleted((("t", OLD_ID),), world.now_ms))
    dropped = []
    while TOPICS in world.timers:
        world.fire(TOPICS)
        dropped.append(len(world.last_records))
        check_law(world)

    assert max(dropped) <= SLICE
    assert sum(dropped) == 10
    assert (world.fetch("g"), world.fetch("h")) == ({("u", 0): 1}, {("u", 0): 1})
    assert world.state.deleted_topics == ()


def test_what_is_committed_to_a_new_topic_of_that_name_between_slices_stays() -> None:
    world = GroupWorld()
    for group_id in ("g", "h", "i"):
        world.commit(FIVE, group_id=group_id, topic_id=OLD_ID)
    world.submit(events.TopicsDeleted((("t", OLD_ID),), world.now_ms))
    world.now_ms += 1
    world.commit({("t", 0): 100}, group_id="h", topic_id=NEW_ID)
    world.commit({("t", 1): 101}, group_id="i", version=4, retention_ms=1_000_000)  # stored without an id
    world.advance(0)

    assert (world.fetch("g"), world.fetch("h"), world.fetch("i")) == (
        {},
        {("t", 0): 100},
        {("t", 1): 101},
    )
    check_law(world)


def test_a_topic_without_offsets_is_not_looked_for() -> None:
    world = GroupWorld()
    world.commit(FIVE)
    before = world.state
    world.submit(events.TopicsDeleted((("u", OLD_ID),), world.now_ms))

    assert world.state is before
    assert world.last_effects == ()


def test_topics_that_are_deleted_while_others_are_being_forgotten_have_their_turn() -> None:
    world = GroupWorld()
    world.commit(FIVE, topic_id=OLD_ID)
    world.commit({("u", 0): 1, ("u", 1): 1, ("u", 2): 1}, topic_id=OLD_ID)
    world.submit(events.TopicsDeleted((("t", OLD_ID),), world.now_ms))
    world.submit(events.TopicsDeleted((("u", OLD_ID),), world.now_ms))
    world.advance(0)

    assert world.fetch() == {}
    check_law(world)


# ---- anything at any time ----

GROUPS = st.sampled_from(["g", "h"])
PLACES = st.sets(st.tuples(st.sampled_from(["t", "u"]), st.integers(0, 5)), min_size=1)


class TwoWorlds(RuleBasedStateMachine):
    """In one world slices follow each other at once, in the other anything may happen in between."""

    def __init__(self) -> None:
        super().__init__()
        self.monkeypatch = pytest.MonkeyPatch()
        for module in (deletion, forgetting):
            self.monkeypatch.setattr(module, "OFFSETS_PER_SLICE", SLICE)
        self.monkeypatch.setattr(forgetting, "OFFSETS_AT_ONCE", 0)
        self.at_once = GroupWorld(GroupCoordinatorConfig(offsets_retention_ms=1_000))
        self.sliced = GroupWorld(GroupCoordinatorConfig(offsets_retention_ms=1_000))

    def teardown(self) -> None:
        self.monkeypatch.undo()

    def both(self, event_class: Any, *fields: Any, token: bool = True) -> None:
        for world in (self.at_once, self.sliced):
            world.now_ms += 1
            world.submit(event_class(*([world.token()] if token else []), *fields))
        self.drain(self.at_once)

    def drain(self, world: GroupWorld) -> None:
        while slices := [key for key, at_ms in world.timers.items() if at_ms == 0]:
            world.fire(slices[0])

    @rule(group=GROUPS, places=PLACES)
    def commit(self, group: str, places: set[tuple[str, int]]) -> None:
        topics = tuple(
            events.TopicCommit(topic, (events.PartitionCommit(number, 1),))
            for topic, number in sorted(places)
        )
        self.both(events.CommitOffsets, self.sliced.now_ms + 1, 8, group, topics)

    @rule(group=GROUPS, producer=st.integers(1, 2), places=PLACES)
    def commit_in_transaction(self, group: str, producer: int, places: set[tuple[str, int]]) -> None:
        topics = tuple(
            events.TopicCommit(topic, (events.PartitionCommit(number, 2),))
            for topic, number in sorted(places)
        )
        now_ms = self.sliced.now_ms + 1
        self.both(events.CommitTransactionalOffsets, now_ms, group, topics, producer, 0, 1)

    @rule(group=GROUPS)
    def fetch(self, group: str) -> None:
        self.both(events.FetchOffsets, group, None)

    @rule(group=GROUPS)
    def delete_group(self, group: str) -> None:
        self.both(events.DeleteGroup, group)

    @rule(group=GROUPS)
    def delete_offset(self, group: str) -> None:
        self.both(events.DeleteOffsets, group, (events.TopicPartitions("t", (0, 1)),))

    @rule(count=st.integers(1, 3))
    def some_slices(self, count: int) -> None:
        for _ in range(count):
            for key in [key for key, at_ms in self.sliced.timers.items() if at_ms == 0][:1]:
                self.sliced.fire(key)

    @rule()
    def all_slices(self) -> None:
        self.drain(self.sliced)
        assert self.sliced.answers == self.at_once.answers
        assert self.sliced.state.offsets == self.at_once.state.offsets
        assert self.sliced.state.pending == self.at_once.state.pending
        assert self.sliced.state.groups == self.at_once.state.groups
        assert self.sliced.state.deletions == {}

    @rule(topic=st.sampled_from(["t", "u"]))
    def delete_topic(self, topic: str) -> None:
        """What is gone of it when differs, what there is in the end does not."""
        self.drain(self.sliced)
        self.both(events.TopicsDeleted, ((topic, bytes(16)),), self.sliced.now_ms + 1, token=False)
        self.drain(self.sliced)

    @rule(duration_ms=st.sampled_from([1, 2_000]))
    def old_offsets_expire(self, duration_ms: int) -> None:
        self.drain(self.sliced)
        for world in (self.at_once, self.sliced):
            world.now_ms += duration_ms
            world.submit(events.TimerFired(EXPIRY_TIMER, world.now_ms))
            while world.state.expiry_backlog:
                world.fire(EXPIRY_TIMER)

    @invariant()
    def the_log_leads_to_the_state(self) -> None:
        check_law(self.sliced)


TwoWorlds.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestTwoWorlds = TwoWorlds.TestCase
