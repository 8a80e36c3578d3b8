"""The kinds of groups, and which of them handles what."""

from __future__ import annotations

from typing import Any

from pykafka_broker.coordinator.groups.core.classic.kind import ClassicKind
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup
from pykafka_broker.coordinator.groups.core.consumer.kind import ConsumerKind
from pykafka_broker.coordinator.groups.core.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.groups.core.kind import GroupKind
from pykafka_broker.coordinator.groups.core.share.kind import ShareKind
from pykafka_broker.coordinator.groups.core.share.state import ShareGroup
from pykafka_broker.coordinator.groups.core.state import Group
from pykafka_broker.coordinator.groups.core.streams.kind import StreamsKind
from pykafka_broker.coordinator.groups.core.streams.state import StreamsGroup

KINDS: dict[type, GroupKind[Any]] = {
    ClassicGroup: ClassicKind(),
    ConsumerGroup: ConsumerKind(),
    ShareGroup: ShareKind(),
    StreamsGroup: StreamsKind(),
}

#: The kind that handles an event which is not for all kinds.
KIND_OF_EVENT: dict[type, GroupKind[Any]] = {
    event: kind for kind in KINDS.values() for event in (*kind.requests, *kind.outcomes)
}


def kind_of(group: Group) -> GroupKind[Any]:
    """The kind of a group."""
    return KINDS[type(group)]
