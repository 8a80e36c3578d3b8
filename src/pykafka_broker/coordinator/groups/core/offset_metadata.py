"""The length of the metadata that a client commits beside an offset, and the limit on it."""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.events import TopicCommit


def utf16_length(text: str | None) -> int:
    """The length as Java counts it, in UTF-16 units; 0 for None."""
    if not text:
        return 0
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def is_too_long(text: str | None, max_bytes: int) -> bool:
    """Is the text too long to store? The limit is named in bytes, but Apache Kafka counts UTF-16 units."""
    return bool(text) and utf16_length(text) > max_bytes


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
