"""A share partition with its log, its members and its share coordinator, under random events.

Beside the core stands a ledger that knows every record by itself, and nothing of batches: who has it, until
when, how often it was delivered, which write it waits for. After each event the core has to agree with it,
and with what was promised: a record that was acknowledged is never delivered again, and none is passed over.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from pykafka_broker.machine.step import Reply, SetTimer, Start, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.share.core import events, fetching, transitions
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import AcknowledgementBatch, AcknowledgeType, AcquireMode
from pykafka_broker.share.core.in_flight import Delivery
from pykafka_broker.share.core.records import Persisted, StateWrite, replay
from pykafka_broker.share.core.state import SharePartition
from pykafka_broker.share.core.turn import LOCK_TIMER

DONE = (Delivery.ACKNOWLEDGED, Delivery.ARCHIVED)
MEMBERS = ("ann", "ben", "cat")


@dataclass
class LogBatch:
    """A record batch in the log."""

    base: int
    last: int
    producer_id: int = -1
    transactional: bool = False
    aborted: bool = False
    marker: bool = False
    compacted: bool = False


@dataclass(frozen=True)
class Record:
    """All that the ledger knows of one record."""

    delivery: Delivery
    count: int
    member: str = ""
    lock: int = -1
    #: The write it waits for, who had it, and the limit then.
    waits: Optional[tuple[int, str, int]] = None
    gone: bool = False
    #: Its present state is what the share coordinator was told last.
    written: bool = False

    @property
    def free(self) -> bool:
        return self.delivery is Delivery.AVAILABLE and self.waits is None

    @property
    def settled(self) -> bool:
        return self.delivery in DONE and self.waits is None


def view(state: SharePartition) -> dict[int, tuple[Any, ...]]:
    """What the core knows, record by record."""
    return {
        offset: (
            piece.state.delivery,
            piece.state.delivery_count,
            piece.state.member_id,
            piece.state.lock_until_ms,
            None if piece.state.rollback is None else tuple(piece.state.rollback),
            piece.state.is_gone,
        )
        for batch in state.batches
        for piece in batch.pieces(batch.first_offset, batch.last_offset)
        for offset in range(piece.first_offset, piece.last_offset + 1)
    }


def by_offset(persisted: Persisted) -> dict[int, tuple[Delivery, int]]:
    return {
        offset: (batch.delivery, batch.delivery_count)
        for batch in persisted.batches
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }


@dataclass
class World:
    """One share partition and everything around it, by seed."""

    seed: int
    now_ms: int = 1_000
    log: list[LogBatch] = field(default_factory=list)
    log_start: int = 0
    log_end: int = 0
    records: dict[int, Record] = field(default_factory=dict)
    in_flight: list[StateWrite] = field(default_factory=list)
    #: Which record of the ledger timed out in which write.
    durable: dict[int, tuple[Delivery, int]] = field(default_factory=dict)
    held: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: {name: [] for name in MEMBERS})
    acknowledged: set[int] = field(default_factory=set)
    waiting: dict[int, tuple[str, tuple[AcknowledgementBatch, ...]]] = field(default_factory=dict)
    tokens: int = 0
    timer: Optional[int] = None
    happened: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.config = ShareConfig(
            partition_max_record_locks=self.dice.choice([20, 40, 100]),
            delivery_count_limit=self.dice.choice([2, 3, 5, 6]),
            record_lock_duration_ms=1_000,
            renew_acknowledge_enable=self.dice.random() < 0.8,
        )
        self.read_committed = self.dice.random() < 0.5
        #: How much goes wrong, and how slow the share coordinator is.
        self.trouble = self.dice.choice([0.02, 0.05, 0.2])
        self.answers = self.dice.choice([1, 3, 6])
        self.failures = self.dice.choice([0.05, 0.2, 0.6])
        self.persisted = Persisted(0)
        self.state = SharePartition()
        self.reload()

    # ---- running the core ----

    def submit(self, event: events.Event) -> Step[SharePartition]:
        """Run one event; what it replaces or writes is kept, and its consistency is checked."""
        step = transitions.transition(self.state, event, self.config)
        self.state = step.state
        for effect in step.effects:
            if isinstance(effect, SetTimer):
                assert effect.key == LOCK_TIMER
                self.timer = effect.at_ms
        assert len(step.records) <= 1
        for record in step.records:
            assert isinstance(record, StateWrite)
            self.in_flight.append(record)
        return step

    def ask(self, event: Any) -> tuple[Step[SharePartition], Any]:
        """Run a request, and return its answer if it was answered at once."""
        step = self.submit(event)
        answers = [e.result for e in step.effects if isinstance(e, Reply) and e.token == event.token]
        assert len(answers) <= 1
        return step, answers[0] if answers else None

    def token(self) -> int:
        self.tokens += 1
        return self.tokens

    def count(self, what: str) -> None:
        self.happened[what] = self.happened.get(what, 0) + 1

    # ---- the law ----

    def check(self) -> None:
        """The core agrees with the ledger."""
        known = view(self.state)
        expected = {
            offset: (
                r.delivery,
                r.count,
                r.member,
                r.lock,
                r.waits,
                r.gone,
            )
            for offset, r in self.records.items()
            if offset in known or offset >= self.state.start_offset
        }
        assert known == expected
        done = sum(r.delivery in DONE for o, r in self.records.items() if o >= self.state.start_offset)
        assert self.state.delivery_complete_count == done
        locks = [r.lock for r in self.records.values() if r.delivery is Delivery.ACQUIRED]
        if locks:
            assert self.timer is not None and self.timer <= min(locks), "a lock that nothing ends"
        for offset, record in self.records.items():
            if record.written and offset >= self.persisted.start_offset:
                assert self.durable.get(offset) == (record.delivery, record.count), "the durable part"
        assert self.state.end_offset >= self.state.start_offset
        self._check_batches()

    def _check_batches(self) -> None:
        end = -1
        for batch in self.state.batches:
            assert end < batch.first_offset <= batch.last_offset
            end = batch.last_offset
            assert batch.runs[-1].last_offset == end
            assert batch.by_offset or len(batch.runs) == 1
            assert all(a.state != b.state for a, b in zip(batch.runs, batch.runs[1:], strict=False))

    def start_moved_from(self, before: int) -> None:
        """The start offset has only passed what needs no delivery."""
        after = self.state.start_offset
        assert after >= before
        for offset in range(before, after):
            record = self.records.get(offset)
            passed = record is not None and record.settled
            assert passed or offset < self.log_start or self.is_no_record(offset), f"{offset} is lost"
        kept = {o for batch in self.state.batches for o in range(batch.first_offset, batch.last_offset + 1)}
        self.records = {o: r for o, r in self.records.items() if o in kept or o >= after}

    def is_no_record(self, offset: int) -> bool:
        """Nobody will ever read a record here."""
        batch = next((b for b in self.log if b.base <= offset <= b.last), None)
        return batch is None or batch.compacted or (batch.aborted and self.read_committed)

    # ---- what happens ----

    def reload(self) -> None:
        """The partition gets another leader, which reads the state; what was on its way is lost, or not."""
        for write in self.in_flight:
            if self.dice.random() < 0.5:
                self._apply(write)
            else:
                break
        self.in_flight, self.waiting, self.timer = [], {}, None
        self.held = {name: [] for name in MEMBERS}
        self.state = SharePartition()
        _, answer = self.ask(events.Initialize(self.token()))
        assert answer is None
        opener = self.tokens
        if not self.durable and self.persisted.start_offset == 0 and self.dice.random() < 0.5:
            step = self.submit(events.StateRead(ErrorCode.NONE, None, 7, -1))
            assert step.effects == (Start(events.FindStartOffset()),)
            step = self.submit(events.StartOffsetFound(ErrorCode.NONE, 0))
        else:
            step = self.submit(
                events.StateRead(ErrorCode.NONE, None, 7, self.persisted.start_offset, self.persisted.batches)
            )
        assert step.effects == (Reply(opener, events.OK),)
        self.records = {o: Record(d, c, written=True) for o, (d, c) in self.durable.items()}
        self.start_moved_from(self.persisted.start_offset)
        self.count("reload")

    def _apply(self, write: StateWrite) -> None:
        """The share coordinator takes a write."""
        self.persisted = replay(self.persisted, write)
        for batch in write.batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                self.durable[offset] = (batch.delivery, batch.delivery_count)
        start = self.persisted.start_offset
        self.durable = {o: known for o, known in self.durable.items() if o >= start}
        assert by_offset(self.persisted) == self.durable
        assert start == max(start, write.start_offset)

    def produce(self) -> None:
        size = self.dice.choice([1, 1, 2, 5, 8, 12])
        kind = self.dice.choice(["plain", "plain", "committed", "aborted"])
        batch = LogBatch(self.log_end, self.log_end + size - 1)
        if kind != "plain":
            batch = replace(batch, producer_id=9, transactional=True, aborted=kind == "aborted")
        self.log.append(batch)
        self.log_end += size
        if kind != "plain":
            self.log.append(LogBatch(self.log_end, self.log_end, 9, True, marker=True, aborted=False))
            if kind == "aborted":
                self.log[-1].producer_id = 9
            self.log_end += 1

    def fetch(self, member: str, *, in_between: bool = True) -> None:
        if self.config.partition_max_record_locks < 1:
            return
        fetch_id = self.token()
        earliest = fetching.earliest_begin(self.state, self.config)
        _, offset = self.ask(events.BeginFetch(fetch_id, fetch_id))
        assert offset is None or (earliest is not None and earliest <= offset), "who waits does not look"
        free = [o for o, r in self.records.items() if r.free]
        if offset is None:
            assert not free or self.state.fetch_id is not None
            assert self.state.in_flight_records >= self.config.partition_max_record_locks
            self.count("no room")
            return
        assert not free or offset <= min(free)
        if offset not in free:
            unread = self.state.active_gap_window is not None and offset not in self.records
            assert unread or offset in (self.state.end_offset, self.state.end_offset + 1)
        _, other = self.ask(events.BeginFetch(self.token(), 0))
        assert other is None, "two fetches at once"
        if in_between and self.dice.random() < 0.3:
            self.dice.choice([self.pass_time, self.write_done, self.acknowledge])()
        self._read(member, offset)
        self.submit(events.EndFetch(fetch_id))

    def _read(self, member: str, offset: int) -> None:
        if offset < self.log_start:
            self.tell_log_start()
            return
        wanted = self.dice.choice([1, 2, 4])
        found = [b for b in self.log if b.last >= offset and b.last >= self.log_start and not b.compacted]
        if found:
            self._acquire(member, offset, found[:wanted])

    def _acquire(self, member: str, offset: int, found: list[LogBatch]) -> None:
        mode = self.dice.choice(list(AcquireMode))
        max_records = self.dice.choice([1, 3, 10, 500])
        aborted = tuple(
            events.AbortedTransaction(b.base, 9)
            for b in self.log
            if b.aborted and found[0].base <= b.last + 1 and b.base <= found[-1].last
        )
        sizes = [batch.size for batch in self.state.batches]
        before, old_start, old_end = self.records, self.state.start_offset, self.state.end_offset
        is_free = offset in before and before[offset].free
        old_batches = self.state.batches
        event = events.Acquire(
            self.token(),
            self.now_ms,
            member,
            offset,
            tuple(
                events.FetchedBatch(
                    b.base, b.last, b.producer_id, b.transactional, b.marker and self._aborts(b)
                )
                for b in found
            ),
            max_records,
            self.dice.choice([1, 5, 500]),
            mode,
            aborted if self.read_committed else (),
        )
        _, answer = self.ask(event)
        self._take_acquired(event, answer, found)
        self.start_moved_from(old_start)
        self.held[member] += [(first, last) for first, last, _ in answer.records]
        if mode is AcquireMode.RECORD_LIMIT:
            assert answer.size <= max_records
        assert answer.size < max_records + max([*sizes, *(b.size for b in self.state.batches), 1])
        if self.state.end_offset > old_end >= found[0].base - 1:
            most = self.config.partition_max_record_locks + max(b.last - b.base + 1 for b in found)
            assert self.state.in_flight_records <= most, "too many records in flight"
        self._check_singled_out(answer, before, old_batches)
        if is_free and found[0].base <= offset:
            archived = any(self.records.get(o, before[o]).gone for o in before)
            assert answer.size or archived, "what was available is not delivered"
        if answer.size:
            self.count("acquired again" if answer.records[0].first_offset <= old_end else "acquired")

    def _aborts(self, marker: LogBatch) -> bool:
        return self.log[self.log.index(marker) - 1].aborted

    def _is_aborted(self, offset: int) -> bool:
        return any(b.aborted and b.base <= offset <= b.last for b in self.log)

    def _take_acquired(self, event: events.Acquire, answer: events.Acquired, found: list[LogBatch]) -> None:
        lock = self.now_ms + self.config.record_lock_duration_ms
        known = view(self.state)
        records = dict(self.records)
        for offset, record in self.records.items():
            if event.fetch_offset <= offset < found[0].base and record.delivery is Delivery.AVAILABLE:
                records[offset] = Record(Delivery.ARCHIVED, record.count, waits=record.waits, gone=True)
                self.count("compacted in flight")
        end = -1
        for first, last, delivery_count in answer.records:
            assert end < first <= last
            end = last
            for offset in range(first, last + 1):
                assert offset not in self.acknowledged, "delivered after its acknowledgement"
                assert not (self.read_committed and self._is_aborted(offset)), "an aborted record"
                before = records.get(offset)
                assert before is None or before.free
                assert delivery_count == (1 if before is None else before.count + 1)
                assert delivery_count <= max(self.config.delivery_count_limit, 1)
                records[offset] = Record(Delivery.ACQUIRED, delivery_count, event.member_id, lock)
        for offset in known.keys() - records.keys():
            batch = next((b for b in found if b.base <= offset <= b.last), None)
            if batch is not None and batch.aborted and self.read_committed and known[offset][1]:
                records[offset] = Record(Delivery.ARCHIVED, 1, gone=True)
                self.count("aborted")
            else:
                assert event.mode is AcquireMode.RECORD_LIMIT
                records[offset] = Record(Delivery.AVAILABLE, 0)
                self.count("left over")
        if self.read_committed:
            for batch in found:
                for offset in range(batch.base, batch.last + 1) if batch.aborted else ():
                    left = records.get(offset)
                    if left and left.free and known.get(offset, (None,))[0] is Delivery.ARCHIVED:
                        # Left over in record-limit mode, and acquired only to be archived.
                        assert left.count == 0
                        records[offset] = Record(Delivery.ARCHIVED, 1, gone=True)
        self.records = records

    def _check_singled_out(
        self, answer: events.Acquired, before: dict[int, Record], batches: tuple[Any, ...]
    ) -> None:
        """Records that have failed often are delivered with few others."""
        limit, threshold = self.config.delivery_count_limit, self.config.throttled_delivery_count
        if limit > 2 and any(count == limit and first in before for first, _, count in answer.records):
            assert answer.size == 1, "a last delivery goes alone"
            self.count("last delivery")
        again = [r for r in answer.records if r.first_offset in before]
        if again and all(count - 1 >= threshold for _, _, count in again):
            first, _, count = again[0]
            size = next(b.size for b in batches if b.first_offset <= first <= b.last_offset)
            assert answer.size <= max(1, size >> (count - threshold)), "delivered in smaller pieces"
            self.count("throttled")

    def acknowledge(self) -> None:
        member = self.dice.choice(MEMBERS)
        batches: list[AcknowledgementBatch] = []
        for first, last in sorted(self.held[member])[: self.dice.choice([1, 1, 2, 3])]:
            if self.dice.random() < 0.3:
                first = self.dice.randint(first, last)
                last = self.dice.randint(first, last)
            size = last - first + 1
            if self.dice.random() < 0.7:
                types: tuple[int, ...] = (self.dice.choice([0, 1, 1, 1, 2, 2, 3, 4]),)
            else:
                types = tuple(self.dice.choice([0, 1, 1, 1, 2, 2, 3, 4]) for _ in range(size))
            batches.append(AcknowledgementBatch(first, last, types))
        if self.dice.random() < 0.1:
            first = self.dice.randint(0, self.log_end)
            batches.append(AcknowledgementBatch(first, first + self.dice.randint(0, 5), (1,)))
        if self.dice.random() < 0.02:
            batches.append(AcknowledgementBatch(0, 0, self.dice.choice([(), (5,), (1, 1)])))
        if self.dice.random() < 0.05:
            member = self.dice.choice(MEMBERS)
        self.say(member, tuple(batches))

    def say(self, member: str, batches: tuple[AcknowledgementBatch, ...]) -> None:
        """Acknowledge, and check the outcome by the ledger."""
        expected, after, locks = self._outcome(member, batches)
        token = self.token()
        old = dict(self.records)
        step, answer = self.ask(events.Acknowledge(token, self.now_ms, member, batches))
        if expected is not ErrorCode.NONE:
            assert answer is not None and answer.error is expected, (answer, expected)
            assert not step.records
            known = view(self.state)
            self.records = old | {
                o: replace(old[o], lock=lock)
                for o, lock in locks.items()
                if old[o].delivery is Delivery.ACQUIRED and known[o][3] == lock
            }
            self.count(f"refused: {expected.name}")
            return
        self.records = after
        for first, last, _ in batches:
            self.held[member] = [r for r in self.held[member] if r[0] < first or r[1] > last]
        if answer is None:
            self.waiting[token] = (member, batches)
            self._check_write(step)
        else:
            assert answer == events.OK and not step.records
        self.count("acknowledged")

    def _outcome(
        self, member: str, batches: tuple[AcknowledgementBatch, ...]
    ) -> tuple[ErrorCode, dict[int, Record], dict[int, int]]:
        """What Kafka answers, and the records after that."""
        records = dict(self.records)
        locks: dict[int, int] = {}
        start = self.state.start_offset
        write_id = self.state.next_write_id
        limit = self.config.delivery_count_limit
        for first, last, types in batches:
            if not set(types) <= set(range(5)) or len(types) not in (1, last - first + 1):
                return ErrorCode.INVALID_REQUEST, records, locks
            if last < start:
                continue
            begin = (
                start
                if first < start and not any(b.first_offset <= first for b in self.state.batches)
                else first
            )
            if not any(b.first_offset <= begin for b in self.state.batches):
                return ErrorCode.INVALID_RECORD_STATE, records, locks
            if max(b.last_offset for b in self.state.batches if b.first_offset <= last) < last:
                return ErrorCode.INVALID_REQUEST, records, locks
            for offset in range(max(first, start), last + 1):
                record = records.get(offset)
                if record is None:
                    continue
                if record.delivery is not Delivery.ACQUIRED or record.member != member:
                    return ErrorCode.INVALID_RECORD_STATE, records, locks
                type_ = types[0] if len(types) == 1 else types[offset - first]
                if type_ == AcknowledgeType.RENEW:
                    if not self.config.renew_acknowledge_enable:
                        return ErrorCode.INVALID_RECORD_STATE, records, locks
                    locks[offset] = self.now_ms + self.config.record_lock_duration_ms
                    records[offset] = replace(record, lock=locks[offset])
                    continue
                delivery = {0: Delivery.ARCHIVED, 1: Delivery.ACKNOWLEDGED, 3: Delivery.ARCHIVED}.get(
                    type_, Delivery.AVAILABLE if record.count < limit else Delivery.ARCHIVED
                )
                waits = (write_id, member, limit)
                records[offset] = Record(delivery, record.count, lock=record.lock, waits=waits)
        return ErrorCode.NONE, records, locks

    def _check_write(self, step: Step[SharePartition]) -> None:
        """The write says of each of its records what became of it, and of all that wait for it."""
        (write,) = step.records
        assert isinstance(write, StateWrite)
        said = by_offset(Persisted(0, write.batches))
        for offset, state in said.items():
            assert (self.records[offset].delivery, self.records[offset].count) == state
        waiting = {o for o, r in self.records.items() if r.waits and r.waits[0] == write.write_id}
        assert waiting <= said.keys()
        assert write.start_offset == self.state.start_offset
        assert write.delivery_complete_count == self.state.delivery_complete_count
        assert write.state_epoch == self.state.state_epoch

    def write_done(self, *, fails: Optional[bool] = None) -> None:
        if not self.in_flight:
            return
        write = self.in_flight.pop(0)
        failed = self.dice.random() < self.failures if fails is None else fails
        token = next(p.token for p in self.state.writes if p.write == write)
        before = self.state.start_offset
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE if failed else ErrorCode.NONE
        if not failed:
            self._apply(write)
        step = self.submit(events.WriteDone(self.now_ms, write.write_id, error, "no"))
        replies = [e for e in step.effects if isinstance(e, Reply)]
        result = events.Result(error, "no") if failed else events.OK
        assert replies == ([] if token is None else [Reply(token, result)])
        said = by_offset(Persisted(0, write.batches))
        for offset, record in self.records.items():
            if record.waits is not None and record.waits[0] == write.write_id:
                self.records[offset] = self._after_write(offset, record, failed=failed)
            elif not failed and said.get(offset) == (record.delivery, record.count) and record.waits is None:
                self.records[offset] = replace(record, written=True)
        member, batches = self.waiting.pop(token, ("", ())) if token is not None else ("", ())
        if not failed:
            for first, last, types in batches:
                for offset in range(first, last + 1):
                    type_ = types[0] if len(types) == 1 else types[offset - first]
                    if type_ == AcknowledgeType.ACCEPT and offset in said:
                        self.acknowledged.add(offset)
        else:
            for first, last, _ in batches:
                self.held[member].append((first, last))
        self.start_moved_from(before)
        self._check_start_is_behind_done()
        self.count("write failed" if failed else "written")

    def _after_write(self, offset: int, record: Record, *, failed: bool) -> Record:
        assert record.waits is not None
        _, member, limit = record.waits
        if record.gone:
            return replace(record, waits=None)
        if not failed:
            return replace(record, waits=None, lock=-1, written=True)
        if record.lock <= self.now_ms:
            stays = record.count < limit and offset >= self.state.start_offset
            self.count("lock ended during a write")
            return Record(Delivery.AVAILABLE if stays else Delivery.ARCHIVED, record.count)
        return Record(Delivery.ACQUIRED, record.count, member, record.lock)

    def _check_start_is_behind_done(self) -> None:
        start = self.state.start_offset
        held_below = any(not r.settled for o, r in self.records.items() if o < start)
        record = self.records.get(start)
        if record is not None and record.settled and not held_below:
            raise AssertionError("the start offset stands still")

    def close_session(self) -> None:
        member = self.dice.choice(MEMBERS)
        limit, start = self.config.delivery_count_limit, self.state.start_offset
        write_id = self.state.next_write_id
        for offset, record in self.records.items():
            if record.delivery is Delivery.ACQUIRED and record.member == member:
                stays = record.count < limit and offset >= start
                self.records[offset] = Record(
                    Delivery.AVAILABLE if stays else Delivery.ARCHIVED,
                    record.count,
                    lock=record.lock,
                    waits=(write_id, member, limit),
                )
        token = self.token()
        step, answer = self.ask(events.ReleaseMember(token, self.now_ms, member))
        self.held[member] = []
        if answer is None:
            self.waiting[token] = (member, ())
            self._check_write(step)
            self.count("session closed")
        else:
            assert answer == events.OK and not step.records

    def pass_time(self, by_ms: Optional[int] = None) -> None:
        self.now_ms += self.dice.choice([1, 100, 300, 300, 1_000]) if by_ms is None else by_ms
        while self.timer is not None and self.timer <= self.now_ms:
            self.timer = None
            limit, start = self.config.delivery_count_limit, self.state.start_offset
            ended = False
            for offset, record in self.records.items():
                if record.delivery is Delivery.ACQUIRED and record.lock <= self.now_ms:
                    stays = record.count < limit and offset >= start
                    after = Delivery.AVAILABLE if stays else Delivery.ARCHIVED
                    self.records[offset] = Record(after, record.count)
                    ended = True
            step = self.submit(events.TimerFired(LOCK_TIMER, self.now_ms))
            assert bool(step.records) == ended
            if ended:
                assert Start(events.WakeFetches()) in step.effects
                self._check_write(step)
                self.count("locks ended")

    def cut_log(self) -> None:
        """Retention, or DeleteRecords; the share partition learns of it sooner or later."""
        self.log_start = self.dice.randint(self.log_start, min(self.log_end, self.log_start + 10))
        self.log = [b for b in self.log if b.last >= self.log_start]
        if self.dice.random() < 0.7:
            self.tell_log_start()

    def tell_log_start(self) -> None:
        before = self.state.start_offset
        for offset, record in self.records.items():
            if before <= offset < self.log_start and record.delivery is Delivery.AVAILABLE:
                self.records[offset] = Record(Delivery.ARCHIVED, record.count, waits=record.waits, gone=True)
                self.count("deleted in flight")
        self.submit(events.LogStartMoved(self.log_start))
        assert self.state.start_offset == max(before, self.log_start)
        self.start_moved_from(before)

    def compact(self) -> None:
        if self.log:
            batch = self.dice.choice(self.log)
            if not batch.transactional:
                batch.compacted = True

    # ---- a life ----

    def run(self, steps: int) -> None:
        """So many events, and then a quiet end at which everything is delivered."""
        happenings = (
            [self.produce] * 4
            + [lambda: self.fetch(self.dice.choice(MEMBERS))] * 6
            + [self.acknowledge] * 6
            + [self.write_done] * self.answers
            + [self.pass_time] * 2
            + [self.close_session]
        )
        for _ in range(steps):
            if self.dice.random() < self.trouble:
                self.dice.choice([self.cut_log, self.cut_log, self.compact, self.compact, self.reload])()
            else:
                self.dice.choice(happenings)()
            self.check()
        self.drain()

    def drain(self) -> None:
        """Everything is well for long enough: what is in the log is delivered and acknowledged."""
        self.tell_log_start()
        for _ in range(400):
            while self.in_flight:
                self.write_done(fails=False)
            self.pass_time(1_000)
            while self.in_flight:
                self.write_done(fails=False)
            self.check()
            for member in MEMBERS:
                self.fetch(member, in_between=False)
                for first, last in self.held[member]:
                    self.say(member, (AcknowledgementBatch(first, last, (1,)),))
                self.check()
            is_end = self.state.end_offset + 1 >= max(
                (b.last for b in self.log if not b.compacted), default=0
            )
            if is_end and not any(not r.settled for r in self.records.values()):
                break
        while self.in_flight:
            self.write_done(fails=False)
        self.check()
        assert all(r.settled for r in self.records.values()), "a record is never done with"
        readable = [b for b in self.log if not b.compacted]
        assert not readable or self.state.end_offset >= readable[-1].last, "the log is never read to its end"
