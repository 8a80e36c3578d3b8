"""A share coordinator under everything that can happen to it, by seed, beside a model that is too simple to
be wrong: for each share partition a table of offsets.

Group coordinators initialise and delete, leaders of both old and new epochs read and write in any order,
topics come and go, time passes, the coordinator moves. What must hold after every step:

* Every answer is the model's: what is read is for each offset the furthest that anyone has written.
* The log leads to the state, read back in batches as another broker reads it.
* What is left of the log when all that is redundant is deleted leads to the same state of share partitions.
* No more than the configured number of updates follow a snapshot, and snapshot epochs count the snapshots.
"""

from __future__ import annotations

from random import Random
from typing import Any, Union

from pykafka_broker.coordinator.share.core import events
from pykafka_broker.coordinator.share.core.batches import StateBatch
from pykafka_broker.coordinator.share.core.events import ReadResult, SummaryResult
from pykafka_broker.coordinator.share.core.loading import Loader
from pykafka_broker.coordinator.share.core.records import Update, encode_record, replay
from pykafka_broker.coordinator.share.core.state import ShareCoordinatorConfig, Shares
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from tests.support.shares import ShareWorld

TOPICS = [b"\x11" * 16, b"\x22" * 16]
KEYS = [
    SharePartitionKey(group, topic, partition) for group in "gh" for topic in TOPICS for partition in (0, 1)
]
LAST_OFFSET = 30
EPOCHS = [-1, -1, 0, 1, 1, 2, 3]


class Known:
    """What the model knows of one share partition."""

    def __init__(self, state_epoch: int, start_offset: int) -> None:
        self._begin(state_epoch, start_offset)

    def _begin(self, state_epoch: int, start_offset: int) -> None:
        #: By offset, the highest delivery count and delivery state written.
        self.offsets: dict[int, tuple[int, int]] = {}
        self.start_offset = start_offset
        self.complete = -1 if start_offset == -1 else 0
        self.state_epoch = self.highest_state_epoch = state_epoch
        self.leader_epoch = self.highest_leader_epoch = 0

    def begin_anew(self, state_epoch: int, start_offset: int) -> None:
        before = self.highest_state_epoch, self.highest_leader_epoch
        self._begin(state_epoch, start_offset)
        self.highest_state_epoch = max(before[0], state_epoch)
        self.highest_leader_epoch = max(before[1], 0)

    def write(self, batches: list[StateBatch], start_offset: int, complete: int) -> None:
        if start_offset != -1:
            self.start_offset = start_offset
        self.complete = complete
        for batch in batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                said = batch.delivery_count, batch.delivery_state
                self.offsets[offset] = max(said, self.offsets.get(offset, said))
        if self.start_offset != -1:
            self.offsets = {at: said for at, said in self.offsets.items() if at >= self.start_offset}


class ShareModel:
    """The coordinator's side, the model, and the dice."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        limit = self.random.choice([0, 1, 2, 5])
        self.world = ShareWorld(ShareCoordinatorConfig(limit, 5_000, 7_000))
        self.world.topics = dict.fromkeys(TOPICS, 2)
        self.world.submit(events.Loaded(0))
        self.known: dict[SharePartitionKey, Known] = {}
        self.answered: set[Union[ErrorCode, str]] = set()

    def run(self, steps: int) -> None:
        kinds = {
            self.initialize: 10,
            self.read: 15,
            self.write: 40,
            self.summary: 8,
            self.delete: 3,
            self.time_passes: 10,
            self.a_topic_goes: 1,
            self.the_coordinator_moves: 2,
        }
        for step in self.random.choices(list(kinds), list(kinds.values()), k=steps):
            step()
            self.check_log()

    # ---- what happens ----

    def initialize(self) -> None:
        key, epoch = self.random.choice(KEYS), self.random.choice(EPOCHS)
        start_offset = self.offset()
        known = self.known.get(key)
        error = ErrorCode.NONE
        if known is not None and epoch != -1 and epoch < known.highest_state_epoch:
            error = ErrorCode.FENCED_STATE_EPOCH
        self.expect(error, self.world.initialize(key, state_epoch=epoch, start_offset=start_offset).refusal)
        if error is ErrorCode.NONE:
            if known is None:
                self.known[key] = Known(epoch, start_offset)
            else:
                known.begin_anew(epoch, start_offset)

    def read(self) -> None:
        key, epoch = self.random.choice(KEYS), self.random.choice(EPOCHS)
        known = self.known.get(key)
        result: ReadResult = self.world.read(key, leader_epoch=epoch)
        if known is None:
            self.expect(ErrorCode.INVALID_REQUEST, result.refusal)
        elif epoch != -1 and epoch < known.highest_leader_epoch:
            self.expect(ErrorCode.FENCED_LEADER_EPOCH, result.refusal)
        else:
            self.expect(ErrorCode.NONE, result.refusal)
            assert (result.state_epoch, result.start_offset) == (known.state_epoch, known.start_offset)
            assert _by_offset(result.batches) == known.offsets
            if epoch != -1 and epoch != known.highest_leader_epoch:
                known.leader_epoch = known.highest_leader_epoch = epoch

    def write(self) -> None:
        key = self.random.choice(KEYS)
        state_epoch, leader_epoch = self.random.choice(EPOCHS), self.random.choice(EPOCHS)
        start_offset, complete = self.offset(), self.random.choice([-1, 0, 4])
        batches = [self.batch() for _ in range(self.random.randrange(4))]
        result = self.world.write(
            key,
            *batches,
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            complete=complete,
        )
        known = self.known.get(key)
        if known is None:
            self.expect(ErrorCode.INVALID_REQUEST, result.refusal)
        elif leader_epoch != -1 and leader_epoch < known.highest_leader_epoch:
            self.expect(ErrorCode.FENCED_LEADER_EPOCH, result.refusal)
        elif state_epoch != -1 and state_epoch < known.highest_state_epoch:
            self.expect(ErrorCode.FENCED_STATE_EPOCH, result.refusal)
        else:
            self.expect(ErrorCode.NONE, result.refusal)
            known.write(batches, start_offset, complete)

    def summary(self) -> None:
        key = self.random.choice(KEYS)
        known = self.known.get(key)
        expected = SummaryResult(None, 0, 0, -1, -1)
        if known is not None:
            expected = SummaryResult(
                None, known.state_epoch, known.leader_epoch, known.start_offset, known.complete
            )
        assert self.world.summary(key) == expected

    def delete(self) -> None:
        key = self.random.choice(KEYS)
        self.expect(ErrorCode.NONE, self.world.delete(key).refusal)
        self.known.pop(key, None)

    def a_topic_goes(self) -> None:
        """And another one with its name comes, which here has the same id."""
        gone = self.random.choice(TOPICS)
        self.world.submit(events.TopicsDeleted(frozenset({gone})))
        for key in [key for key in self.known if key.topic_id == gone]:
            del self.known[key]

    def time_passes(self) -> None:
        self.world.advance(self.random.choice([1, 900, 5_000, 8_000]))

    def the_coordinator_moves(self) -> None:
        self.world = self.world.reloaded()

    def offset(self) -> int:
        return self.random.choice([-1, -1, self.random.randrange(LAST_OFFSET)])

    def batch(self) -> StateBatch:
        first = self.random.randrange(LAST_OFFSET)
        last = first + self.random.choice([0, 0, 1, 4])
        return StateBatch(first, last, self.random.randrange(1, 4), self.random.choice([0, 2, 4]))

    # ---- what must hold ----

    def expect(self, error: ErrorCode, refusal: Any) -> None:
        self.answered.add(error)
        assert error == (ErrorCode.NONE if refusal is None else refusal.error)

    def check_log(self) -> None:
        state = self.world.state
        assert self.read_back() == state
        redundant = state.redundant_offset() or 0
        if redundant:
            self.answered.add("pruned")
        left = ((at, record) for at, record in self.world.log.items() if at >= redundant)
        pruned = replay(left, self.world.config.snapshot_update_records_per_snapshot)
        assert _states(pruned) == _states(state)
        self.check_snapshots()

    def read_back(self) -> Shares:
        """The state that another broker finds."""
        loader = Loader(self.world.config.snapshot_update_records_per_snapshot)
        entries = [(0, *encode_record(record), ()) for record in self.world.log.values()]
        if entries:
            loader.add(build_batch(entries, BatchFields(base_offset=min(self.world.log))))
        assert loader.end_offset == self.world.end_offset
        return loader.state()

    def check_snapshots(self) -> None:
        epochs: dict[SharePartitionKey, int] = {}
        updates: dict[SharePartitionKey, int] = {}
        for record in self.world.log.values():
            key = record.key
            if isinstance(record, Update):
                assert record.snapshot_epoch == epochs[key]
                updates[key] = updates.get(key, 0) + 1
                assert updates[key] <= self.world.config.snapshot_update_records_per_snapshot
            elif record.state is None:
                epochs.pop(key)
                updates.pop(key, None)
            else:
                assert record.state.snapshot_epoch == epochs.get(key, -1) + 1
                epochs[key] = record.state.snapshot_epoch
                updates[key] = 0


def _by_offset(batches: tuple[StateBatch, ...]) -> dict[int, tuple[int, int]]:
    """What batches say of each offset. They must be in order, without overlaps."""
    said: dict[int, tuple[int, int]] = {}
    end = -1
    for batch in batches:
        assert end < batch.first_offset <= batch.last_offset
        end = batch.last_offset
        for offset in range(batch.first_offset, end + 1):
            said[offset] = batch.delivery_count, batch.delivery_state
    return said


def _states(state: Shares) -> dict[SharePartitionKey, Any]:
    return {key: entry.state for key, entry in state.by_key.items()}
