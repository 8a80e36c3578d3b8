"""Waits for what the nodes of a cluster know, without polling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Optional, TypeVar

Answer = TypeVar("Answer")


class Waiting:
    """Repeats the check of every waiter when there may be news. Event loop only."""

    def __init__(self) -> None:
        self._looks: list[Callable[[], None]] = []

    def news(self, *_: Any) -> None:
        """A node has published metadata, or its role may have changed."""
        for look in tuple(self._looks):
            look()

    async def until(
        self, find: Callable[[], Optional[Answer]], timeout_s: float | None, what: Callable[[], str]
    ) -> Answer:
        """Return what `find` returns as soon as that is not None.

        Raises:
            TimeoutError: that takes longer than `timeout_s`, if that is given; `what()` is the text.
        """
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def look() -> None:
            if not answer.done() and (found := find()) is not None:
                answer.set_result(found)

        self._looks.append(look)
        try:
            look()
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError:
            raise TimeoutError(what()) from None
        finally:
            self._looks.remove(look)
