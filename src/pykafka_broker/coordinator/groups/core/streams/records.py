"""The records of streams groups, as Apache Kafka 4.3 writes them, and how each changes a group.

Six records describe a group: its epoch, its topology, the epoch of its target, and per member its metadata,
its target, and the tasks it really has. Transitions change a group only by applying records they also write,
so a replay leads to the same group.

Tasks and tags inside a record are sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from pykafka_broker.coordinator.groups.core.epoch_records import (
    group_tombstones,
    known_state,
    with_target,
    with_target_epoch,
    without_assignment,
)
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.streams.state import (
    Endpoint,
    MemberState,
    StreamsGroup,
    StreamsMember,
)
from pykafka_broker.coordinator.groups.core.streams.tasks import NO_OWNED_TASKS, OwnedTasks, TaskEpochs, Tasks
from pykafka_broker.coordinator.groups.core.streams.topology.declared import Topology
from pykafka_broker.coordinator.groups.core.streams.topology_record import topology_from, topology_value
from pykafka_broker.protocol.messages.records import group as m

StreamsGroupKey = (
    m.StreamsGroupMetadataKey
    | m.StreamsGroupMemberMetadataKey
    | m.StreamsGroupTargetAssignmentMetadataKey
    | m.StreamsGroupTargetAssignmentMemberKey
    | m.StreamsGroupCurrentMemberAssignmentKey
    | m.StreamsGroupTopologyKey
)


# ---- records that transitions write ----


def epoch_record(group: StreamsGroup) -> Record:
    """The group has moved to an epoch."""
    return Record(
        m.StreamsGroupMetadataKey(group_id=group.group_id),
        m.StreamsGroupMetadataValue(
            epoch=group.group_epoch,
            metadata_hash=group.metadata_hash,
            validated_topology_epoch=group.validated_topology_epoch,
            last_assignment_configs=[
                m.LastAssignmentConfig(key=key, value=value) for key, value in group.last_assignment_configs
            ],
        ),
    )


def topology_record(group_id: str, topology: Topology) -> Record:
    """The topology of the application."""
    return Record(m.StreamsGroupTopologyKey(group_id=group_id), topology_value(topology))


def member_record(group_id: str, member: StreamsMember) -> Record:
    """A member's metadata: its process, the process's endpoint, and the topology that it runs."""
    endpoint = member.user_endpoint
    return Record(
        m.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        m.StreamsGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topology_epoch=member.topology_epoch,
            process_id=member.process_id or "",
            user_endpoint=None if endpoint is None else m.Endpoint(host=endpoint.host, port=endpoint.port),
            client_tags=[m.KeyValue(key=key, value=value) for key, value in sorted(member.client_tags)],
        ),
    )


def target_epoch_record(group_id: str, assignment_epoch: int, assignment_timestamp_ms: int) -> Record:
    """A target has been made for an epoch."""
    return Record(
        m.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id),
        m.StreamsGroupTargetAssignmentMetadataValue(
            assignment_epoch=assignment_epoch, assignment_timestamp=assignment_timestamp_ms
        ),
    )


def target_record(group_id: str, member_id: str, target: Tasks) -> Record:
    """The target assignment of a member."""
    active, standby, warmup = (
        [
            m.StreamsGroupTargetAssignmentMemberTaskIds(subtopology_id=name, partitions=sorted(partitions))
            for name, partitions in sorted(role.items())
        ]
        for role in target
    )
    return Record(
        m.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        m.StreamsGroupTargetAssignmentMemberValue(
            active_tasks=active, standby_tasks=standby, warmup_tasks=warmup
        ),
    )


def current_record(group_id: str, member: StreamsMember) -> Record:
    """The tasks a member has, its epoch and its state."""
    assigned, pending = member.assigned, member.pending_revocation
    return Record(
        m.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        m.StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state.value,
            active_tasks=_with_epochs(assigned.active),
            standby_tasks=_without_epochs(assigned.standby),
            warmup_tasks=_without_epochs(assigned.warmup),
            active_tasks_pending_revocation=_with_epochs(pending.active),
            standby_tasks_pending_revocation=_without_epochs(pending.standby),
            warmup_tasks_pending_revocation=_without_epochs(pending.warmup),
        ),
    )


def member_tombstones(group_id: str, member_id: str) -> tuple[Record, Record, Record]:
    """The tombstones of a member: of its assignment, its target, and its metadata, in this order."""
    return (
        Record(m.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        Record(m.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        Record(m.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    )


def streams_group_tombstones(group: StreamsGroup) -> list[Record]:
    """The tombstones of a group."""
    group_id = group.group_id
    return group_tombstones(
        (member_tombstones(group_id, name) for name in group.members),
        m.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id),
        m.StreamsGroupMetadataKey(group_id=group_id),
        m.StreamsGroupTopologyKey(group_id=group_id),
    )


def _with_epochs(tasks: TaskEpochs) -> list[m.StreamsGroupCurrentMemberAssignmentTaskIds]:
    result = []
    for name, epochs in sorted(tasks.items()):
        partitions = sorted(epochs)
        result.append(
            m.StreamsGroupCurrentMemberAssignmentTaskIds(
                subtopology_id=name,
                partitions=partitions,
                assignment_epochs=[epochs[partition] for partition in partitions],
            )
        )
    return result


def _without_epochs(
    tasks: Mapping[str, Iterable[int]],
) -> list[m.StreamsGroupCurrentMemberAssignmentTaskIds]:
    return [
        m.StreamsGroupCurrentMemberAssignmentTaskIds(subtopology_id=name, partitions=sorted(partitions))
        for name, partitions in sorted(tasks.items())
    ]


# ---- how they change a group ----


def apply(group: StreamsGroup | None, record: Record) -> StreamsGroup | None:
    """`group` after `record`; None stands for no group. A tombstone may name a missing key."""
    key, value = record.key, record.value
    assert isinstance(key, StreamsGroupKey)
    if group is None:
        if value is None:
            return None
        group = StreamsGroup.new(key.group_id)
    match key:
        case m.StreamsGroupMetadataKey():
            if value is None:
                return None
            assert isinstance(value, m.StreamsGroupMetadataValue)
            configs = {config.key: config.value for config in value.last_assignment_configs or ()}
            return group._replace(
                group_epoch=value.epoch,
                metadata_hash=value.metadata_hash,
                validated_topology_epoch=value.validated_topology_epoch,
                last_assignment_configs=tuple(sorted(configs.items())),
            )
        case m.StreamsGroupTopologyKey():
            assert value is None or isinstance(value, m.StreamsGroupTopologyValue)
            return group._replace(topology=None if value is None else topology_from(value))
        case m.StreamsGroupMemberMetadataKey():
            if value is None:
                return group.without_member(key.member_id)
            assert isinstance(value, m.StreamsGroupMemberMetadataValue)
            return group.with_member(_with_metadata(_member(group, key.member_id), value))
        case m.StreamsGroupTargetAssignmentMetadataKey():
            assert value is None or isinstance(value, m.StreamsGroupTargetAssignmentMetadataValue)
            return with_target_epoch(group, value)
        case m.StreamsGroupTargetAssignmentMemberKey():
            if value is None:
                return with_target(group, key.member_id, None)
            assert isinstance(value, m.StreamsGroupTargetAssignmentMemberValue)
            target = Tasks(
                *(
                    {tasks.subtopology_id: frozenset(tasks.partitions) for tasks in role}
                    for role in (value.active_tasks, value.standby_tasks, value.warmup_tasks)
                )
            )
            return with_target(group, key.member_id, target)
        case m.StreamsGroupCurrentMemberAssignmentKey():
            if value is None:
                return without_assignment(
                    group, key.member_id, assigned=NO_OWNED_TASKS, pending_revocation=NO_OWNED_TASKS
                )
            assert isinstance(value, m.StreamsGroupCurrentMemberAssignmentValue)
            return group.with_member(_with_assignment(_member(group, key.member_id), value))
        case _:
            assert_never(key)


def _member(group: StreamsGroup, member_id: str) -> StreamsMember:
    return group.members.get(member_id) or StreamsMember(member_id)


def _with_metadata(member: StreamsMember, value: m.StreamsGroupMemberMetadataValue) -> StreamsMember:
    endpoint = value.user_endpoint
    return member._replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=tuple(sorted((tag.key, tag.value) for tag in value.client_tags)),
    )


def _with_assignment(
    member: StreamsMember, value: m.StreamsGroupCurrentMemberAssignmentValue
) -> StreamsMember:
    return member._replace(
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=known_state(MemberState, value.state),
        assigned=_owned(value.active_tasks, value.standby_tasks, value.warmup_tasks, value.member_epoch),
        pending_revocation=_owned(
            value.active_tasks_pending_revocation,
            value.standby_tasks_pending_revocation,
            value.warmup_tasks_pending_revocation,
            value.member_epoch,
        ),
    )


def _owned(
    active: Iterable[m.StreamsGroupCurrentMemberAssignmentTaskIds],
    standby: Iterable[m.StreamsGroupCurrentMemberAssignmentTaskIds],
    warmup: Iterable[m.StreamsGroupCurrentMemberAssignmentTaskIds],
    member_epoch: int,
) -> OwnedTasks:
    """The tasks in a record; without assignment epochs the member's epoch counts."""
    with_epochs = {}
    for tasks in active:
        epochs = tasks.assignment_epochs or ()
        if len(epochs) != len(tasks.partitions):
            epochs = [member_epoch] * len(tasks.partitions)
        with_epochs[tasks.subtopology_id] = dict(zip(tasks.partitions, epochs, strict=True))
    others = [
        {tasks.subtopology_id: frozenset(tasks.partitions) for tasks in role} for role in (standby, warmup)
    ]
    return OwnedTasks(with_epochs, *others)
