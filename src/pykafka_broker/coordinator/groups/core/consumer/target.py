"""The target of a group: its assignor computes it, and the assignments that changed are written."""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.coordinator.groups.core.consumer.assignors import ASSIGNORS
from pykafka_broker.coordinator.groups.core.consumer.assignors.spec import GroupSpec, MemberSpec
from pykafka_broker.coordinator.groups.core.consumer.records import target_epoch_record, target_record
from pykafka_broker.coordinator.groups.core.consumer.state import NO_ASSIGNMENT, ConsumerGroup, ConsumerMember
from pykafka_broker.coordinator.groups.core.consumer.turn import ConsumerTurn
from pykafka_broker.coordinator.groups.core.heartbeats import is_time_for_a_target
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.protocol.epochs import JOIN_EPOCH
from pykafka_broker.protocol.java_hash import state_walked, string_hash, walked


def update_target(turn: ConsumerTurn, sender: ConsumerMember) -> None:
    """Make a target for the group's epoch if it has none yet, and the last one is old enough."""
    group = turn.group
    if group.assignment_epoch >= group.group_epoch:
        return
    interval_ms = turn.settings.assignment_interval_ms
    if not is_time_for_a_target(group.assignment_timestamp_ms, interval_ms, turn.now_ms):
        return
    assign = ASSIGNORS[preferred_assignor(group, turn.config.consumer_group_assignors[0], sender)]
    order = _members_in_order(group, sender)
    result = assign(group_spec(group, order, turn.groups.topics))
    # Compared before anything is written: an older version of the table would be expensive to read.
    targets = {name: result.get(name, NO_ASSIGNMENT) for name in order}
    changed = [name for name, target in targets.items() if group.targets.get(name) != target]
    turn.write(
        *(target_record(group.group_id, name, targets[name]) for name in changed),
        target_epoch_record(group.group_id, group.group_epoch, turn.now_ms),
    )


def _members_in_order(group: ConsumerGroup, sender: ConsumerMember) -> list[str]:
    """The members in the order that decides ties: that of Apache Kafka's hash map, a joining member last."""
    joins = sender.member_epoch == JOIN_EPOCH
    known = state_walked(name for name in group.members if not (joins and name == sender.member_id))
    return [*known, sender.member_id] if joins else known


def preferred_assignor(group: ConsumerGroup, default: str, sender: ConsumerMember | None = None) -> str:
    """The assignor that most members ask for. In a tie the sender's wins if only the sender asks for it."""
    votes: dict[str, int] = {}
    for member in group.members.values():
        if member.server_assignor is not None:
            votes[member.server_assignor] = votes.get(member.server_assignor, 0) + 1
    order = state_walked(votes)
    if sender is not None and sender.server_assignor is not None and votes[sender.server_assignor] == 1:
        order = [sender.server_assignor, *order]
    return max(order, key=votes.__getitem__, default=default)


def group_spec(group: ConsumerGroup, order: Iterable[str], topics: TopicDirectory) -> GroupSpec:
    """The group as the assignor sees it: only topics that exist, and the members in this order."""
    counts: dict[bytes, int] = {}
    known: dict[frozenset[str], dict[bytes, None]] = {}
    members = {}
    for member_id in order:
        member = group.members[member_id]
        names = group.topics_of(member)
        topic_ids = known.get(names)
        if topic_ids is None:
            topic_ids = known[names] = {}
            for name in walked(names, string_hash, sized=True):
                topic = topics.topic(name)
                if topic is not None:
                    topic_ids[topic.topic_id] = None
                    counts[topic.topic_id] = topic.partition_count
        members[member_id] = MemberSpec(
            topic_ids.keys(), group.targets.get(member_id) or NO_ASSIGNMENT, member.instance_id
        )
    assigned = {
        (topic_id, partition)
        for target in group.targets.values()
        for topic_id, partitions in target.items()
        for partition in partitions
    }
    return GroupSpec(members, counts, group.is_homogeneous, assigned)
