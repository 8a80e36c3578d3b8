"""The metadata of a consumer for its group's leader, as far as the coordinator reads it: its topics.

A member's metadata is a message of the consumer protocol: a 16-bit version, then fields. In every version the
first two are the array of topic names and the member's own nullable bytes. Assignments and metadata of other
protocol types are opaque here.
"""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.coordinator.groups.core.classic.state import CONSUMER_PROTOCOL_TYPE, Member


def subscribed_topics(
    protocol_type: str | None, protocol_name: str | None, members: Iterable[Member]
) -> frozenset[str] | None:
    """All topics the members subscribe to; None if that cannot be known."""
    if protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    topics: set[str] = set()
    for member in members:
        names = _topics_of(member.metadata(protocol_name))
        if names is None:
            return None
        topics.update(names)
    return frozenset(topics)


def _topics_of(metadata: bytes) -> list[str] | None:
    """The topics in a member's metadata; None if it is not of the consumer protocol."""
    version = int.from_bytes(metadata[:2], signed=True)
    count = int.from_bytes(metadata[2:6], signed=True)
    if len(metadata) < 6 or version < 0 or count < 0:
        return None
    names = []
    pos = 6
    for _ in range(count):
        end = pos + 2 + int.from_bytes(metadata[pos : pos + 2], signed=True)
        if end < pos + 2 or end > len(metadata):
            return None
        names.append(metadata[pos + 2 : end].decode(errors="replace"))
        pos = end
    user_data_bytes = int.from_bytes(metadata[pos : pos + 4], signed=True)
    if pos + 4 + max(user_data_bytes, 0) > len(metadata):
        return None
    return names
