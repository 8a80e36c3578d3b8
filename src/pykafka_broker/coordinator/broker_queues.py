"""Questions to other brokers, gathered into requests: one request at a time to each broker.

Questions that come while a request is in flight go into the next one, so that a busy broker gets few requests
with many questions.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from pykafka_broker.protocol.errors import ErrorCode, KafkaError

Question = TypeVar("Question")
Answer = TypeVar("Answer")

#: The questions of one request.
MAX_BATCH = 1_000
#: The questions to one broker that may wait for a request.
MAX_WAITING = 10_000


class Brokers(Protocol):
    """The other brokers of the cluster."""

    def is_reachable(self, broker_id: int) -> bool:
        """Whether this broker is alive and has a listener for brokers."""
        ...

    def ask(self, broker_id: int, request: object, *, lowest_version: int = 0) -> Awaitable[Any]:
        """The response of a broker, in the newest version that both sides know.

        Raises:
            KafkaError: the request cannot be sent to this broker; UNSUPPORTED_VERSION, it knows no version of
                the request from `lowest_version` on.
            OSError: the broker is not reachable, or gone, or has not answered in time.
            ProtocolError: the broker has sent something else than responses.
        """
        ...


class BrokerQueues(Generic[Question, Answer]):
    """Event loop only.

    `exchange(broker_id, questions)` sends one request and returns the answer to each question; it raises
    nothing. Questions with the same `key` do not go into one request.
    """

    def __init__(
        self,
        exchange: Callable[[int, Sequence[Question]], Awaitable[Sequence[Answer]]],
        key: Callable[[Question], Hashable],
    ) -> None:
        self._exchange = exchange
        self._key = key
        self._waiting: dict[int, deque[_Asked[Question, Answer]]] = {}
        #: By broker, the task that runs until no question is left.
        self._asking: dict[int, asyncio.Task[None]] = {}

    def ask(self, broker_id: int, question: Question) -> asyncio.Future[Answer]:
        """The answer of a broker. A question whose future is cancelled before it was sent is not asked.

        Raises:
            KafkaError: NETWORK_EXCEPTION, too many questions wait for this broker.
        """
        waiting = self._waiting.setdefault(broker_id, deque())
        if len(waiting) >= MAX_WAITING:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"Too many questions to broker {broker_id} wait.")
        loop = asyncio.get_running_loop()
        asked: _Asked[Question, Answer] = _Asked(question, loop.create_future())
        waiting.append(asked)
        if broker_id not in self._asking:
            self._asking[broker_id] = loop.create_task(self._ask_all(broker_id, waiting))
        return asked.answer

    async def _ask_all(self, broker_id: int, waiting: deque[_Asked[Question, Answer]]) -> None:
        batch: list[_Asked[Question, Answer]] = []
        try:
            while batch := self._next_batch(waiting):
                answers = await self._exchange(broker_id, [asked.question for asked in batch])
                for asked, answer in zip(batch, answers, strict=True):
                    if not asked.answer.done():
                        asked.answer.set_result(answer)
        except Exception as error:
            for asked in (*batch, *waiting):
                if not asked.answer.done():
                    asked.answer.set_exception(error)
            raise
        finally:
            del self._asking[broker_id]
            del self._waiting[broker_id]

    def _next_batch(self, waiting: deque[_Asked[Question, Answer]]) -> list[_Asked[Question, Answer]]:
        """Take the questions of the next request, in their order."""
        batch: dict[Hashable, _Asked[Question, Answer]] = {}
        later: list[_Asked[Question, Answer]] = []
        while waiting and len(batch) < MAX_BATCH:
            asked = waiting.popleft()
            if asked.answer.done():
                continue
            key = self._key(asked.question)
            if key in batch:
                later.append(asked)
            else:
                batch[key] = asked
        waiting.extendleft(reversed(later))
        return list(batch.values())


class _Asked(Generic[Question, Answer]):
    """A question, and the future of its answer."""

    __slots__ = ("answer", "question")

    def __init__(self, question: Question, answer: asyncio.Future[Answer]) -> None:
        self.question = question
        self.answer = answer
