"""The requests that a replica of the metadata log has not answered yet. Event loop only."""

from __future__ import annotations

import asyncio
from typing import Any

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.core.state import Reply


class WaitingRequests:
    """Futures of answers, by the token of their request. A caller may cancel its future."""

    __slots__ = ("_answers", "_last_token")

    def __init__(self) -> None:
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._last_token = 0

    def add(self) -> tuple[int, asyncio.Future[Any]]:
        """The token of a new request, and the future of its answer."""
        token = self._last_token = self._last_token + 1
        answer = self._answers[token] = asyncio.get_running_loop().create_future()
        return token, answer

    def reply(self, reply: Reply) -> None:
        """Answer the request with the token of the reply."""
        answer = self._answers.pop(reply.token, None)
        if answer is not None and not answer.done():
            answer.set_result(reply.answer)

    def refuse(self, code: ErrorCode) -> None:
        """Answer all requests with an error."""
        answers, self._answers = self._answers, {}
        for answer in answers.values():
            if not answer.done():
                answer.set_exception(KafkaError(code))
