"""Producer ids of a broker whose controller takes its time, or refuses."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pykafka_broker.controller.core.events import ProducerIdBlock
from pykafka_broker.membership.producer_ids import PATIENCE_MS, PAUSES, ProducerIds
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.testing.clock import VirtualClock

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class Controller:
    """Answers each request for a block when the test says so."""

    def __init__(self) -> None:
        self.asked: list[asyncio.Future[ProducerIdBlock]] = []

    def allocate(self) -> asyncio.Future[ProducerIdBlock]:
        self.asked.append(asyncio.get_running_loop().create_future())
        return self.asked[-1]


async def outcome(asking: asyncio.Future[int]) -> int | ErrorCode:
    try:
        return await asking
    except KafkaError as error:
        return error.code


async def test_each_id_of_a_block_is_given_out_once_and_then_another_block_is_asked_for() -> None:
    controller, clock = Controller(), VirtualClock()
    ids = ProducerIds(controller.allocate, lambda: 7, clock)
    waiting = [asyncio.ensure_future(ids.next_id()) for _ in range(3)]
    await clock.pass_time(1)
    [first] = controller.asked
    first.set_result(ProducerIdBlock(1_000, 2))
    await clock.pass_time(1)
    controller.asked[1].set_result(ProducerIdBlock(5_000, 2))
    assert [await each for each in waiting] == [1_000, 1_001, 5_000]
    assert await ids.next_id() == 5_001


async def test_a_producer_is_told_to_ask_again_while_no_controller_allocates_a_block() -> None:
    """It waited for as long as there was no controller, and what it had sent behind it as well."""
    controller, clock = Controller(), VirtualClock()
    ids = ProducerIds(controller.allocate, lambda: 7, clock)
    for _ in range(2):
        asking = asyncio.ensure_future(ids.next_id())
        await clock.pass_time(PATIENCE_MS - 1)
        assert not asking.done()
        await clock.pass_time(1)
        assert await outcome(asking) is LOADING
    [block] = controller.asked
    block.set_result(ProducerIdBlock(0, 1_000))
    assert await ids.next_id() == 0


async def test_what_the_controller_refuses_a_broker_is_no_error_of_its_producers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A broker that was unregistered while it ran answered STALE_BROKER_EPOCH, which ends a producer. Later
    it asked the controller at every try of its producers, and logged the number of refusals for ever.
    """
    controller, clock = Controller(), VirtualClock()
    epochs = [7]
    ids = ProducerIds(controller.allocate, lambda: epochs[-1], clock)

    async def producers_retry(seconds: int) -> int:
        """Have a producer retry every 100 ms; return how often the controller was asked."""
        before = len(controller.asked)
        for _ in range(10 * seconds):
            asking = asyncio.ensure_future(ids.next_id())
            await clock.pass_time(100)
            if not asking.done():
                controller.asked[-1].set_exception(KafkaError(ErrorCode.STALE_BROKER_EPOCH))
            assert await outcome(asking) is LOADING
        return len(controller.asked) - before

    assert 5 <= await producers_retry(10) <= 15
    assert 9 <= await producers_retry(10) <= 10
    epochs.append(8)
    await producers_retry(10)
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, f"Our broker currently has a stale epoch ({epoch}), retrying") for epoch in epochs
    ]


async def test_a_refused_broker_asks_again_after_a_pause_which_is_short_after_a_success() -> None:
    controller, clock = Controller(), VirtualClock()
    ids = ProducerIds(controller.allocate, lambda: 7, clock)
    for number in range(2):
        asking = asyncio.ensure_future(ids.next_id())
        await clock.pass_time(1)
        controller.asked[-1].set_exception(KafkaError(ErrorCode.NOT_CONTROLLER))
        assert await outcome(asking) is LOADING
        await clock.pass_time(PAUSES.first_ms - 1)
        assert await outcome(asyncio.ensure_future(ids.next_id())) is LOADING
        assert len(controller.asked) == 2 * number + 1
        await clock.pass_time(1)
        asking = asyncio.ensure_future(ids.next_id())
        await clock.pass_time(1)
        controller.asked[-1].set_result(ProducerIdBlock(number, 1))
        assert await asking == number
