"""A transaction coordinator's core in a world of its own (`core_world.py`).

Markers are not written by themselves: `markers` holds what was started, and `finish` reports it done.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from pykafka_broker.coordinator.transactions.core import events
from pykafka_broker.coordinator.transactions.core.events import (
    Event,
    FindProducerId,
    NeedsProducerId,
    ProducerIdResult,
    WriteMarkers,
)
from pykafka_broker.coordinator.transactions.core.records import Record, decode_record, encode_record, replay
from pykafka_broker.coordinator.transactions.core.state import (
    TransactionConfig,
    TransactionMetadata,
    Transactions,
)
from pykafka_broker.coordinator.transactions.core.transitions import transition
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.topic_partition import TopicPartition
from tests.support.core_world import START_MS as START_MS
from tests.support.core_world import CoreWorld

MINUTE_MS = 60_000
FIRST_PRODUCER_ID = 1_000
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
V1, V2 = 1, 2
ID = "payments"
#: The settings of a broker for which none are given.
DEFAULT_CONFIG = TransactionConfig()


class TransactionWorld(CoreWorld[Transactions, TransactionConfig, Record]):
    """The transactions of one shard, and the markers on their way."""

    def __init__(self, config: TransactionConfig = DEFAULT_CONFIG, state: Transactions | None = None) -> None:
        super().__init__(config, state or Transactions.empty())
        self.markers: list[WriteMarkers] = []
        self.searches: list[FindProducerId] = []
        self.next_producer_id = FIRST_PRODUCER_ID

    # ---- driving ----

    def step(self, event: Event) -> Step[Transactions]:
        return transition(self.state, event, self.config)

    def read_back(self, record: object) -> Record:
        return through_bytes(record)

    def timer_fired(self, key: Hashable) -> Event:
        return events.TimerFired(key, self.now_ms)

    def start(self, work: Any) -> None:
        (self.markers if isinstance(work, WriteMarkers) else self.searches).append(work)

    def ask(self, kind: Any, *details: Any, **more: Any) -> Any:
        """Submit a request and return its answer; a fresh producer id is found when one is needed."""
        token = self.token()
        self.submit(kind(token, *details, **more))
        result = self.answers[token]
        if isinstance(result, NeedsProducerId):
            return self.ask(kind, *details, **more, fresh_producer_id=self.new_producer_id())
        return result

    def new_producer_id(self) -> int:
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def reload(self) -> TransactionWorld:
        """Another broker takes over: only the log is left."""
        other = TransactionWorld(self.config, replay(self.log))
        other.follow(self)
        other.next_producer_id = self.next_producer_id
        other.submit(events.Loaded(other.now_ms))
        return other

    # ---- requests ----

    def init(
        self, holds: tuple[int, int] = (-1, -1), *, txn_id: str = ID, timeout_ms: int = MINUTE_MS
    ) -> ProducerIdResult:
        result: ProducerIdResult = self.ask(events.InitProducerId, self.now_ms, txn_id, timeout_ms, *holds)
        return result

    def producer(self, *, txn_id: str = ID, timeout_ms: int = MINUTE_MS) -> tuple[int, int]:
        """A producer that has just been initialised: its id and epoch."""
        result = self.init(txn_id=txn_id, timeout_ms=timeout_ms)
        assert result.error is ErrorCode.NONE, result
        return result.producer_id, result.producer_epoch

    def add(
        self, producer: tuple[int, int], *partitions: TopicPartition, txn_id: str = ID, version: int = V2
    ) -> ErrorCode:
        error: ErrorCode = self.ask(
            events.AddPartitions, self.now_ms, txn_id, *producer, frozenset(partitions or (T0,)), version
        )
        return error

    def verify(
        self, producer: tuple[int, int], *partitions: TopicPartition, txn_id: str = ID
    ) -> dict[TopicPartition, ErrorCode]:
        result: dict[TopicPartition, ErrorCode] = self.ask(
            events.VerifyPartitions, txn_id, *producer, frozenset(partitions or (T0,))
        )
        return result

    def end(
        self, producer: tuple[int, int], *, commit: bool = True, txn_id: str = ID, version: int = V2
    ) -> ProducerIdResult:
        result: ProducerIdResult = self.ask(
            events.EndTransaction, self.now_ms, txn_id, *producer, commit, version
        )
        return result

    def finish(self) -> list[WriteMarkers]:
        """Every marker on its way arrives; returns them."""
        arrived, self.markers = self.markers, []
        for marker in arrived:
            self.submit(
                events.MarkersWritten(
                    self.now_ms, marker.transactional_id, marker.producer_id, marker.producer_epoch
                )
            )
        return arrived

    def find_producer_ids(self) -> None:
        """Fresh producer ids come for the transactions that wait for one."""
        searches, self.searches = self.searches, []
        for search in searches:
            self.submit(events.AbortTimedOut(self.now_ms, *search, self.new_producer_id()))

    # ---- what is ----

    def metadata(self, txn_id: str = ID) -> TransactionMetadata:
        return self.state.by_id[txn_id]

    def durable(self) -> dict[str, TransactionMetadata]:
        """The part of the state that the log has to lead to."""
        return {
            txn_id: metadata.durable(self.config.transaction_version)
            for txn_id, metadata in self.state.by_id.items()
        }


def through_bytes(record: object) -> Record:
    """A record as it is read back."""
    assert isinstance(record, Record)
    decoded = decode_record(*encode_record(record))
    assert decoded is not None
    return decoded


def partitions(names: Iterable[str]) -> frozenset[TopicPartition]:
    """Partitions by names like "t-0"."""
    return frozenset(
        TopicPartition(topic, int(number)) for topic, _, number in (name.rpartition("-") for name in names)
    )
