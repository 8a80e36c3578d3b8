"""Suggestions for misspelt names: of commands, topics, groups and configuration keys.

Used only after a mistake, so that its imports and requests do not slow other runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.metadata import topic_error
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pykafka_broker.protocol.messages.metadata import MetadataResponseTopic


def known_topic(
    client: Client, name: str, *, led: Collection[int] | None = (), auto_create: bool = False
) -> MetadataResponseTopic:
    """A topic's metadata, once those of its partitions that are in `led` have a leader; None: all of them.

    Raises:
        KafkaError: there is no such topic, and the message may suggest another one; or a partition still has
            no leader after the time-out.
    """
    try:
        return client.topic(name, led=led, auto_create=auto_create)
    except KafkaError as error:
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise unknown_topic(client, name) from None
        raise


def same_topic(
    client: Client, name: str, topic_id: bytes, *, led: Collection[int] | None
) -> MetadataResponseTopic:
    """As `known_topic`, if the topic is still the one with this id, which a command is reading.

    Raises:
        KafkaError: the topic was deleted, or deleted and created again; or as `known_topic`.
    """
    try:
        found = client.topic(name, led=led)
    except KafkaError as error:
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise KafkaError(
                error.code,
                f"Topic '{name}' was deleted while it was read. If it is created again, run the command "
                "again.",
            ) from None
        raise
    if found.topic_id != topic_id:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_ID,
            f"Topic '{name}' was deleted and created again while it was read. Run the command again to read "
            "the new topic.",
        )
    return found


def unknown_topic(client: Client, name: str) -> KafkaError:
    """The error of a topic that does not exist, with a similar name that does."""
    from pykafka_broker.config.suggestions import did_you_mean

    error = topic_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
    try:
        topics = [str(topic.name) for topic in client.metadata(None).topics]
    except (KafkaError, OSError):
        return error
    return KafkaError(error.code, f"{error.message}{did_you_mean(name, topics)}")


def unknown_group(client: Client, name: str) -> str:
    """A similar name of an existing group, as a sentence; "" without one."""
    from pykafka_broker.cli.group_state import list_groups
    from pykafka_broker.config.suggestions import did_you_mean

    try:
        return did_you_mean(name, list_groups(client))
    except (KafkaError, OSError):
        return ""


def unknown_config(error: KafkaError, keys: Iterable[str], resource_type: int) -> KafkaError:
    """The error of a refused change, with a similar key if the broker does not know the key."""
    for key in keys:
        meant = meant_config(key, resource_type)
        if meant is not None and key in error.message:
            return KafkaError(error.code, f"{error.message}. Did you mean {meant!r}?")
    return error


def meant_config(key: str, resource_type: int) -> str | None:
    """The key that a misspelt one resembles; None for a key that exists."""
    from pykafka_broker.config.suggestions import suggested_key

    meant = suggested_key(key, resource_type)
    return None if meant == key else meant
