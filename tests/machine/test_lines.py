"""Work about one key waits for its turn; other keys do not, and who goes away leaves the line."""

from __future__ import annotations

import asyncio

from pykafka_broker.machine.lines import Lines
from pykafka_broker.testing.clock import settle


class Work:
    """Stands in line until it is told to end."""

    def __init__(self, lines: Lines[str], key: str) -> None:
        self.has_turn = False
        self._end = asyncio.Event()
        self.task = asyncio.create_task(self._stand(lines, key))

    async def _stand(self, lines: Lines[str], key: str) -> None:
        async with lines.turn(key):
            self.has_turn = True
            await self._end.wait()

    async def end(self) -> None:
        self._end.set()
        await self.task


async def test_the_next_of_a_line_has_its_turn_when_the_one_before_it_is_done() -> None:
    lines: Lines[str] = Lines()
    first, second, other = Work(lines, "a"), Work(lines, "a"), Work(lines, "b")
    await settle()
    assert [each.has_turn for each in (first, second, other)] == [True, False, True]
    assert len(lines) == 3

    await first.end()
    await settle()
    assert second.has_turn

    await second.end()
    await other.end()
    assert len(lines) == 0


async def test_who_goes_away_leaves_the_line() -> None:
    lines: Lines[str] = Lines()
    first, gone, last = (Work(lines, "a") for _ in range(3))
    await settle()
    gone.task.cancel()
    await settle()
    assert len(lines) == 2

    await first.end()
    await settle()
    assert last.has_turn and not gone.has_turn
    await last.end()
    assert len(lines) == 0
