"""The topics of the cluster as the coordinator sees them, and the fingerprints that tell it when they change.

The coordinator is told of new metadata by an event and keeps it in its state, so a decision
depends on nothing else. `TopicDirectory` is the view it needs; the server has one over the cluster's image.

A group's fingerprint is stored in its metadata record. It is Apache Kafka's: XXH3 over the hashes of its
topics in order of their names, where a topic's hash covers id, name, and the partitions with the racks of
their replicas. Numbers go in little-endian, a string as UTF-16 followed by its length.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Protocol

from pykafka_broker.system.named_tuple import NamedTuple

#: The format version that precedes the hashed bytes.
TOPIC_HASH_MAGIC = b"\0"


class TopicInfo(NamedTuple):
    """One topic."""

    name: str
    topic_id: bytes
    partition_count: int
    #: The racks of each partition's replicas; empty if no broker has a rack.
    racks: tuple[tuple[str, ...], ...] = ()


class TopicDirectory(Protocol):
    """All topics at one moment."""

    #: The offset of this moment in the metadata log.
    @property
    def version(self) -> int: ...

    def topic(self, name: str) -> TopicInfo | None: ...

    def topic_by_id(self, topic_id: bytes) -> TopicInfo | None: ...

    def names(self) -> Iterable[str]: ...


class Topics(NamedTuple):
    """A directory made of a plain mapping."""

    by_name: Mapping[str, TopicInfo] = {}
    version: int = -1

    def topic(self, name: str) -> TopicInfo | None:
        return self.by_name.get(name)

    def topic_by_id(self, topic_id: bytes) -> TopicInfo | None:
        return next((topic for topic in self.by_name.values() if topic.topic_id == topic_id), None)

    def names(self) -> Iterable[str]:
        return self.by_name


NO_TOPICS = Topics()


def group_hash(names: Iterable[str], topics: TopicDirectory) -> int:
    """The fingerprint of a group that is subscribed to `names`; missing topics are left out."""
    found = [topic for name in names if (topic := topics.topic(name)) is not None]
    if not found:
        return 0
    found.sort(key=lambda topic: topic.name.encode("utf-16-be", "surrogatepass"))
    return _xxh3(b"".join(struct.pack("<q", topic_hash(topic)) for topic in found))


@lru_cache(maxsize=8_192)
def topic_hash(topic: TopicInfo) -> int:
    """The fingerprint of one topic."""
    most, least = struct.unpack(">qq", topic.topic_id)
    hashed = bytearray(TOPIC_HASH_MAGIC + struct.pack("<qq", most, least) + _text(topic.name))
    hashed += struct.pack("<i", topic.partition_count)
    for partition in range(topic.partition_count):
        hashed += struct.pack("<i", partition)
        for rack in sorted(topic.racks[partition]) if topic.racks else ():
            hashed += struct.pack("<i", len(rack.encode("utf-16-le", "surrogatepass")) // 2) + _text(rack)
    return _xxh3(hashed)


def _text(text: str) -> bytes:
    units = text.encode("utf-16-le", "surrogatepass")
    return units + struct.pack("<i", len(units) // 2)


def _xxh3(hashed: bytes | bytearray) -> int:
    import xxhash

    value: int = xxhash.xxh3_64_intdigest(hashed)
    return value - (1 << 64) if value >> 63 else value
