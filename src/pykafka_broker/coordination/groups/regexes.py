"""Regular expressions are matched against all topics where that does not hold up the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from pykafka_broker.coordinator.group.consumer.regexes import matching_topics
from pykafka_broker.coordinator.group.consumer.turn import ResolveRegexes
from pykafka_broker.coordinator.group.events import RegexesResolved
from pykafka_broker.coordinator.group.topics import TopicDirectory
from pykafka_broker.protocol.errors import KafkaError

logger = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")

RunBlocking = Callable[[Callable[[], Any]], Awaitable[Any]]


class RegexResolver:
    """Resolves what groups ask for, each in a task of its own."""

    def __init__(self, run_blocking: RunBlocking, now_ms: Callable[[], int]) -> None:
        self._run_blocking = run_blocking
        self._now_ms = now_ms
        self._jobs: set[asyncio.Task[None]] = set()

    def start(
        self, work: ResolveRegexes, topics: TopicDirectory, tell: Callable[[RegexesResolved], None]
    ) -> None:
        """Match a group's regular expressions against all topics, and `tell` its shard."""
        job = asyncio.get_running_loop().create_task(self._resolve(work, topics, tell))
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    async def _resolve(
        self, work: ResolveRegexes, topics: TopicDirectory, tell: Callable[[RegexesResolved], None]
    ) -> None:
        names = list(topics.names())
        try:
            resolved = await self._run_blocking(lambda: matching_topics(work.regexes, names))
        except Exception:
            logger.exception("The regular expressions of group %s could not be resolved", work.group_id)
            resolved = None
        event = RegexesResolved(self._now_ms(), work.group_id, work.started_ms, topics.version, resolved)
        try:
            tell(event)
        except KafkaError as error:
            # The partition has moved, or cannot be written: a later heartbeat will ask again.
            logger.warning("The topics of group %s could not be stored: %s", work.group_id, error)

    def close(self) -> None:
        """Give up what is under way."""
        for job in self._jobs:
            job.cancel()


async def run_at_once(function: Callable[[], Any]) -> Any:
    """Run a function right here, for want of another place."""
    return function()
