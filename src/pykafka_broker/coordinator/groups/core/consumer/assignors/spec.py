"""The input of an assignor, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

from pykafka_broker.system.named_tuple import NamedTuple

#: Partitions by topic id; a topic without partitions is left out.
Assignment = Mapping[bytes, frozenset[int]]


class MemberSpec(NamedTuple):
    """A member as an assignor sees it: existing topics it subscribes to, and its target so far.

    `topic_ids` are the keys of a dict: their order decides between topics in one hash bucket.
    """

    topic_ids: Set[bytes]
    assignment: Assignment
    instance_id: str | None = None


class GroupSpec(NamedTuple):
    """A group as an assignor sees it."""

    members: Mapping[str, MemberSpec]
    #: The number of partitions of each subscribed topic.
    partition_counts: Mapping[bytes, int]
    #: True if all members subscribe to the same topics.
    is_homogeneous: bool
    #: Partitions, as (topic id, partition), that are in the target of a member so far.
    assigned: Set[tuple[bytes, int]]


Assignor = Callable[[GroupSpec], Mapping[str, Assignment]]
