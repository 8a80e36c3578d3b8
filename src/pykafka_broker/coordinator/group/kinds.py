"""The kinds of groups. A kind that is to come, such as share groups or streams groups, adds a row."""

from __future__ import annotations

from typing import Any

from pykafka_broker.coordinator.group.classic.kind import ClassicKind
from pykafka_broker.coordinator.group.classic.state import ClassicGroup
from pykafka_broker.coordinator.group.consumer.kind import ConsumerKind
from pykafka_broker.coordinator.group.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.group.kind import GroupKind
from pykafka_broker.coordinator.group.state import Group

KINDS: dict[type, GroupKind[Any]] = {ClassicGroup: ClassicKind(), ConsumerGroup: ConsumerKind()}


def kind_of(group: Group) -> GroupKind[Any]:
    """The kind of a group."""
    return KINDS[type(group)]
