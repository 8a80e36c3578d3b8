"""The writes of one share partition to its share coordinator: in order, one request at a time.

Writes that come while a request is in flight go together in the next one, so that members that
acknowledge at the same time share a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from pykafka_broker.share.core.events import Result
from pykafka_broker.share.core.records import Persisted, StateWrite, replay


def together(writes: Sequence[StateWrite]) -> StateWrite:
    """Merge several writes into one; later states win."""
    last = writes[-1]
    if len(writes) == 1:
        return last
    folded = Persisted(last.start_offset)
    for write in writes:
        folded = replay(folded, write)
    return last._replace(batches=folded.batches)


class ShareWrites:
    """Sends writes, and reports the outcome of each. Event loop only.

    `send` returns the outcome and raises nothing.
    """

    __slots__ = ("_done", "_send", "_sending", "_waiting")

    def __init__(
        self,
        send: Callable[[StateWrite], Awaitable[Result]],
        done: Callable[[StateWrite, Result], None],
    ) -> None:
        self._send = send
        self._done = done
        self._waiting: list[StateWrite] = []
        self._sending: asyncio.Task[None] | None = None

    @property
    def sending(self) -> asyncio.Task[None] | None:
        """The task that sends the pending writes; None if every write is answered."""
        return self._sending

    def add(self, write: StateWrite) -> None:
        """Queue a write after the earlier ones. It is never sent before this returns."""
        self._waiting.append(write)
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                writes, self._waiting = self._waiting, []
                result = await self._send(together(writes))
                for write in writes:
                    self._done(write, result)
        finally:
            self._sending = None
