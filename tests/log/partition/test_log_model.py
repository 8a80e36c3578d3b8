"""A log against a list: whatever is done to it in whatever order, it holds what the list holds."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import NOW, append, end_transaction, new_log, produce, records, reopened

PRODUCERS = st.integers(1, 3)
SETTINGS: dict[str, Any] = {"segment_bytes": 400, "index_interval_bytes": 100, "retention_ms": -1}


class LogModel(RuleBasedStateMachine):
    """`self.written` is the list: (offset, value) of every data record below `self.end`."""

    def __init__(self) -> None:
        super().__init__()
        self.files = MemoryFiles()
        self.log: PartitionLog = new_log(self.files, **SETTINGS)
        self.written: list[tuple[int, bytes | None]] = []
        self.start = self.end = 0
        self.epoch = 0
        self.next_value = 0
        #: Per producer: next sequence, and (sequence, values, first offset) of what it sent.
        self.sequences: dict[int, int] = {}
        self.sent: dict[int, list[tuple[int, tuple[bytes, ...], int]]] = {}
        self.open_txns: dict[int, int] = {}

    @initialize()
    def begin(self) -> None:
        append(self.log, b"first")
        self.written.append((0, b"first"))
        self.end = 1

    def fresh(self, count: int) -> tuple[bytes, ...]:
        self.next_value += count
        return tuple(b"%d" % n for n in range(self.next_value - count, self.next_value))

    def wrote(self, values: tuple[bytes, ...]) -> None:
        self.written += [(self.end + n, value) for n, value in enumerate(values)]
        self.end += len(values)

    @rule(count=st.integers(1, 4))
    def append_plain(self, count: int) -> None:
        values = self.fresh(count)
        assert append(self.log, *values, epoch=self.epoch).first_offset == self.end
        self.wrote(values)

    @rule(producer=PRODUCERS, count=st.integers(1, 3))
    def produce_next(self, producer: int, count: int) -> None:
        values, sequence = self.fresh(count), self.sequences.get(producer, 0)
        result = produce(
            self.log, producer, sequence, *values, epoch=self.epoch, transactional=producer in self.open_txns
        )
        assert (result.first_offset, result.duplicate) == (self.end, False)
        self.sent.setdefault(producer, []).append((sequence, values, self.end))
        self.sequences[producer] = sequence + count
        self.wrote(values)

    @rule(producer=PRODUCERS, back=st.integers(1, 5))
    def retry(self, producer: int, back: int) -> None:
        if len(self.sent.get(producer, [])) < back:
            return
        sequence, values, first_offset = self.sent[producer][-back]
        result = produce(
            self.log, producer, sequence, *values, epoch=self.epoch, transactional=producer in self.open_txns
        )
        assert (result.first_offset, result.duplicate) == (first_offset, True)

    @rule(producer=PRODUCERS)
    def leave_a_gap(self, producer: int) -> None:
        if producer not in self.sequences:
            return
        try:
            produce(self.log, producer, self.sequences[producer] + 7)
        except KafkaError as error:
            assert error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        else:
            raise AssertionError("a gap was accepted")

    @rule(producer=PRODUCERS)
    def begin_transaction(self, producer: int) -> None:
        if producer in self.open_txns:
            return
        self.open_txns[producer] = self.end
        self.produce_next(producer, 1)

    @rule(producer=PRODUCERS, commit=st.booleans())
    def finish_transaction(self, producer: int, commit: bool) -> None:
        if self.open_txns.pop(producer, None) is None:
            return
        end_transaction(self.log, producer, commit=commit, epoch=self.epoch)
        self.end += 1
        self.log.state.advance_high_watermark(self.end)

    @rule()
    def new_leader(self) -> None:
        self.epoch += 1

    @rule()
    def roll(self) -> None:
        self.log.roller.roll()

    @rule()
    def flush(self) -> None:
        assert self.log.flusher.flush() == self.end

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        self.start = self.log.trimmer.delete_records(self.start + int((self.end - self.start) * share))
        self.log.trimmer.apply_retention(NOW)

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        if clean:
            assert self.log.close()
        self.files = self.files.killed()
        self.log = reopened(
            self.files,
            clean=clean,
            recovery_point=self.end if clean else self.log.state.recovery_point,
            log_start_offset=self.start,
            high_watermark=self.end,
            **SETTINGS,
        )

    @invariant()
    def it_holds_what_the_list_holds(self) -> None:
        log = self.log
        assert (log.state.log_start_offset, log.state.high_watermark, log.state.log_end_offset) == (
            self.start,
            self.end,
            self.end,
        )
        unstable = min(self.open_txns.values(), default=self.end)
        assert log.state.last_stable_offset == max(unstable, self.start)
        assert records(log) == [record for record in self.written if record[0] >= self.start]


TestLogModel = LogModel.TestCase
TestLogModel.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
