"""A share coordinator core with nothing around it: virtual time, recorded answers, an in-memory log.

`ShareWorld` does what the shard's shell does, at once and without futures. Records pass through their bytes.
`play` takes the lines of a transcript of Apache Kafka's `ShareCoordinatorShard` and answers like it:

    F 3 1000            a fresh shard: updates per snapshot, and the interval of snapshots of idle ones in ms
    T 1 2               topic 1 has 2 partitions (0: it is not there)
    N 500               it is 500 ms
    I g 1 0 4 100       Initialize: group, topic, partition, state epoch, start offset
    R g 1 0 7           Read: group, topic, partition, leader epoch
    W g 1 0 4 7 -1 3 5,9,1,2;10,10,2,0
                        Write: ..., state epoch, leader epoch, start offset, deliveries complete, batches
    D g 1 0             Delete
    S g 1 0             ReadSummary
    G 1                 topic 1 is deleted
    K                   snapshots of idle share partitions are due
    P                   which records are redundant?

A batch is `first offset,last offset,delivery count,delivery state`; "-" is none. An answer is the letter, the
error or else 0 and the fields, and the records with key and value in hex.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pykafka_broker.coordinator.share.core import events
from pykafka_broker.coordinator.share.core.batches import StateBatch
from pykafka_broker.coordinator.share.core.events import Event, PruneLog
from pykafka_broker.coordinator.share.core.housekeeping import COLD_TIMER
from pykafka_broker.coordinator.share.core.records import (
    Record,
    Snapshot,
    Update,
    decode_record,
    encode_record,
    replay,
)
from pykafka_broker.coordinator.share.core.state import ShareCoordinatorConfig, Shares
from pykafka_broker.coordinator.share.core.transitions import transition
from pykafka_broker.machine.step import CancelTimer, Reply, SetTimer, Start
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.topic_partition import SharePartitionKey

#: The settings of a broker for which none are given.
DEFAULT_CONFIG = ShareCoordinatorConfig()


class ShareWorld:
    """The share partitions of one shard, its log, the time, and the topics of the cluster."""

    def __init__(
        self, config: ShareCoordinatorConfig = DEFAULT_CONFIG, state: Shares | None = None, now_ms: int = 0
    ) -> None:
        self.config = config
        self.state = Shares.empty() if state is None else state
        self.now_ms = now_ms
        #: By topic id, how many partitions it has.
        self.topics: dict[bytes, int] = {}
        self.timers: dict[Hashable, int] = {}
        #: Records by their offsets, and the offset of the next one.
        self.log: dict[int, Record] = {}
        self.end_offset = 0
        self.last_records: tuple[Record, ...] = ()
        #: How many records each event that wrote any has written.
        self.write_sizes: list[int] = []
        self.prunes: list[PruneLog] = []
        self._answers: dict[int, Any] = {}
        self._tokens = 0

    # ---- driving ----

    def submit(self, event: Event) -> None:
        step = transition(self.state, event, self.config, self.end_offset)
        self.state = step.state
        records = [record for record in step.records if isinstance(record, (Snapshot, Update))]
        assert len(records) == len(step.records)
        self.last_records = tuple(map(through_bytes, records))
        if records:
            self.write_sizes.append(len(records))
        for record in self.last_records:
            self.log[self.end_offset] = record
            self.end_offset += 1
        for effect in step.effects:
            match effect:
                case Reply(token, result):
                    assert token not in self._answers, f"answered twice: {result}"
                    self._answers[token] = result
                case SetTimer(key, at_ms):
                    self.timers[key] = at_ms
                case CancelTimer(key):
                    self.timers.pop(key, None)
                case Start(PruneLog() as prune):
                    self.prunes.append(prune)

    def ask(self, event: Any) -> Any:
        """Submit a request, whose token is given to it, and return its answer."""
        self._tokens += 1
        self.submit(event._replace(token=self._tokens))
        return self._answers[self._tokens]

    def advance(self, duration_ms: int) -> None:
        """Let time pass; timers fire in order, each at its own moment."""
        until_ms = self.now_ms + duration_ms
        while self.timers:
            key, at_ms = min(self.timers.items(), key=lambda timer: timer[1])
            if at_ms > until_ms:
                break
            del self.timers[key]
            self.now_ms = max(self.now_ms, at_ms)
            self.submit(events.TimerFired(key, self.now_ms))
        self.now_ms = until_ms

    def prune(self) -> None:
        """Delete what the core has last found redundant from the start of the log."""
        if self.prunes:
            before = self.prunes[-1].before_offset
            self.log = {offset: record for offset, record in self.log.items() if offset >= before}

    def reloaded(self) -> ShareWorld:
        """Another broker takes over: only the log is left."""
        other = ShareWorld(self.config, self.replayed(), self.now_ms)
        other.topics, other.log, other.end_offset = dict(self.topics), dict(self.log), self.end_offset
        other.submit(events.Loaded(other.now_ms))
        return other

    def replayed(self) -> Shares:
        """The state that the log leads to."""
        return replay(self.log.items(), self.config.snapshot_update_records_per_snapshot)

    # ---- requests ----

    def count(self, key: SharePartitionKey) -> int:
        return self.topics.get(key.topic_id, 0)

    def initialize(self, key: SharePartitionKey, *, state_epoch: int = 0, start_offset: int = 0) -> Any:
        return self.ask(
            events.InitializeState(0, self.now_ms, key, state_epoch, start_offset, self.count(key))
        )

    def read(self, key: SharePartitionKey, *, leader_epoch: int = -1) -> Any:
        return self.ask(events.ReadState(0, self.now_ms, key, leader_epoch, self.count(key)))

    def write(
        self,
        key: SharePartitionKey,
        *batches: StateBatch,
        state_epoch: int = -1,
        leader_epoch: int = -1,
        start_offset: int = -1,
        complete: int = -1,
    ) -> Any:
        return self.ask(
            events.WriteState(
                0,
                self.now_ms,
                key,
                state_epoch,
                leader_epoch,
                start_offset,
                complete,
                batches,
                self.count(key),
            )
        )

    def delete(self, key: SharePartitionKey) -> Any:
        return self.ask(events.DeleteState(0, key, self.count(key)))

    def summary(self, key: SharePartitionKey) -> Any:
        return self.ask(events.ReadSummary(0, key, self.count(key)))


def through_bytes(record: Record) -> Record:
    """The record as it is read back from a log."""
    decoded = decode_record(*encode_record(record))
    assert decoded == record
    return record


# ---- transcripts ----


def play(world: ShareWorld, line: str) -> tuple[ShareWorld, str]:
    """Carry out one line of a transcript; the world it goes on with, and the answer."""
    letter, *words = line.split(" ")
    if letter == "F":
        updates, cold_ms = map(int, words)
        return ShareWorld(ShareCoordinatorConfig(updates, cold_ms)), "fresh"
    if letter == "T":
        world.topics[topic_id(words[0])] = int(words[1])
        return world, "topic"
    if letter == "N":
        world.now_ms = int(words[0])
        return world, "now"
    if letter == "P":
        offset = world.state.redundant_offset()
        return world, f"P {'none' if offset is None else offset}"
    world.last_records = ()
    if letter == "G":
        world.submit(events.TopicsDeleted(frozenset(map(topic_id, words))))
        answer = "G"
    elif letter == "K":
        world.submit(events.TimerFired(COLD_TIMER, world.now_ms))
        answer = "K"
    else:
        key = SharePartitionKey(words[0], topic_id(words[1]), int(words[2]))
        answer = f"{letter} {_asked(world, letter, key, words[3:])}"
    written: tuple[Record, ...] = world.last_records
    records = [" ".join(map(_hex, encode_record(record))) for record in written]
    return world, " | ".join([answer, *records])


def _asked(world: ShareWorld, letter: str, key: SharePartitionKey, words: list[str]) -> str:
    if letter == "I":
        result = world.initialize(key, state_epoch=int(words[0]), start_offset=int(words[1]))
        return f"{_error(result)}"
    if letter == "D":
        return f"{_error(world.delete(key))}"
    if letter == "W":
        state_epoch, leader_epoch, start_offset, complete = map(int, words[:4])
        result = world.write(
            key,
            *batches(words[4]),
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            complete=complete,
        )
        return f"{_error(result)}"
    if letter == "R":
        result = world.read(key, leader_epoch=int(words[0]))
        if result.refusal is not None:
            return f"{_error(result)}"
        found = ";".join(",".join(map(str, batch)) for batch in ("-", *result.batches))
        return f"{_error(result)} {result.state_epoch} {result.start_offset} {found}"
    assert letter == "S", letter
    result = world.summary(key)
    if result.refusal is not None:
        return f"{_error(result)}"
    fields = (
        result.state_epoch,
        result.leader_epoch,
        result.start_offset,
        result.delivery_complete_count,
    )
    return " ".join(map(str, (_error(result), *fields)))


def _error(result: Any) -> int:
    return int(ErrorCode.NONE if result.refusal is None else result.refusal.error)


def topic_id(number: str) -> bytes:
    """The id of a topic of a transcript."""
    return b"\x11" * 8 + int(number).to_bytes(8)


def batches(text: str) -> list[StateBatch]:
    """The batches of a transcript."""
    if text == "-":
        return []
    return [StateBatch(*map(int, batch.split(","))) for batch in text.split(";")]


def _hex(data: bytes | None) -> str:
    return "null" if data is None else data.hex()
