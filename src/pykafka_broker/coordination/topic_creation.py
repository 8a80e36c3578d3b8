"""Topics that come to be because somebody asked for them: auto-creation, and Kafka's internal topics.

Several clients that ask for the same missing topic at once cause one creation and all wait for it. A topic
that was just deleted is not created by the first request that names it: its client may be waiting until the
topic is gone (`cluster/deleted_topics.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from pykafka_broker.cluster.deleted_topics import DeletedTopics
from pykafka_broker.cluster.events import CreateTopicResult, NewTopic
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.cluster.topic_names import why_invalid_name
from pykafka_broker.config import BrokerConfig
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.format import random_uuid

logger = logging.getLogger("kafka.server.AutoTopicCreationManager")

#: Creates topics and answers when they are committed and their logs exist.
Create = Callable[[Sequence[NewTopic]], Awaitable[Sequence[CreateTopicResult]]]


class InternalTopic:
    """What an internal topic is created with."""

    __slots__ = ("configs", "partitions_key", "replication_factor_key")

    def __init__(
        self,
        partitions_key: str,
        replication_factor_key: str,
        configs: Callable[[BrokerConfig], Mapping[str, str]],
    ) -> None:
        self.partitions_key = partitions_key
        self.replication_factor_key = replication_factor_key
        self.configs = configs


def _offsets_configs(config: BrokerConfig) -> Mapping[str, str]:
    return {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config["offsets.topic.segment.bytes"]),
    }


def _transaction_configs(config: BrokerConfig) -> Mapping[str, str]:
    return {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": str(config["transaction.state.log.min.isr"]),
        "segment.bytes": str(config["transaction.state.log.segment.bytes"]),
        "unclean.leader.election.enable": "false",
    }


INTERNAL_TOPICS = {
    "__consumer_offsets": InternalTopic(
        "offsets.topic.num.partitions", "offsets.topic.replication.factor", _offsets_configs
    ),
    "__transaction_state": InternalTopic(
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        _transaction_configs,
    ),
}


class TopicCreation:
    """Creates missing topics once, however many ask."""

    def __init__(
        self,
        create: Create,
        config: Callable[[], BrokerConfig],
        image: Callable[[], ClusterImage],
        monotonic_ms: Callable[[], int],
    ) -> None:
        self._create = create
        self._config = config
        self._image = image
        self._monotonic_ms = monotonic_ms
        self._just_deleted = DeletedTopics()
        self._under_way: dict[str, asyncio.Task[bool]] = {}

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """Note which topics are gone."""
        if new.topics is not old.topics:
            gone = [name for name in old.topics if name not in new.topics]
            self._just_deleted.add(gone, self._monotonic_ms())

    async def create_missing(self, names: Iterable[str]) -> None:
        """Create what is missing of `names` with the broker's defaults.

        Invalid names are left alone, and a topic that was just deleted is left alone for a moment.
        """
        now_ms = self._monotonic_ms()
        tasks = [
            self._start(name)
            for name in dict.fromkeys(names)
            if name not in self._image().topics
            and why_invalid_name(name) is None
            and not self._just_deleted.is_unknown(name, now_ms)
        ]
        if tasks:
            await asyncio.wait(tasks)

    async def create_internal(self, name: str) -> bool:
        """Create an internal topic if it is missing; whether it exists now."""
        return name in self._image().topics or await asyncio.shield(self._start(name))

    def _start(self, name: str) -> asyncio.Task[bool]:
        task = self._under_way.get(name)
        if task is None:
            task = self._under_way[name] = asyncio.get_running_loop().create_task(self._run(name))
            task.add_done_callback(lambda _: self._under_way.pop(name, None))
        return task

    async def _run(self, name: str) -> bool:
        try:
            [result] = await self._create([self._new_topic(name)])
        except KafkaError as error:
            logger.warning("Topic %s could not be created: %s", name, error)
            return False
        if result.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            logger.warning("Topic %s could not be created: %s: %s", name, result.error.name, result.message)
            return False
        return True

    def _new_topic(self, name: str) -> NewTopic:
        config = self._config()
        internal = INTERNAL_TOPICS.get(name)
        if internal is None:
            return NewTopic(name, random_uuid(), -1, -1)
        # A cluster smaller than the configured factor shall work all the same; brokers that join raise it.
        alive = sum(broker.active for broker in self._image().brokers.values())
        return NewTopic(
            name,
            random_uuid(),
            config[internal.partitions_key],
            max(1, min(config[internal.replication_factor_key], alive)),
            configs=tuple(internal.configs(config).items()),
        )
