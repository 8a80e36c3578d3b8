"""An in-flight batch: offsets that were first acquired together.

Kafka gives a batch a state per offset once some of its records are treated differently, and never goes
back. Here such a batch has runs of consecutive records with one state. `by_offset` stays set, because
errors and deliveries depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pykafka_broker.share.core.in_flight import InFlightState
from pykafka_broker.system.named_tuple import NamedTuple


class Run(NamedTuple):
    """Records of one state, from the end of the previous run to `last_offset`."""

    last_offset: int
    state: InFlightState


class Piece(NamedTuple):
    """Records of one state, and their offsets."""

    first_offset: int
    last_offset: int
    state: InFlightState

    @property
    def size(self) -> int:
        return self.last_offset - self.first_offset + 1


class InFlightBatch(NamedTuple):
    """Records between two offsets; clients acknowledge offsets without a record as gaps."""

    first_offset: int
    last_offset: int
    runs: tuple[Run, ...]
    #: The state is kept by offset.
    by_offset: bool = False

    @property
    def size(self) -> int:
        """Offsets, not records."""
        return self.last_offset - self.first_offset + 1

    @property
    def state(self) -> InFlightState:
        """The state of all records; only of a batch that is not kept by offset."""
        return self.runs[0].state

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        return first_offset <= self.first_offset and self.last_offset <= last_offset

    def pieces(self, first_offset: int, last_offset: int) -> Iterator[Piece]:
        """The runs between two offsets, cut there."""
        begin = self.first_offset
        for run in self.runs:
            if begin > last_offset:
                return
            if run.last_offset >= first_offset:
                yield Piece(max(begin, first_offset), min(run.last_offset, last_offset), run.state)
            begin = run.last_offset + 1


def whole(first_offset: int, last_offset: int, state: InFlightState) -> InFlightBatch:
    """A batch of one state."""
    return InFlightBatch(first_offset, last_offset, (Run(last_offset, state),))


def changed(
    batch: InFlightBatch,
    first_offset: int,
    last_offset: int,
    change: Callable[[Piece], Iterable[Piece]],
) -> InFlightBatch:
    """The batch with the states between two offsets changed; neighbouring runs of equal state are joined.

    `change` returns the pieces, in order, that a piece becomes.
    """
    runs: list[Run] = []

    def add(last: int, state: InFlightState) -> None:
        if runs and runs[-1].state == state:
            runs[-1] = Run(last, state)
        else:
            runs.append(Run(last, state))

    begin = batch.first_offset
    for run in batch.runs:
        end = run.last_offset
        low, high = max(begin, first_offset), min(end, last_offset)
        if low > high:
            add(end, run.state)
        else:
            if begin < low:
                add(low - 1, run.state)
            for part in change(Piece(low, high, run.state)):
                add(part.last_offset, part.state)
            if high < end:
                add(end, run.state)
        begin = end + 1
    return batch._replace(runs=tuple(runs))
