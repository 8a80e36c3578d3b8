"""Words for the members of groups, and for partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.system.wording import listed, printable


class Member(Protocol):
    """A member of a group of any kind."""

    @property
    def client_id(self) -> str: ...

    @property
    def host(self) -> str: ...


def clients(members: Iterable[Member]) -> str:
    """Who the members are, and where."""
    return listed(sorted({f"{printable(m.client_id)} at {printable(m.host)}" for m in members}))


def shown(partitions: Sequence[PartitionKey]) -> str:
    """The partitions, the first of them if there are many."""
    return listed([f"{topic}-{index}" for topic, index in partitions])
