"""Offsets committed in transactions: what counts in the end, what readers see, what the log says."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import FetchResult, PartitionCommit, TopicCommit
from pykafka_broker.coordinator.groups.core.loading import Loader
from pykafka_broker.coordinator.groups.core.offset_record import OffsetRecord
from pykafka_broker.coordinator.groups.core.record import Record, encode_record
from pykafka_broker.coordinator.groups.core.records import Entry, replay
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.topics import TopicInfo
from pykafka_broker.coordinator.groups.core.transactional_records import TransactionalRecord, TransactionEnd
from pykafka_broker.coordinator.groups.core.transitions import EXPIRY_TIMER, transition
from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.machine.step import Reply
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from pykafka_broker.protocol.records.control import EndTransactionMarker, build_marker_batch
from tests.support.groups import GroupWorld

WEEK_MS = 7 * 24 * 60 * 60 * 1000
GROUP = "readers"
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT
Positions = dict[tuple[str, int], int]


class Offsets:
    """The offsets of one shard, and the log they lead to, entry by entry and byte by byte."""

    def __init__(self) -> None:
        self.config = GroupCoordinatorConfig()
        self.state = Groups.empty()
        self.now_ms = 1_000_000
        self.entries: list[Entry] = []
        self.bytes: list[bytes] = []
        self.end_offset = 0
        self.result: Any = None

    def submit(self, event: Any) -> Any:
        step = transition(self.state, event, self.config)
        self.state = step.state
        self.entries += step.records  # type: ignore[arg-type]
        if step.records:
            self.bytes.append(self.batch(step.records))
            self.end_offset += len(step.records)
        [self.result] = [effect.result for effect in step.effects if isinstance(effect, Reply)] or [None]
        return self.result

    def batch(self, entries: tuple[Any, ...]) -> bytes:
        first = entries[0]
        if isinstance(first, TransactionEnd):
            marker = first.marker
            return build_marker_batch(
                EndTransactionMarker(marker.commit, 0),
                producer_id=marker.producer_id,
                producer_epoch=0,
                timestamp_ms=self.now_ms,
                base_offset=self.end_offset,
            )
        producer: dict[str, Any] = {}
        if isinstance(first, TransactionalRecord):
            producer = {"producer_id": first.producer_id, "producer_epoch": 0, "transactional": True}
        records = [entry.record if isinstance(entry, TransactionalRecord) else entry for entry in entries]
        assert all(isinstance(record, (Record, OffsetRecord)) for record in records)
        encoded = [(self.now_ms, *encode_record(record), ()) for record in records]
        return build_batch(encoded, BatchFields(base_offset=self.end_offset, **producer))

    def loaded(self) -> Groups:
        loader = Loader()
        for batch in self.bytes:
            loader.add(batch)
        return loader.state()

    # ---- requests ----

    def topics(self, positions: Positions) -> tuple[TopicCommit, ...]:
        return tuple(
            TopicCommit(topic, (PartitionCommit(partition, offset),))
            for (topic, partition), offset in positions.items()
        )

    def commit(self, positions: Positions, group: str = GROUP) -> None:
        self.submit(events.CommitOffsets(0, self.now_ms, 9, group, self.topics(positions)))

    def begin(self, producer_id: int, positions: Positions, group: str = GROUP) -> None:
        """Commit in a transaction."""
        topics = self.topics(positions)
        self.submit(events.CommitTransactionalOffsets(0, self.now_ms, group, topics, producer_id, 0, guard=1))

    def end(self, producer_id: int, *, commit: bool = True) -> None:
        assert self.submit(events.CompleteTransaction(0, Marker(producer_id, 0, commit, 0))) is ErrorCode.NONE

    def delete(self, topic: str, *partitions: int) -> None:
        asked = (events.TopicPartitions(topic, partitions or (0,)),)
        self.submit(events.DeleteOffsets(0, GROUP, asked))

    def expire(self) -> None:
        self.submit(events.TimerFired(EXPIRY_TIMER, self.now_ms))

    # ---- answers ----

    def committed(self, *, stable: bool = False) -> dict[tuple[str, int], int | ErrorCode]:
        result: FetchResult = self.submit(events.FetchOffsets(0, GROUP, None, stable))
        return {
            (topic, found.partition): found.error or found.offset
            for topic, _, partitions in result.topics
            for found in partitions
        }


def test_offsets_count_when_the_marker_says_commit_and_never_when_it_says_abort() -> None:
    offsets = Offsets()
    offsets.begin(1, {("t", 0): 5})
    offsets.begin(2, {("t", 1): 6})
    assert offsets.committed() == {}

    offsets.end(1)
    offsets.end(2, commit=False)
    assert offsets.committed() == {("t", 0): 5}


def test_what_was_written_last_counts_whatever_was_decided_last() -> None:
    offsets = Offsets()
    offsets.begin(1, {("t", 0): 5})
    offsets.begin(2, {("t", 0): 7})
    offsets.end(2)
    offsets.end(1)

    assert offsets.committed() == {("t", 0): 7}


def test_an_aborted_later_offset_leaves_the_earlier_one_its_place() -> None:
    offsets = Offsets()
    offsets.begin(1, {("t", 0): 5})
    offsets.begin(2, {("t", 0): 7})
    offsets.end(2, commit=False)
    offsets.end(1)

    assert offsets.committed() == {("t", 0): 5}


def test_a_producers_second_commit_takes_the_place_of_its_first() -> None:
    offsets = Offsets()
    offsets.begin(1, {("t", 0): 5})
    offsets.commit({("t", 0): 6})
    offsets.begin(1, {("t", 0): 7})
    offsets.end(1)

    assert offsets.committed() == {("t", 0): 7}


def test_who_wants_stable_offsets_waits_for_every_transaction_even_one_that_cannot_win() -> None:
    offsets = Offsets()
    offsets.commit({("t", 0): 1, ("t", 1): 2})
    offsets.begin(1, {("t", 0): 5})
    offsets.commit({("t", 0): 6})
    assert offsets.committed(stable=True) == {("t", 0): UNSTABLE, ("t", 1): 2}
    assert offsets.committed() == {("t", 0): 6, ("t", 1): 2}

    offsets.end(1)
    assert offsets.committed(stable=True) == {("t", 0): 6, ("t", 1): 2}


def test_deleted_offsets_do_not_come_back_by_a_marker() -> None:
    offsets = Offsets()
    offsets.commit({("t", 0): 1})
    offsets.begin(1, {("t", 0): 5, ("u", 0): 6, ("v", 0): 7})
    offsets.delete("t")
    offsets.submit(events.TopicsDeleted((("u", bytes(16)),)))
    assert offsets.committed(stable=True) == {}

    offsets.end(1)
    assert offsets.committed() == {("v", 0): 7}


def test_a_deleted_groups_transaction_leaves_nothing() -> None:
    offsets = Offsets()
    offsets.commit({("t", 0): 1})
    offsets.begin(1, {("t", 0): 5, ("u", 0): 6})
    offsets.submit(events.DeleteGroup(0, GROUP))
    offsets.end(1)

    assert offsets.committed() == {}
    assert GROUP not in offsets.loaded().groups


def test_neither_offset_nor_group_expires_under_an_open_transaction() -> None:
    offsets = Offsets()
    offsets.commit({("t", 0): 1})
    offsets.begin(1, {("t", 0): 5})
    offsets.now_ms += 2 * WEEK_MS
    offsets.expire()
    assert offsets.committed() == {("t", 0): 1}

    offsets.end(1, commit=False)
    offsets.expire()
    assert offsets.committed() == {}
    assert GROUP not in offsets.state.groups


def test_a_consumer_may_commit_in_an_older_epoch_what_it_has_had_since_then() -> None:
    world = GroupWorld()
    world.set_topics(TopicInfo("t", b"t" * 16, 2))
    first = world.join_consumer("a", "t")
    assert first.assignment == ((b"t" * 16, (0, 1)),)
    world.set_topics(TopicInfo("t", b"t" * 16, 3))
    world.advance(1_000)
    world.consumer("a", first.member_epoch)
    (kept,) = world.consumer_group().members["a"].assigned.values()
    assert kept == {0: 2, 1: 2, 2: 3}
    offsets = Offsets()
    offsets.state = world.state

    def commit(epoch: int, topic: str, partition: int) -> ErrorCode:
        topics = (TopicCommit(topic, (PartitionCommit(partition, 5),)),)
        ((_, _, ((_, error),)),) = offsets.submit(
            events.CommitTransactionalOffsets(0, 0, "g", topics, 1, 0, 1, member_id="a", generation=epoch)
        )
        assert isinstance(error, ErrorCode)
        return error

    assert commit(3, "t", 2) is ErrorCode.NONE
    assert commit(2, "t", 0) is ErrorCode.NONE
    assert commit(2, "t", 2) is ErrorCode.ILLEGAL_GENERATION
    assert commit(2, "missing", 0) is ErrorCode.ILLEGAL_GENERATION


def test_a_marker_of_a_producer_that_has_committed_nothing_is_written_all_the_same() -> None:
    offsets = Offsets()
    offsets.end(9)

    assert offsets.entries == [TransactionEnd(Marker(9, 0, True, 0))]


GROUPS = st.sampled_from(["g", "h"])
PRODUCERS = st.integers(1, 3)
POSITIONS = st.dictionaries(
    st.tuples(st.sampled_from(["t", "u"]), st.integers(0, 1)), st.integers(0, 100), min_size=1, max_size=3
)


class RandomOffsets(RuleBasedStateMachine):
    """Plain commits, transactions, deletions and time in any order; the log leads to the same state."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets = Offsets()

    @rule(group=GROUPS, positions=POSITIONS)
    def commit(self, group: str, positions: Positions) -> None:
        self.offsets.commit(positions, group)

    @rule(producer=PRODUCERS, group=GROUPS, positions=POSITIONS)
    def begin(self, producer: int, group: str, positions: Positions) -> None:
        self.offsets.begin(producer, positions, group)

    @rule(producer=PRODUCERS, commit=st.booleans())
    def end(self, producer: int, commit: bool) -> None:
        self.offsets.end(producer, commit=commit)

    @rule(group=GROUPS, topic=st.sampled_from(["t", "u"]), partition=st.integers(0, 1))
    def delete(self, group: str, topic: str, partition: int) -> None:
        asked = (events.TopicPartitions(topic, (partition,)),)
        self.offsets.submit(events.DeleteOffsets(0, group, asked))

    @rule(group=GROUPS)
    def delete_group(self, group: str) -> None:
        self.offsets.submit(events.DeleteGroup(0, group))

    @rule(topic=st.sampled_from(["t", "u"]))
    def delete_topic(self, topic: str) -> None:
        self.offsets.submit(events.TopicsDeleted(((topic, bytes(16)),)))

    @rule(duration_ms=st.sampled_from([1, WEEK_MS]))
    def time_passes(self, duration_ms: int) -> None:
        self.offsets.now_ms += duration_ms
        self.offsets.expire()

    @invariant()
    def entry_by_entry_the_log_leads_to_the_state(self) -> None:
        replayed = replay(self.offsets.entries)
        assert replayed.offsets == self.offsets.state.offsets
        assert replayed.offset_counts == self.offsets.state.offset_counts
        assert replayed.pending == self.offsets.state.pending

    @invariant()
    def the_bytes_lead_to_the_state(self) -> None:
        loaded = self.offsets.loaded()
        assert loaded.offsets == self.offsets.state.offsets
        assert loaded.offset_counts == self.offsets.state.offset_counts
        assert loaded.pending == self.offsets.state.pending


RandomOffsets.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestRandomOffsets = RandomOffsets.TestCase
