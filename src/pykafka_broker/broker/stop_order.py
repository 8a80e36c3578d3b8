"""The order of a stop, in one list; a failed start is undone in the same order.

Each part of a node adds its undoing as soon as it exists, so that a failed start leaves nothing behind. The
order is that of the start reversed: a part is undone before the parts on which it was built.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from enum import Enum, auto
from inspect import isawaitable
from typing import Union

#: Undoes something, at once or when its result has been awaited.
Undoing = Callable[[], Union[Awaitable[object], object]]


class StopStep(Enum):
    """The steps of a stop, in their order."""

    #: In a cluster other brokers lead before clients lose their connections.
    HAND_OVER = auto()
    PERIODIC_WORK = auto()
    #: No more clients are accepted, waiting requests are answered, and connections are closed.
    CLIENTS = auto()
    LOG_DIR_MOVES = auto()
    SHARE_PARTITIONS = auto()
    COORDINATORS = auto()
    #: The broker is fenced, if it has not handed over; heartbeats end.
    LIFECYCLE = auto()
    OTHER_BROKERS = auto()
    FETCHERS = auto()
    REPLICA_PLACES = auto()
    ISR_CHANGES = auto()
    #: From here on this node leaves the quorum.
    CONTROLLER_REGISTRATION = auto()
    OTHER_CONTROLLERS = auto()
    METADATA_REPLICA = auto()
    #: Includes controller listeners, over which brokers report that they know the new leaders.
    LISTENERS = auto()
    #: The last records are synced, and the clean shutdown marker is written.
    LOGS = auto()
    LOG_DIRS = auto()
    QUOTAS = auto()
    #: The reserved addresses of a start that failed early.
    ADDRESSES = auto()
    DESCRIPTORS = auto()
    THREADS = auto()


class Undo:
    """Undoes a start, even an unfinished one."""

    def __init__(self) -> None:
        self._entered: dict[StopStep, list[Undoing]] = {}

    def add(self, step: StopStep, undoing: Undoing) -> None:
        """Call `undoing` at this step of the stop; at one step the last one added is called first."""
        self._entered.setdefault(step, []).append(undoing)

    async def close(self) -> None:
        """Take all steps, once.

        Raises:
            Exception: a step has failed; all others have been taken.
        """
        entered, self._entered = self._entered, {}
        async with AsyncExitStack() as stack:  # calls the last callback first
            for step in reversed(StopStep):
                for undoing in entered.get(step, ()):
                    stack.push_async_callback(_undo, undoing)


async def _undo(undoing: Undoing) -> None:
    result = undoing()
    if isawaitable(result):
        await result
