"""Waits end with news, without polling, or with their time."""

from __future__ import annotations

import asyncio

import pytest

from pykafka_broker.local_cluster.waiting import Waiting


async def test_what_is_there_already_is_returned_at_once() -> None:
    assert await Waiting().until(lambda: 0, 0.0, lambda: "") == 0


async def test_each_who_waits_is_answered_by_the_first_news_that_has_it() -> None:
    waiting, known = Waiting(), dict[str, int]()
    one = asyncio.ensure_future(waiting.until(lambda: known.get("one"), 60, lambda: ""))
    other = asyncio.ensure_future(waiting.until(lambda: known.get("other"), 60, lambda: ""))
    await asyncio.sleep(0)
    known["one"] = 1
    waiting.news("of", "something")
    known["one"], known["other"] = 3, 2
    waiting.news()
    assert (await one, await other) == (1, 2)


async def test_a_wait_without_news_ends_with_a_sentence() -> None:
    with pytest.raises(TimeoutError, match="No leader yet"):
        await Waiting().until(lambda: None, 0.001, lambda: "No leader yet")


async def test_what_goes_wrong_while_looking_is_raised() -> None:
    def look() -> int | None:
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        await Waiting().until(look, 60, lambda: "")
