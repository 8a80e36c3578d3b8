"""Questions to other brokers: one request at a time to each, with all that came meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from pykafka_broker.coordinator import broker_queues
from pykafka_broker.coordinator.broker_queues import BrokerQueues
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.testing.clock import settle


class Exchanges:
    """The other brokers: requests arrive here, and the test lets them be answered."""

    def __init__(self) -> None:
        self.requests: list[tuple[int, list[str]]] = []
        self.answers: asyncio.Queue[Exception | None] = asyncio.Queue()
        # Questions that begin with the same letter do not go together.
        self.queues: BrokerQueues[str, str] = BrokerQueues(self.exchange, lambda question: question[0])

    async def exchange(self, broker_id: int, questions: Sequence[str]) -> Sequence[str]:
        self.requests.append((broker_id, list(questions)))
        failure = await self.answers.get()
        if failure is not None:
            raise failure
        return [f"{question}!" for question in questions]

    async def answer(self, times: int = 1) -> None:
        for _ in range(times):
            self.answers.put_nowait(None)
        await settle()


async def test_what_comes_while_a_request_is_on_its_way_goes_with_the_next() -> None:
    others = Exchanges()
    answers = [others.queues.ask(1, question) for question in "ab"]
    await settle()
    answers += [others.queues.ask(1, question) for question in "cde"]
    await settle()
    assert others.requests == [(1, ["a", "b"])]

    await others.answer()
    assert others.requests[1:] == [(1, ["c", "d", "e"])]
    await others.answer()

    assert [await answer for answer in answers] == ["a!", "b!", "c!", "d!", "e!"]


async def test_a_slow_broker_does_not_hold_up_the_others() -> None:
    others = Exchanges()
    for broker_id in (1, 2, 1):
        others.queues.ask(broker_id, "a")
    await settle()
    assert others.requests == [(1, ["a"]), (2, ["a"])]


async def test_questions_with_the_same_key_are_asked_one_after_the_other() -> None:
    others = Exchanges()
    answers = [others.queues.ask(1, question) for question in ("a1", "a2", "b1", "a3", "b2")]
    await settle()
    await others.answer(3)
    assert [asked for _, asked in others.requests] == [["a1", "b1"], ["a2", "b2"], ["a3"]]
    assert [await answer for answer in answers] == ["a1!", "a2!", "b1!", "a3!", "b2!"]


async def test_a_question_that_is_taken_back_in_time_is_not_asked() -> None:
    others = Exchanges()
    first = others.queues.ask(1, "a")
    await settle()
    second, third = others.queues.ask(1, "b"), others.queues.ask(1, "c")
    first.cancel()  # too late
    second.cancel()
    await others.answer(2)
    assert [asked for _, asked in others.requests] == [["a"], ["c"]]
    assert await third == "c!"


async def test_a_queue_that_ran_empty_begins_again() -> None:
    others = Exchanges()
    for question in "ab":
        answer = others.queues.ask(1, question)
        await others.answer()
        assert await answer == f"{question}!"
    assert [asked for _, asked in others.requests] == [["a"], ["b"]]


async def test_requests_and_queues_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_queues, "MAX_BATCH", 2)
    monkeypatch.setattr(broker_queues, "MAX_WAITING", 3)
    others = Exchanges()
    for question in "abc":
        others.queues.ask(1, question)
    with pytest.raises(KafkaError) as refused:
        others.queues.ask(1, "d")
    assert refused.value.code is ErrorCode.NETWORK_EXCEPTION

    await others.answer(2)
    assert [asked for _, asked in others.requests] == [["a", "b"], ["c"]]


async def test_a_failure_of_our_own_is_told_to_all_who_wait() -> None:
    others = Exchanges()
    first = others.queues.ask(1, "a")
    await settle()
    second = others.queues.ask(1, "b")
    asking = next(iter(others.queues._asking.values()))
    others.answers.put_nowait(ZeroDivisionError("a bug"))
    for each in (first, second, asking):
        with pytest.raises(ZeroDivisionError):
            await each
