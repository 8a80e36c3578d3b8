"""The other brokers of a cluster, as coordinators ask them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class Others:
    """The other brokers, alive unless they are named in `dead`; `answer` makes their answers."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.answer = answer
        self.dead: set[int] = set()
        self.asked: list[tuple[int, Any, int]] = []
        #: Cleared while answers are to wait.
        self.free = asyncio.Event()
        self.free.set()

    def is_reachable(self, broker_id: int) -> bool:
        return broker_id >= 0 and broker_id not in self.dead

    async def ask(self, broker_id: int, request: Any, *, lowest_version: int = 0) -> Any:
        self.asked.append((broker_id, request, lowest_version))
        await self.free.wait()
        answer = self.answer(request)
        if isinstance(answer, Exception):
            raise answer
        return answer
