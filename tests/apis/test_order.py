"""Answers leave in the order in which their requests came, whichever is ready first."""

from __future__ import annotations

import asyncio

from pykafka_broker.protocol.messages.metadata import MetadataRequest
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import batch, fetching_of, parked, partitions_of, producing_to, wanting

METADATA, PRODUCE, FETCH = 3, 0, 1


async def test_answers_come_in_the_order_of_the_requests(user: User) -> None:
    await user.create_topic("t")
    asked: list[tuple[int, int]] = []
    for number in range(50):
        if number % 2:
            asked.append((user.write(producing_to("t", batch(b"%d" % number)), 9), PRODUCE))
        else:
            asked.append((user.write(MetadataRequest(topics=[]), 9), METADATA))

    for correlation_id, api_key in asked:
        await user.read(api_key, 9)
        assert user.last_correlation_id == correlation_id
    assert await user.values("t") == [b"%d" % number for number in range(1, 50, 2)]


async def test_a_request_behind_a_waiting_fetch_is_answered_after_it(
    home: Home, user: User, another: User
) -> None:
    await user.create_topic("t")
    before = home.clock.pending_timers
    user.write(fetching_of(wanting("t"), max_wait_ms=500), 12)
    user.write(MetadataRequest(topics=[]), 9)
    while home.clock.pending_timers == before:  # noqa: ASYNC110 - the request is on its way
        await asyncio.sleep(0)

    await another.produce("t", b"v")

    assert [p.high_watermark for p in partitions_of(await user.read(FETCH, 12))] == [1]
    assert (await user.read(METADATA, 9)).controller_id == 1


async def test_another_connection_does_not_wait_for_a_waiting_fetch(
    home: Home, user: User, another: User
) -> None:
    await user.create_topic("t")
    waiting = await parked(home, user.send(fetching_of(wanting("t"), max_wait_ms=500), 12))

    assert (await another.send(MetadataRequest(topics=[]), 9)).controller_id == 1

    await home.clock.pass_time(500)
    await waiting
