"""The record of a classic group, GroupMetadata, as Apache Kafka 4.3 writes it: value version 3.

Older versions are read.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Member, Phase, Protocol
from pykafka_broker.coordinator.groups.core.classic.subscription import subscribed_topics
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.protocol.messages.records.group import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

GROUP_METADATA_VALUE_VERSION = 3


def group_record(group: ClassicGroup) -> Record:
    """The record of a group that is stable or empty."""
    members = [
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(group.protocol_name),
            assignment=member.assignment,
        )
        for member in group.members.values()
    ]
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.phase_began_ms,
        members=members,
    )
    return Record(GroupMetadataKey(group=group.group_id), value, GROUP_METADATA_VALUE_VERSION)


def new_group_record(group_id: str, now_ms: int) -> Record:
    """The record of a group when the first member asks to join: nothing but its name."""
    return group_record(ClassicGroup(group_id, phase_began_ms=now_ms))


def group_tombstone(group_id: str) -> Record:
    """The tombstone of a group."""
    return Record(GroupMetadataKey(group=group_id), None)


def group_from_record(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """The group in a record's value. Each member has only the protocol that the group had chosen."""
    members: dict[str, Member] = {}
    static_members: dict[str, str] = {}
    for member in value.members:
        members[member.member_id] = Member(
            member_id=member.member_id,
            client_id=member.client_id,
            client_host=member.client_host,
            # Version 0 knew no rebalance timeout.
            rebalance_timeout_ms=(
                member.session_timeout if member.rebalance_timeout == -1 else member.rebalance_timeout
            ),
            session_timeout_ms=member.session_timeout,
            protocols=(Protocol(value.protocol or "", member.subscription),),
            group_instance_id=member.group_instance_id,
            assignment=member.assignment,
        )
        if member.group_instance_id is not None:
            static_members[member.group_instance_id] = member.member_id
    supporters: Mapping[str, int] = {value.protocol or "": len(members)} if members else {}
    return ClassicGroup(
        group_id,
        phase=Phase.STABLE if members else Phase.EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader_id=value.leader,
        phase_began_ms=value.current_state_timestamp,
        members=members,
        static_members=static_members,
        supporters=supporters,
        subscribed_topics=subscribed_topics(value.protocol_type, value.protocol, members.values()),
    )
