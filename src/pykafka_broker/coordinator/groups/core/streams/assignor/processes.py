"""The load of a process while tasks are assigned: what each of its members has got so far."""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.streams.assignor.java_queue import JavaQueue
from pykafka_broker.coordinator.groups.core.streams.tasks import TaskId
from pykafka_broker.protocol.java_hash import string_hash, walked


class _MemberLoad:
    """A member in the queue of its process, with the number of tasks it had when it was put there."""

    __slots__ = ("member_id", "task_count")

    def __init__(self, member_id: str, task_count: int) -> None:
        self.member_id = member_id
        self.task_count = task_count


class ProcessLoad:
    """A process, which is one instance of an application; its members are the threads."""

    def __init__(self) -> None:
        self.task_counts: dict[str, int] = {}
        self.active: dict[str, list[TaskId]] = {}
        self.standby: dict[str, list[TaskId]] = {}
        self._tasks: set[TaskId] = set()
        self._task_count = 0
        #: Made on demand, and dropped when it is out of date.
        self._by_load: JavaQueue[_MemberLoad] | None = None

    @property
    def load(self) -> float:
        """Tasks for each thread."""
        return self._task_count / len(self.task_counts)

    def add_member(self, member_id: str) -> None:
        """A thread, without tasks."""
        self.task_counts[member_id] = 0

    def has(self, task: TaskId) -> bool:
        """Does a member of this process have the task, in any role?"""
        return task in self._tasks

    def give(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Give a task to a member; returns the member's number of tasks."""
        self._by_load = None
        return self._give(member_id, task, is_active)

    def give_to_least_loaded(self, task: TaskId, *, is_active: bool) -> int:
        """Give a task to the member with the fewest; returns the member's number of tasks."""
        if len(self.task_counts) == 1:
            return self._give(next(iter(self.task_counts)), task, is_active)
        if self._by_load is None:
            members = walked(self.task_counts, string_hash)
            loads = [_MemberLoad(member_id, self.task_counts[member_id]) for member_id in members]
            self._by_load = JavaQueue(lambda member: member.task_count, loads)
        least = self._by_load.poll()
        assert least is not None
        least.task_count = self._give(least.member_id, task, is_active)
        self._by_load.add(least)
        return least.task_count

    def _give(self, member_id: str, task: TaskId, is_active: bool) -> int:
        role = self.active if is_active else self.standby
        role.setdefault(member_id, []).append(task)
        self._tasks.add(task)
        self._task_count += 1
        self.task_counts[member_id] += 1
        return self.task_counts[member_id]
