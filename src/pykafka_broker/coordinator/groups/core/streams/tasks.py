"""The tasks of a Kafka Streams application: a subtopology, and one partition of its topics.

A member processes its *active* tasks, keeps the state of its *standby* tasks at hand, and restores the state
of *warm-up* tasks before it gets them. Kafka 4.3 assigns no warm-up tasks yet; they are read, written and
reconciled nevertheless.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from pykafka_broker.system.named_tuple import NamedTuple

#: Partitions by subtopology id; a subtopology without partitions is left out.
TaskMap = Mapping[str, frozenset[int]]
#: The same, with the assignment epoch in which the member got each task.
TaskEpochs = Mapping[str, Mapping[int, int]]

NO_TASKS: TaskMap = MappingProxyType({})
NO_TASK_EPOCHS: TaskEpochs = MappingProxyType({})


class TaskId(NamedTuple):
    """One task."""

    subtopology_id: str
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology_id}_{self.partition}"


class Tasks(NamedTuple):
    """The target tasks of a member, or the tasks that it reports."""

    active: TaskMap = NO_TASKS
    standby: TaskMap = NO_TASKS
    warmup: TaskMap = NO_TASKS

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)


class OwnedTasks(NamedTuple):
    """The tasks a member has, or has to give up. Only active tasks carry the epoch in which it got them."""

    active: TaskEpochs = NO_TASK_EPOCHS
    standby: TaskMap = NO_TASKS
    warmup: TaskMap = NO_TASKS

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def merged(self, other: OwnedTasks) -> OwnedTasks:
        """These tasks and the others; an epoch of `other` counts where both have a task."""
        active = {name: dict(epochs) for name, epochs in self.active.items()}
        for name, epochs in other.active.items():
            active.setdefault(name, {}).update(epochs)
        return OwnedTasks(active, _union(self.standby, other.standby), _union(self.warmup, other.warmup))

    def overlaps(self, tasks: Tasks) -> bool:
        """Is any of these among `tasks`, in the same role?"""
        return (
            _intersect(self.active, tasks.active)
            or _intersect(self.standby, tasks.standby)
            or _intersect(self.warmup, tasks.warmup)
        )


NO_OWNED_TASKS = OwnedTasks()


def task_ids(tasks: Mapping[str, Iterable[int]]) -> Iterator[TaskId]:
    """The tasks one by one."""
    for subtopology_id, partitions in tasks.items():
        for partition in partitions:
            yield TaskId(subtopology_id, partition)


def task_map(tasks: Iterable[TaskId]) -> TaskMap:
    """The tasks by subtopology."""
    found: dict[str, set[int]] = {}
    for subtopology_id, partition in tasks:
        found.setdefault(subtopology_id, set()).add(partition)
    return {name: frozenset(partitions) for name, partitions in found.items()}


def _union(some: TaskMap, others: TaskMap) -> TaskMap:
    return {**some, **{name: some.get(name, frozenset()) | more for name, more in others.items()}}


def _intersect(some: Mapping[str, Iterable[int]], others: TaskMap) -> bool:
    return any(not others[name].isdisjoint(partitions) for name, partitions in some.items() if name in others)
