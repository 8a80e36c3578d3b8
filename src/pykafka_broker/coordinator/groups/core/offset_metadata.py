"""The length of the metadata that a client commits beside an offset, and the limit on it."""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.events import TopicCommit
from pykafka_broker.protocol.java_hash import string_length


def is_too_long(text: str | None, max_bytes: int) -> bool:
    """Is the text too long to store? The limit is named in bytes, but Apache Kafka counts UTF-16 units."""
    return text is not None and string_length(text) > max_bytes


def storable(topics: tuple[TopicCommit, ...], max_bytes: int) -> tuple[TopicCommit, ...]:
    """The commits whose text is not too long."""
    return tuple(
        topic._replace(
            partitions=tuple(
                commit for commit in topic.partitions if not is_too_long(commit.metadata, max_bytes)
            )
        )
        for topic in topics
    )
