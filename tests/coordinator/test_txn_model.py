"""Ten thousand random steps of transactions by seed, and bugs planted on purpose that they must find."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.coordinator.transactions.core import ending, init_producer_id, partitions, timers, turn
from pykafka_broker.coordinator.transactions.core.state import TransactionMetadata, TransactionState
from pykafka_broker.log.partition.producers import ProducerStates
from pykafka_broker.machine.step import Start, Step
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from tests.support.planted_bug import Bug
from tests.support.transaction_model import World

SEEDS = range(20)
STEPS = 500
#: The rarest of the planted bugs takes some fifty lives of the world to show.
LIVES_TO_FIND_A_BUG = 200


@pytest.mark.parametrize("seed", SEEDS)
def test_transactions_hold_whatever_happens(seed: int) -> None:
    world = World(seed)
    world.run(STEPS)

    assert len(world.told) > 10, "too little has happened to prove anything"
    assert {True, False} == set(world.told.values())


def _without_a_partition(markers_of: Any) -> Any:
    def spoilt(metadata: TransactionMetadata) -> Start:
        work = markers_of(metadata).work
        return Start(work._replace(partitions=frozenset(sorted(work.partitions)[1:])))

    return spoilt


def _as_commit(markers_of: Any) -> Any:
    return lambda metadata: Start(markers_of(metadata).work._replace(commit=True))


def _nothing_unfinished(on_loaded: Any) -> Any:
    def spoilt(state: Any, event: Any, config: Any) -> Step[Any]:
        step: Step[Any] = on_loaded(state, event, config)
        return step._replace(effects=tuple(e for e in step.effects if not isinstance(e, Start)))

    return spoilt


def _keeps_epoch(decided: Any) -> Any:
    def spoilt(metadata: TransactionMetadata, *rest: Any) -> TransactionMetadata | None:
        after: TransactionMetadata | None = decided(metadata, *rest)
        return None if after is None else after._replace(producer_epoch=metadata.producer_epoch)

    return spoilt


def _decides_anew(on_end: Any) -> Any:
    """A retry is taken for a new request, which may want the opposite."""

    def spoilt(state: Any, event: Any, config: Any) -> Step[Any]:
        metadata = state.by_id.get(event.transactional_id)
        if metadata is not None and metadata.state is TransactionState.PREPARE_COMMIT and not event.commit:
            changed = metadata._replace(state=TransactionState.PREPARE_ABORT)
            return turn.written(state.with_metadata(changed), changed, config, turn.markers_of(changed))
        step: Step[Any] = on_end(state, event, config)
        return step

    return spoilt


def _takes_any_marker(check: Any) -> Any:
    def spoilt(self: ProducerStates, header: Any, origin: Any, marker: Any = None, **more: Any) -> Any:
        return None if marker is not None else check(self, header, origin, marker, **more)

    return spoilt


def _without_window(check: Any) -> Any:
    def spoilt(self: ProducerStates, *args: Any, **more: Any) -> None:
        try:
            check(self, *args, **more)
        except KafkaError as refusal:
            if refusal.code is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                raise

    return spoilt


BUGS = [
    Bug("a partition gets no marker", ending, "markers_of", _without_a_partition),
    Bug("an abort writes commit markers", ending, "markers_of", _as_commit),
    Bug("an abort for a new producer writes commit markers", init_producer_id, "markers_of", _as_commit),
    Bug("a new coordinator forgets what was decided", timers, "on_loaded", _nothing_unfinished),
    Bug("the end of a transaction does not bump the epoch", ending, "decided_with_bump", _keeps_epoch),
    Bug("old epochs may add partitions", partitions, "fenced", lambda _: lambda *_: ErrorCode.NONE),
    Bug(
        "the log verifies nothing",
        ProducerStates,
        "check",
        lambda right: lambda *about, **more: right(*about, **{**more, "guard": None}),
    ),
    Bug("markers of any epoch are taken", ProducerStates, "check", _takes_any_marker),
    Bug(
        "readers do not wait for open transactions",
        ProducerStates,
        "first_unstable_offset",
        lambda _: lambda self: None,
    ),
    Bug(
        "the list of aborted transactions is lost",
        ProducerStates,
        "append_marker",
        lambda right: lambda self, *rest: (right(self, *rest), None)[1],
    ),
    Bug("a retried batch is written again", ProducerStates, "check", _without_window),
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)

    with pytest.raises(AssertionError):
        for seed in range(LIVES_TO_FIND_A_BUG):
            World(seed).run(STEPS)
