"""The question to a task assignor, and its answer."""

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

    Members stand in the order in which they were put into Apache Kafka's table: it decides between equals.
    """

    members: Mapping[str, MemberSpec]
    subtopologies: Mapping[str, SubtopologySpec]
    num_standby_replicas: int = 0


class TaskAssignorError(Exception):
    """The tasks cannot be assigned: no member is there."""


TaskAssignor = Callable[[GroupSpec], Mapping[str, Tasks]]
