"""The target of a group: its assignor is asked, and what is new in its answer is written down."""

from __future__ import annotations

from pykafka_broker.coordinator.group.consumer.assignors import ASSIGNORS
from pykafka_broker.coordinator.group.consumer.assignors.spec import GroupSpec, MemberSpec
from pykafka_broker.coordinator.group.consumer.records import target_epoch_record, target_record
from pykafka_broker.coordinator.group.consumer.state import NO_ASSIGNMENT, ConsumerGroup
from pykafka_broker.coordinator.group.consumer.turn import ConsumerTurn
from pykafka_broker.coordinator.group.topics import TopicDirectory
from pykafka_broker.coordinator.java_hash import string_hash, walked


def update_target(turn: ConsumerTurn) -> None:
    """Make a target for the group's epoch if it has none yet, and the last one is old enough."""
    group = turn.group
    if group.assignment_epoch >= group.group_epoch:
        return
    interval_ms = turn.settings.assignment_interval_ms
    made_ms = group.assignment_timestamp_ms
    if made_ms and interval_ms and turn.now_ms < made_ms + interval_ms:
        return
    assign = ASSIGNORS[preferred_assignor(group, turn.config.consumer_group_assignors[0])]
    result = assign(group_spec(group, turn.groups.topics))
    # Compared before anything is written: an older version of the table would be dear to read.
    targets = {name: result.get(name, NO_ASSIGNMENT) for name in walked(group.members, string_hash)}
    changed = [name for name, target in targets.items() if group.targets.get(name) != target]
    turn.write(
        *(target_record(group.group_id, name, targets[name]) for name in changed),
        target_epoch_record(group.group_id, group.group_epoch, turn.now_ms),
    )


def preferred_assignor(group: ConsumerGroup, default: str) -> str:
    """The assignor most members ask for."""
    votes: dict[str, int] = {}
    for member in group.members.values():
        if member.server_assignor is not None:
            votes[member.server_assignor] = votes.get(member.server_assignor, 0) + 1
    return max(walked(votes, string_hash), key=votes.__getitem__, default=default)


def group_spec(group: ConsumerGroup, topics: TopicDirectory) -> GroupSpec:
    """The group as the assignor is to see it: only topics that exist."""
    counts: dict[bytes, int] = {}
    known: dict[frozenset[str], dict[bytes, None]] = {}
    members = {}
    for member_id, member in group.members.items():
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
