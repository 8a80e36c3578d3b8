"""Topics that are created on demand: auto-creation, the internal topics of coordinators, and those that Kafka
Streams applications need.

Several clients that ask for the same missing topic at once cause one creation and all wait for it. A topic
that was just deleted is not created by the first request that names it: the client may be polling until the
topic is gone (`cluster/deleted_topics.py`).

In a cluster the internal topics get the configured replication factor; while too few brokers are alive, they
are not created, as in Apache Kafka. A standalone broker lowers the factor to the live brokers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence

from pykafka_broker.cluster.deleted_topics import DeletedTopics
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.cluster.topic_names import why_invalid_name
from pykafka_broker.controller.core.events import CreateTopics, NewTopic
from pykafka_broker.coordinator.creation_errors import CreationErrors
from pykafka_broker.coordinator.groups.core.streams.topology.declared import InternalTopic
from pykafka_broker.coordinator.internal_topics import CREATED_WITH
from pykafka_broker.coordinator.ports import Configs, Controller, Metadata
from pykafka_broker.machine.clock import Clock
from pykafka_broker.machine.wait import Wait
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.system.repeated_lines import RepeatedLines

logger = logging.getLogger("kafka.server.AutoTopicCreationManager")

#: The creation of one topic or several; its result is the names of those that exist.
_Creation = asyncio.Task[frozenset[str]]
#: The longest wait of a client for an internal topic; then the client retries.
INTERNAL_TOPIC_PATIENCE_MS = 2_000


class TopicCreation:
    """Creates each missing topic once, however many clients ask for it."""

    def __init__(self, controller: Controller, metadata: Metadata, configs: Configs, clock: Clock) -> None:
        self._controller = controller
        self._metadata = metadata
        self._configs = configs
        self._clock = clock
        self._lines = RepeatedLines(logger, clock.now_ms)
        self._just_deleted = DeletedTopics()
        self._under_way: dict[str, _Creation] = {}
        self._errors = CreationErrors()

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """Note which topics were deleted."""
        if new.topics is not old.topics:
            gone = [name for name in old.topics if name not in new.topics]
            self._just_deleted.add(gone, self._clock.monotonic_ms())

    async def create_missing(self, names: Iterable[str]) -> None:
        """Create the missing ones of these topics with the broker's defaults.

        Invalid names are left alone, and a topic that was just deleted is left alone for a moment.
        """
        now_ms = self._clock.monotonic_ms()
        tasks = [
            self._creating(name)
            for name in dict.fromkeys(names)
            if name not in self._metadata.image.topics
            and why_invalid_name(name) is None
            and not self._just_deleted.is_unknown(name, now_ms)
        ]
        if tasks:
            await asyncio.wait(tasks)

    async def create_internal(self, name: str) -> bool:
        """Create an internal topic if it is missing; return whether it exists now.

        A creation that takes longer than `INTERNAL_TOPIC_PATIENCE_MS` goes on after this returns.
        """
        if name in self._metadata.image.topics:
            return True
        creating = self._creating(name)
        wait = Wait()
        creating.add_done_callback(wait.end)
        await wait.until(self._clock.call_at, self._clock.monotonic_ms() + INTERNAL_TOPIC_PATIENCE_MS)
        return creating.done() and name in creating.result()

    def create_for_streams(self, topics: Iterable[InternalTopic], *, errors_for_ms: int) -> Mapping[str, str]:
        """Begin to create missing topics of an application, and return at once the errors of those that could
        not be created recently, by name.

        A topic that could not be created is not tried again for `errors_for_ms`.
        """
        by_name = {topic.name: topic for topic in topics}
        errors = self._errors.of(by_name, self._clock.monotonic_ms())
        new = [
            _of_application(topic)
            for name, topic in by_name.items()
            if name not in errors and name not in self._under_way
        ]
        if new:
            self._start(new, errors_for_ms)
        return errors

    def _creating(self, name: str) -> _Creation:
        under_way = self._under_way.get(name)
        return self._start([self._new_topic(name)]) if under_way is None else under_way

    def _start(self, new: Sequence[NewTopic], errors_for_ms: int = 0) -> _Creation:
        """Begin to create topics in one request."""
        task = asyncio.get_running_loop().create_task(self._run(new, errors_for_ms))
        for topic in new:
            self._under_way[topic.name] = task
        task.add_done_callback(lambda _: self._end([topic.name for topic in new]))
        return task

    def _end(self, names: Iterable[str]) -> None:
        for name in names:
            self._under_way.pop(name, None)

    async def _run(self, new: Sequence[NewTopic], errors_for_ms: int) -> frozenset[str]:
        """The names of those that exist now."""
        try:
            results = await self._controller.ask(
                CreateTopics(tuple(new)), self._configs.current["request.timeout.ms"]
            )
        except KafkaError as error:
            for topic in new:
                self._failed(topic.name, str(error), error.message, errors_for_ms)
            return frozenset()
        there = set()
        for result in results:
            if result.exists:
                there.add(result.name)
                continue
            message = result.message or result.error.message
            self._failed(result.name, f"{result.error.name}: {result.message}", message, errors_for_ms)
        return frozenset(there)

    def _failed(self, name: str, why: str, message: str, errors_for_ms: int) -> None:
        text = f"Topic {name} could not be created: {why}"
        self._lines.log(logging.WARNING, "failed", name, text)
        if errors_for_ms:
            now_ms = self._clock.monotonic_ms()
            self._errors.put(name, message, now_ms + errors_for_ms, now_ms)

    def _new_topic(self, name: str) -> NewTopic:
        config = self._configs.current
        internal = CREATED_WITH.get(name)
        if internal is None:
            return NewTopic(name)
        replication_factor = config[internal.replication_factor_key]
        if config.standalone:
            alive = sum(broker.active for broker in self._metadata.image.brokers.values())
            replication_factor = max(1, min(replication_factor, alive))
        return NewTopic(
            name,
            num_partitions=config[internal.partitions_key],
            replication_factor=replication_factor,
            configs=tuple(internal.configs(config).items()),
        )


def _of_application(topic: InternalTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=topic.configs,
    )
