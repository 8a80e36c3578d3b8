"""Topics that the environment asks for: KAFKA_CREATE_TOPICS=name:partitions:replicas[:policy],…

Many compose files use this variable of a container image. Existing topics are left as they are.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pykafka_broker.config.keys import ConfigError

if TYPE_CHECKING:
    from pykafka_broker.broker.broker import Broker
    from pykafka_broker.controller.core.events import NewTopic

VARIABLE = "KAFKA_CREATE_TOPICS"
FORM = "name:partitions:replicas or name:partitions:replicas:cleanup.policy"

logger = logging.getLogger("kafka.server.BrokerServer")


def parse_topics(text: str) -> list[NewTopic]:
    """The topics that a value of the variable names.

    Raises:
        ConfigError: an entry has another form.
    """
    from pykafka_broker.controller.core.events import NewTopic

    topics = []
    for entry in text.replace("\n", ",").split(","):
        if not entry.strip():
            continue
        name, *numbers = entry.strip().split(":")
        if not (name and 2 <= len(numbers) <= 3 and numbers[0].isdecimal() and numbers[1].isdecimal()):
            raise ConfigError(f"{VARIABLE}: {entry.strip()!r} is not {FORM}")
        configs = (("cleanup.policy", numbers[2]),) if len(numbers) == 3 else ()
        topics.append(
            NewTopic(
                name,
                num_partitions=int(numbers[0]),
                replication_factor=int(numbers[1]),
                configs=configs,
            )
        )
    return topics


async def create_topics(broker: Broker, topics: list[NewTopic]) -> None:
    """Create the missing topics; log those that cannot be created."""
    from pykafka_broker.controller.channel import each_result
    from pykafka_broker.controller.core.events import CreateTopics
    from pykafka_broker.protocol.errors import ErrorCode

    event = CreateTopics(tuple(topics))
    for result in await each_result(event, broker.node.controller.ask(event)):
        if result.error is ErrorCode.NONE:
            logger.info("Created topic %s, for %s", result.name, VARIABLE)
        elif result.error is not ErrorCode.TOPIC_ALREADY_EXISTS:
            logger.error("Topic %s of %s is not created: %s", result.name, VARIABLE, result.message)
