"""The law of every core, for transactions: folding the emitted records from nothing gives the durable state.

Anything happens at any time: producers of both generations send right and wrong ids and epochs, markers
arrive late, clocks jump, coordinators move. Every record is encoded and decoded on its way.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pykafka_broker.coordinator.transactions.core import events
from pykafka_broker.coordinator.transactions.core.records import replay
from pykafka_broker.coordinator.transactions.core.state import (
    VALID_PREVIOUS_STATES,
    TransactionConfig,
    TransactionMetadata,
    TransactionState,
)
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.topic_partition import TopicPartition
from tests.support.transactions import FIRST_PRODUCER_ID, TransactionWorld

IDS = st.sampled_from(["payments", "refunds"])
PARTITIONS = st.sets(st.builds(TopicPartition, st.sampled_from("tu"), st.integers(0, 2)), min_size=1)
#: How far the producer's idea of itself is from the truth.
LAGS = st.sampled_from([0, 0, 0, 0, 1, -1])


class RandomTransactions(RuleBasedStateMachine):
    """Two transactional ids under everything that can happen to them."""

    @initialize(level=st.integers(0, 2))
    def begin(self, level: int) -> None:
        self.world = TransactionWorld(
            TransactionConfig(transaction_version=level, transactional_id_expiration_ms=100_000)
        )
        self.world.config = self.world.config._replace(transaction_remove_expired_interval_ms=30_000)
        self.world.submit(events.Loaded(self.world.now_ms))
        self.before = self.world.state

    def producer(self, txn_id: str, id_lag: int, epoch_lag: int) -> tuple[int, int]:
        metadata = self.world.state.by_id.get(txn_id)
        if metadata is None:
            return FIRST_PRODUCER_ID, 0
        return metadata.producer_id - id_lag, metadata.producer_epoch - epoch_lag

    def version(self, wanted: int) -> int:
        """Clients work with version 2 only where it is finalised."""
        return wanted if self.world.config.transaction_version == 2 else 0

    @rule(
        txn_id=IDS, holds=st.booleans(), id_lag=LAGS, epoch_lag=LAGS, timeout_ms=st.sampled_from([1, 60_000])
    )
    def init(self, txn_id: str, holds: bool, id_lag: int, epoch_lag: int, timeout_ms: int) -> None:
        who = self.producer(txn_id, id_lag, epoch_lag) if holds else (-1, -1)
        result = self.world.init(who, txn_id=txn_id, timeout_ms=timeout_ms)
        if result.error is ErrorCode.NONE:
            metadata = self.world.metadata(txn_id)
            assert result[1:] == (metadata.producer_id, metadata.producer_epoch)
            assert metadata.producer_epoch < 32767

    @rule(txn_id=IDS, id_lag=LAGS, epoch_lag=LAGS, added=PARTITIONS, version=st.sampled_from([0, 2]))
    def add(self, txn_id: str, id_lag: int, epoch_lag: int, added: set[TopicPartition], version: int) -> None:
        who = self.producer(txn_id, id_lag, epoch_lag)
        error = self.world.add(who, *added, txn_id=txn_id, version=self.version(version))
        if error is ErrorCode.NONE:
            assert added <= self.world.metadata(txn_id).partitions
            assert set(self.world.verify(who, *added, txn_id=txn_id).values()) == {ErrorCode.NONE}

    @rule(txn_id=IDS, id_lag=LAGS, epoch_lag=LAGS, commit=st.booleans(), version=st.sampled_from([0, 2]))
    def end(self, txn_id: str, id_lag: int, epoch_lag: int, commit: bool, version: int) -> None:
        who = self.producer(txn_id, id_lag, epoch_lag)
        self.world.end(who, commit=commit, txn_id=txn_id, version=self.version(version))

    @rule()
    def markers_arrive(self) -> None:
        self.world.finish()

    @rule()
    def producer_ids_arrive(self) -> None:
        self.world.find_producer_ids()

    @rule(txn_id=IDS, epoch=st.sampled_from([32765, 32766]))
    def years_pass(self, txn_id: str, epoch: int) -> None:
        """As after that many transactions; written down, as they would have been."""
        metadata = self.world.state.by_id.get(txn_id)
        if metadata is not None and metadata.state is TransactionState.EMPTY:
            held = metadata._replace(producer_epoch=epoch - 1)
            self.world.state = self.world.state.with_metadata(held)
            self.world.init(txn_id=txn_id)

    @rule(duration_ms=st.sampled_from([1, 9_999, 10_000, 60_001, 200_000]))
    def time_passes(self, duration_ms: int) -> None:
        self.world.advance(duration_ms)

    @rule()
    def the_coordinator_moves(self) -> None:
        self.world = self.world.reload()

    @invariant()
    def the_log_leads_to_the_state(self) -> None:
        assert dict(replay(self.world.log).by_id) == self.world.durable()

    @invariant()
    def records_tell_of_legal_moves_only(self) -> None:
        """A final answer writes what is known once more."""
        known: dict[str, TransactionMetadata] = {}
        for record in self.world.log:
            before = known.get(record.transactional_id)
            state = TransactionState.EMPTY if before is None else before.state
            if record.metadata is None:
                assert state.is_over
                known.pop(record.transactional_id)
            else:
                assert record.metadata == before or state in VALID_PREVIOUS_STATES[record.metadata.state]
                known[record.transactional_id] = record.metadata

    @invariant()
    def what_is_decided_has_its_markers_on_the_way(self) -> None:
        waiting = {marker.transactional_id for marker in self.world.markers}
        decided = {txn_id for txn_id, m in self.world.state.by_id.items() if m.state.is_decided}
        assert decided <= waiting


RandomTransactions.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestRandomTransactions = RandomTransactions.TestCase
