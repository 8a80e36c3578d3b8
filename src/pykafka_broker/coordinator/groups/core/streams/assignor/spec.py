"""The input of a task assignor, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pykafka_broker.coordinator.groups.core.streams.tasks import Tasks
from pykafka_broker.system.named_tuple import NamedTuple


class MemberSpec(NamedTuple):
    """A member as an assignor sees it: the process it is a thread of, and its target so far."""

    process_id: str
    tasks: Tasks = Tasks()


class SubtopologySpec(NamedTuple):
    """A subtopology as an assignor sees it. One with state has standby tasks."""

    task_count: int
    is_stateful: bool = False


class GroupSpec(NamedTuple):
    """A group as an assignor sees it.

    Members are in the order of insertion into Apache Kafka's map, which decides ties.
    """

    members: Mapping[str, MemberSpec]
    subtopologies: Mapping[str, SubtopologySpec]
    num_standby_replicas: int = 0


class TaskAssignorError(Exception):
    """The tasks cannot be assigned: the group has no member."""


TaskAssignor = Callable[[GroupSpec], Mapping[str, Tasks]]
