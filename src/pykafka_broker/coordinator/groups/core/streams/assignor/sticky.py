"""The sticky task assignor of Apache Kafka 4.3: tasks stay where they are as far as that is balanced.

Active tasks come first. A task goes to the member that has it, else to one that has it as a standby, up to
that member's share; the rest go to the process with the least load. Standby tasks follow in the same way. No
process has a task twice, so a task gets fewer standbys than configured if there are too few processes.

A member's share is the number of tasks that are left, divided by the number of members below their share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafka_broker.coordinator.groups.core.streams.assignor.java_queue import JavaQueue
from pykafka_broker.coordinator.groups.core.streams.assignor.processes import ProcessLoad
from pykafka_broker.coordinator.groups.core.streams.assignor.spec import GroupSpec, TaskAssignorError
from pykafka_broker.coordinator.groups.core.streams.tasks import TaskId, Tasks, task_ids, task_map
from pykafka_broker.protocol.java_hash import string_hash, walked
from pykafka_broker.system.named_tuple import NamedTuple


def assign_sticky(spec: GroupSpec) -> Mapping[str, Tasks]:
    """The target tasks of each member.

    Raises:
        TaskAssignorError: there are tasks, but no members.

    """
    assignment = _Assignment(spec)
    assignment.assign_active()
    if spec.num_standby_replicas > 0:
        assignment.assign_standby()
    return assignment.result()


class _Owner(NamedTuple):
    """A member that has had a task, and the process it is in."""

    member_id: str
    process: ProcessLoad


class _Share:
    """The number of tasks up to which a member keeps former tasks; recomputed when a member reaches it."""

    def __init__(self, task_count: int, member_count: int) -> None:
        self._tasks = task_count
        self._members = member_count
        self.size = _divided(task_count, member_count)

    def count(self, tasks_of_member: int) -> None:
        """A member has got another task and now has `tasks_of_member`."""
        if tasks_of_member == self.size:
            self._members -= 1
            self._tasks -= tasks_of_member
            self.size = _divided(self._tasks, self._members)


def _divided(task_count: int, member_count: int) -> int:
    """Rounded up; zero if no member is left."""
    if member_count == 0:
        return 0
    return -(-task_count // member_count)


class _Assignment:
    """An assignment while it is made."""

    def __init__(self, spec: GroupSpec) -> None:
        self.spec = spec
        self.active_tasks = _all_tasks(spec, stateful_only=False)
        self.standby_tasks = _all_tasks(spec, stateful_only=True)
        active_count = len(self.active_tasks)
        standby_count = len(self.standby_tasks) * spec.num_standby_replicas
        self.active_share = _Share(active_count, len(spec.members))
        self.share = _Share(active_count + standby_count, len(spec.members))
        by_id: dict[str, ProcessLoad] = {}
        self.former_active: dict[TaskId, _Owner] = {}
        self.former_standby: dict[TaskId, list[_Owner]] = {}
        for member_id in walked(spec.members, string_hash):
            member = spec.members[member_id]
            process = by_id.setdefault(member.process_id, ProcessLoad())
            process.add_member(member_id)
            owner = _Owner(member_id, process)
            for task in task_ids(member.tasks.active):
                self.former_active[task] = owner
            for task in task_ids(member.tasks.standby):
                self.former_standby.setdefault(task, []).append(owner)
        order = walked(by_id, string_hash, made_for=len(spec.members))
        self.processes = [by_id[process_id] for process_id in order]

    # ---- active tasks ----

    def assign_active(self) -> None:
        """Give every task to a member."""
        # In this order a member keeps the same partitions of several subtopologies together.
        left = sorted(self.active_tasks, key=_by_partition)
        left = [task for task in left if not self._give_active(self.former_active.get(task), task)]
        left = [
            task
            for task in left
            if not self._give_active(_least_loaded(self.former_standby.get(task, ())), task)
        ]
        queue = JavaQueue(_load, self.processes)
        # A first assignment gives each process a range of partitions of each subtopology.
        for task in sorted(left):
            process = queue.poll()
            if process is None:
                raise TaskAssignorError(f"No process available to assign active task {task}.")
            count = process.give_to_least_loaded(task, is_active=True)
            self.active_share.count(count)
            self.share.count(count)
            queue.add(process)

    def _give_active(self, owner: _Owner | None, task: TaskId) -> bool:
        """Give a task to a member that has had it, if its share has room."""
        if owner is None or owner.process.task_counts[owner.member_id] >= self.active_share.size:
            return False
        count = owner.process.give(owner.member_id, task, is_active=True)
        self.active_share.count(count)
        self.share.count(count)
        return True

    # ---- standby tasks ----

    def assign_standby(self) -> None:
        """Give every stateful task to `num_standby_replicas` further processes."""
        left: list[tuple[TaskId, int]] = []
        for task in sorted(self.standby_tasks, key=_by_partition, reverse=True):
            for number in range(self.spec.num_standby_replicas):
                if not self._give_to_former(task):
                    left.append((task, self.spec.num_standby_replicas - number))
                    break
        queue = JavaQueue(_load, self.processes)
        for task, replicas in sorted(left, reverse=True):
            for _ in range(replicas):
                if not self._give_to_least_loaded(queue, task):
                    break

    def _give_to_former(self, task: TaskId) -> bool:
        active = self.former_active.get(task)
        if active is not None and not active.process.has(task) and self._give_standby(active, task):
            return True
        standby = _least_loaded(self.former_standby.get(task, ()), task)
        return standby is not None and self._give_standby(standby, task)

    def _give_standby(self, owner: _Owner, task: TaskId) -> bool:
        if owner.process.task_counts[owner.member_id] >= self.share.size:
            return False
        self.share.count(owner.process.give(owner.member_id, task, is_active=False))
        return True

    def _give_to_least_loaded(self, queue: JavaQueue[ProcessLoad], task: TaskId) -> bool:
        passed = []
        taker = queue.poll()
        while taker is not None and taker.has(task):
            passed.append(taker)
            taker = queue.poll()
        if taker is not None:
            self.share.count(taker.give_to_least_loaded(task, is_active=False))
            queue.add(taker)
        for process in reversed(passed):
            queue.add(process)
        return taker is not None

    def result(self) -> Mapping[str, Tasks]:
        """The tasks given to each member."""
        return {
            member_id: Tasks(
                task_map(process.active.get(member_id, ())), task_map(process.standby.get(member_id, ()))
            )
            for process in self.processes
            for member_id in process.task_counts
        }


def _all_tasks(spec: GroupSpec, *, stateful_only: bool) -> list[TaskId]:
    return [
        TaskId(name, partition)
        for name, subtopology in spec.subtopologies.items()
        if subtopology.is_stateful or not stateful_only
        for partition in range(subtopology.task_count)
    ]


def _by_partition(task: TaskId) -> tuple[int, str]:
    return task.partition, task.subtopology_id


def _load(process: ProcessLoad) -> float:
    return process.load


def _least_loaded(owners: Iterable[_Owner], standby: TaskId | None = None) -> _Owner | None:
    """The first owner, replaced by each later one with less load both in its process and by itself.

    For a standby task, later owners whose process already has the task are skipped. If the first owner's
    process has it, the result is None, as in Apache Kafka 4.3.
    """
    first: _Owner | None = None
    least: _Owner | None = None
    for owner in owners:
        if first is None or least is None:
            first = least = owner
        elif (
            owner.process.load < least.process.load
            and not (standby is not None and owner.process.has(standby))
            and owner.process.task_counts[owner.member_id] < least.process.task_counts[least.member_id]
        ):
            least = owner
    if first is not None and standby is not None and first.process.has(standby):
        return None
    return least
