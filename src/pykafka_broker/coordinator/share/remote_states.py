"""Asks share coordinators on other brokers, with the requests that have API keys 83 to 87.

Each broker gets one request of a kind and a group at a time, with the questions that came meanwhile, each
share partition once. Retries are not made here, but in `persister.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pykafka_broker.coordinator.broker_queues import BrokerQueues, Brokers
from pykafka_broker.coordinator.share.core.events import Refusal
from pykafka_broker.coordinator.share.questions import (
    Answer,
    Kind,
    Question,
    answers_in,
    left_out,
    request_of,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from pykafka_broker.system.repeated_lines import RepeatedLines

logger = logging.getLogger("kafka.server.share.persister.PersisterStateManager")


class RemoteStates:
    """Event loop only."""

    def __init__(self, brokers: Brokers, now_ms: Callable[[], int]) -> None:
        self._brokers = brokers
        self._lines = RepeatedLines(logger, now_ms)
        #: The queues by what is asked for.
        self._queues: dict[str, BrokerQueues[Question, Any]] = {}

    def is_reachable(self, broker_id: int) -> bool:
        """Whether this broker is alive and has a listener for brokers."""
        return self._brokers.is_reachable(broker_id)

    async def ask(self, broker_id: int, kind: Kind[Answer], question: Question) -> Answer:
        """The answer of a broker; an error of the connection is a refusal too."""
        queues = self._queues.get(kind.deed)
        if queues is None:
            exchange = partial(self._exchange, kind)
            queues = self._queues[kind.deed] = BrokerQueues(exchange, lambda each: each.key)
        try:
            answer: Answer = await queues.ask(broker_id, question)
        except KafkaError as error:
            return kind.refused(Refusal(error.code, error.message))
        return answer

    async def _exchange(
        self, kind: Kind[Answer], broker_id: int, questions: Sequence[Question]
    ) -> Sequence[Answer]:
        by_group: dict[str, list[Question]] = {}
        for question in questions:
            by_group.setdefault(question.key.group_id, []).append(question)
        answers: dict[SharePartitionKey, Answer] = {}
        for told in await asyncio.gather(
            *(self._ask_about(kind, broker_id, group_id, asked) for group_id, asked in by_group.items())
        ):
            answers.update(told)
        return [answers[question.key] for question in questions]

    async def _ask_about(
        self, kind: Kind[Answer], broker_id: int, group_id: str, questions: Sequence[Question]
    ) -> dict[SharePartitionKey, Answer]:
        """The answers to questions about one group."""
        try:
            response = await self._brokers.ask(broker_id, request_of(kind, group_id, questions))
        except KafkaError as error:
            return self._all_refused(kind, broker_id, questions, Refusal(error.code, error.message))
        except TimeoutError as error:
            return self._all_refused(
                kind, broker_id, questions, Refusal(ErrorCode.REQUEST_TIMED_OUT, str(error))
            )
        except (OSError, ProtocolError) as error:
            return self._all_refused(
                kind, broker_id, questions, Refusal(ErrorCode.NETWORK_EXCEPTION, str(error))
            )
        told = answers_in(kind, group_id, response)
        return {question.key: told.get(question.key) or left_out(kind, question) for question in questions}

    def _all_refused(
        self, kind: Kind[Answer], broker_id: int, questions: Sequence[Question], refusal: Refusal
    ) -> dict[SharePartitionKey, Answer]:
        text = f"No answer of broker {broker_id} to a request to {kind.deed}: {refusal.message}"
        self._lines.log(logging.WARNING, kind.deed, str(broker_id), text)
        return {question.key: kind.refused(refusal) for question in questions}
