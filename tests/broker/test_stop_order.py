"""The order of a stop, whatever the order of the start was."""

from __future__ import annotations

from functools import partial

import pytest

from pykafka_broker.broker.foundation import lay
from pykafka_broker.broker.node import start_node
from pykafka_broker.broker.stop_order import StopStep, Undo, Undoing
from tests.support.controllers import combined_home


class NotedUndo(Undo):
    """Notes the steps in the order in which they are entered."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[StopStep] = []

    def add(self, step: StopStep, undoing: Undoing) -> None:
        self.steps.append(step)
        super().add(step, undoing)


async def test_what_has_come_is_undone_in_the_order_of_the_list_and_once() -> None:
    undone: list[str] = []

    async def hang_up() -> None:
        undone.append("clients")

    undo = Undo()
    undo.add(StopStep.THREADS, partial(undone.append, "threads"))
    undo.add(StopStep.CLIENTS, hang_up)
    undo.add(StopStep.LOGS, partial(undone.append, "logs"))
    undo.add(StopStep.OTHER_BROKERS, partial(undone.append, "the first of several"))
    undo.add(StopStep.OTHER_BROKERS, partial(undone.append, "the last of several"))
    await undo.close()
    assert undone == ["clients", "the last of several", "the first of several", "logs", "threads"]
    await undo.close()
    assert len(undone) == 5


async def test_a_step_that_fails_leaves_none_of_the_others_out() -> None:
    undone: list[str] = []

    async def fail() -> None:
        raise OSError("a disk")

    undo = Undo()
    undo.add(StopStep.LOGS, fail)
    undo.add(StopStep.LISTENERS, partial(undone.append, "listeners"))
    undo.add(StopStep.THREADS, partial(undone.append, "threads"))
    with pytest.raises(OSError, match="a disk"):
        await undo.close()
    assert undone == ["listeners", "threads"]


async def test_a_stop_goes_backwards_through_the_start() -> None:
    home, undo = combined_home(), NotedUndo()
    try:
        await start_node(lay(home.config(), home.clock, home.files), undo)
    finally:
        await undo.close()
    # Only real files have descriptors to care for.
    assert list(dict.fromkeys(reversed(undo.steps))) == [x for x in StopStep if x is not StopStep.DESCRIPTORS]
