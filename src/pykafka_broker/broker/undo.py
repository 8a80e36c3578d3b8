"""The order of a stop, in one list; a start that fails half way is undone in the same order.

Each part of a node enters what undoes it as soon as it is there, so a start that fails leaves nothing behind.
The list goes backwards through the start: a part is undone before those on which it was built.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from enum import Enum, auto
from inspect import isawaitable
from typing import Union

#: Undoes something, at once or when it has been awaited.
Undoing = Callable[[], Union[Awaitable[object], object]]


class StopStep(Enum):
    """The steps of a stop, in their order."""

    #: In a cluster others lead by the time that clients lose their connections: answers have told them.
    HAND_OVER = auto()
    PERIODIC_WORK = auto()
    #: No more clients are let in, requests that wait are answered, and connections end.
    CLIENTS = auto()
    LOG_DIR_MOVES = auto()
    SHARE_PARTITIONS = auto()
    COORDINATORS = auto()
    #: The broker is fenced, if it has not handed over before; no more heartbeats.
    LIFECYCLE = auto()
    OTHER_BROKERS = auto()
    FETCHERS = auto()
    REPLICA_PLACES = auto()
    ISR_CHANGES = auto()
    #: From here on other nodes do without this one's part in the quorum.
    CONTROLLER_REGISTRATION = auto()
    OTHER_CONTROLLERS = auto()
    METADATA_REPLICA = auto()
    #: Those of controllers too: brokers say over them that they have learned who leads instead.
    LISTENERS = auto()
    #: The last records are on disk, and the clean stop is noted.
    LOGS = auto()
    LOG_DIRS = auto()
    QUOTAS = auto()
    #: The addresses that a start has reserved, if it has come no further.
    ADDRESSES = auto()
    DESCRIPTORS = auto()
    THREADS = auto()


class Undo:
    """Undoes a start, as far as it has come."""

    def __init__(self) -> None:
        self._entered: dict[StopStep, list[Undoing]] = {}

    def add(self, step: StopStep, undoing: Undoing) -> None:
        """Call `undoing` at this step of the stop; of several at one step the last one first."""
        self._entered.setdefault(step, []).append(undoing)

    async def close(self) -> None:
        """Take all steps, once.

        Raises:
            Exception: a step has failed; all others have been taken.
        """
        entered, self._entered = self._entered, {}
        async with AsyncExitStack() as stack:  # which begins at its end
            for step in reversed(StopStep):
                for undoing in entered.get(step, ()):
                    stack.push_async_callback(_undo, undoing)


async def _undo(undoing: Undoing) -> None:
    result = undoing()
    if isawaitable(result):
        await result
