"""Work about the same key one after the other: what comes later stands in line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Lines(Generic[Key]):
    """A line for each key, kept while anything stands in it. Event loop only."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: dict[Key, _Line] = {}

    def __len__(self) -> int:
        """All in line, including those whose turn it is."""
        return sum(line.length for line in self._lines.values())

    @asynccontextmanager
    async def turn(self, key: Key) -> AsyncIterator[None]:
        """Stand in the line of `key`; the block runs when it is its turn."""
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line()
        line.length += 1
        try:
            async with line.turn:
                yield
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[key]


class _Line:
    __slots__ = ("length", "turn")

    def __init__(self) -> None:
        self.length = 0
        self.turn = asyncio.Lock()
