"""The state of a streams group, one of a Kafka Streams application whose tasks the coordinator assigns.

As in a consumer group (`consumer/state.py`) three epochs show its progress: that of the group, that of the
target the assignor has made, and that of each member. The group also has one topology, brought by its first
member. The topology is ready once its topics match it, which is *validated* for each topology epoch.

A process may have a task only once, in any role, so the group tracks the processes of each task.

Everything but the last few fields of a group is durable, and is only ever changed by applying records
(`streams/records.py`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from pykafka_broker.coordinator.groups.core.streams.tasks import (
    NO_OWNED_TASKS,
    OwnedTasks,
    TaskId,
    Tasks,
    task_ids,
)
from pykafka_broker.coordinator.groups.core.streams.topology.configured import ConfiguredTopology
from pykafka_broker.coordinator.groups.core.streams.topology.declared import Topology
from pykafka_broker.machine.versioned_map import VersionedMap
from pykafka_broker.protocol.epochs import JOIN_EPOCH
from pykafka_broker.system.named_tuple import NamedTuple

NO_ASSIGNMENT = Tasks()
_NO_NAMES: Mapping[str, str] = MappingProxyType({})

#: The processes that have each task.
ProcessIds = VersionedMap[TaskId, frozenset[str]]


class MemberState(enum.IntEnum):
    """The progress of a member towards its target; the numbers are in its record."""

    #: It has all tasks that it gets in its epoch.
    STABLE = 1
    #: It has been told to give up tasks and has not confirmed it.
    UNREVOKED_TASKS = 2
    #: It has given up everything, but other processes, or its own, still hold tasks it is to get.
    UNRELEASED_TASKS = 3
    #: Written by a newer broker: the member must join again.
    UNKNOWN = 127


class GroupState(enum.Enum):
    """The states of a streams group, by the names Kafka shows."""

    EMPTY = "Empty"
    #: The topics are not as the topology needs them.
    NOT_READY = "NotReady"
    #: The group has changed since the last assignment.
    ASSIGNING = "Assigning"
    #: Some members have not reached their targets.
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class Endpoint(NamedTuple):
    """Where an instance of the application answers queries about its state."""

    host: str
    port: int


class StreamsMember(NamedTuple):
    """A member of a streams group: one thread of a process.

    None stands for unknown while only one of a member's two records has been read.
    """

    member_id: str
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    #: In the order of their keys.
    client_tags: tuple[tuple[str, str], ...] = ()
    assigned: OwnedTasks = NO_OWNED_TASKS
    pending_revocation: OwnedTasks = NO_OWNED_TASKS

    @classmethod
    def joining(cls, member_id: str) -> StreamsMember:
        """A new member, before it has said anything."""
        return cls(member_id, process_id="")

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch


class TaskHolders(NamedTuple):
    """Indexes: the process of each active task, and those of each standby and warm-up task. A task counts
    until its member has confirmed that it gave it up.
    """

    active: VersionedMap[TaskId, str]
    standby: ProcessIds
    warmup: ProcessIds

    @classmethod
    def none(cls) -> TaskHolders:
        return cls(VersionedMap(), VersionedMap(), VersionedMap())

    def replaced(self, before: StreamsMember | None, after: StreamsMember | None) -> TaskHolders:
        """The holders after a member has changed, joined or left.

        As in Apache Kafka, two members of a process that hold the same task count as one: when one gives the
        task up, it ends for both.
        """
        if before is not None and after is not None and _held(before) == _held(after):
            return self
        holders = self
        if before is not None and before.process_id is not None:
            for tasks in (before.assigned, before.pending_revocation):
                holders = holders._without(tasks, before.process_id)
        if after is not None and after.process_id is not None:
            for tasks in (after.assigned, after.pending_revocation):
                holders = holders._with(tasks, after.process_id)
        return holders

    def _with(self, tasks: OwnedTasks, process_id: str) -> TaskHolders:
        active = dict.fromkeys(task_ids(tasks.active), process_id)
        return TaskHolders(
            self.active.with_changes(active) if active else self.active,
            _added(self.standby, task_ids(tasks.standby), process_id),
            _added(self.warmup, task_ids(tasks.warmup), process_id),
        )

    def _without(self, tasks: OwnedTasks, process_id: str) -> TaskHolders:
        active = [task for task in task_ids(tasks.active) if self.active.get(task) == process_id]
        return TaskHolders(
            self.active.with_changes({}, active) if active else self.active,
            _removed(self.standby, task_ids(tasks.standby), process_id),
            _removed(self.warmup, task_ids(tasks.warmup), process_id),
        )


def _held(member: StreamsMember) -> tuple[str | None, OwnedTasks, OwnedTasks]:
    return member.process_id, member.assigned, member.pending_revocation


def _added(holders: ProcessIds, tasks: Iterable[TaskId], process_id: str) -> ProcessIds:
    changes = {task: holders.get(task, frozenset()) | {process_id} for task in tasks}
    return holders.with_changes(changes) if changes else holders


def _removed(holders: ProcessIds, tasks: Iterable[TaskId], process_id: str) -> ProcessIds:
    left = {task: holders.get(task, frozenset()) - {process_id} for task in tasks}
    if not left:
        return holders
    gone = [task for task, processes in left.items() if not processes and task in holders]
    return holders.with_changes({task: processes for task, processes in left.items() if processes}, gone)


class StreamsGroup(NamedTuple):
    """A streams group. A new one starts at epoch 1, so its first member arrives in epoch 2."""

    group_id: str
    members: VersionedMap[str, StreamsMember]
    targets: VersionedMap[str, Tasks]
    holders: TaskHolders
    static_members: Mapping[str, str] = _NO_NAMES

    group_epoch: int = 1
    #: Fingerprint of the required topics at the last bump.
    metadata_hash: int = 0
    #: The topology epoch for which the topics were valid; -1 if they were not.
    validated_topology_epoch: int = 0
    #: The settings at the last bump, in the order of their names; the target is made with them.
    last_assignment_configs: tuple[tuple[str, str], ...] = ()
    assignment_epoch: int = 1
    assignment_timestamp_ms: int = 0
    topology: Topology | None = None

    # Soft: these die with the shard.
    #: The topology over the topics, as last computed.
    configured: ConfiguredTopology | None = None
    #: When to check the topics again; 0: at the next heartbeat.
    refresh_deadline_ms: int = 0
    #: The first assignment waits for more members; a timer runs.
    is_delayed: bool = False
    #: The member that has asked all others to stop, kept until the group is empty.
    shutdown_member_id: str | None = None
    #: Rises when the tasks of a member with an endpoint change.
    endpoint_information_epoch: int = 0

    @classmethod
    def new(cls, group_id: str) -> StreamsGroup:
        """A group without members."""
        return cls(group_id, VersionedMap(), VersionedMap(), TaskHolders.none())

    @property
    def state(self) -> GroupState:
        """The state of the group; computed at each call, because it is seldom asked for."""
        if not self.members:
            return GroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return GroupState.NOT_READY
        if self.group_epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    def is_subscribed_to(self, topic: str) -> bool:
        """Does any member read `topic`?"""
        topology = self.topology
        return bool(self.members) and topology is not None and topology.subtopology_of(topic) is not None

    def target_of(self, member_id: str) -> Tasks:
        """The target of a member."""
        return self.targets.get(member_id) or NO_ASSIGNMENT

    def with_member(self, member: StreamsMember) -> StreamsGroup:
        """The group with `member` put in or replaced, and the indexes brought up to date."""
        before = self.members.get(member.member_id)
        static_members = self.static_members
        if member.instance_id is not None:
            static_members = {**static_members, member.instance_id: member.member_id}
        return self._replace(
            members=self.members.with_item(member.member_id, member),
            holders=self.holders.replaced(before, member),
            static_members=static_members,
        )

    def without_member(self, member_id: str) -> StreamsGroup:
        """The group without a member. Its target stays until its own record is deleted."""
        before = self.members.get(member_id)
        if before is None:
            return self
        static_members = self.static_members
        if before.instance_id is not None:
            static_members = {key: name for key, name in static_members.items() if key != before.instance_id}
        members = self.members.without(member_id)
        return self._replace(
            members=members,
            holders=self.holders.replaced(before, None),
            static_members=static_members,
            shutdown_member_id=self.shutdown_member_id if members else None,
        )
