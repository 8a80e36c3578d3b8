"""The target of a share group: its assignor computes it, the assignments that changed are written, and a
member takes up its own.
"""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.heartbeats import is_time_for_a_target
from pykafka_broker.coordinator.groups.core.share.assignors import ASSIGNORS
from pykafka_broker.coordinator.groups.core.share.assignors.spec import GroupSpec, MemberSpec
from pykafka_broker.coordinator.groups.core.share.assignors.tables import Table, capacity_for
from pykafka_broker.coordinator.groups.core.share.records import (
    current_record,
    target_epoch_record,
    target_record,
)
from pykafka_broker.coordinator.groups.core.share.state import (
    NO_ASSIGNMENT,
    Assignment,
    MemberState,
    ShareGroup,
    ShareMember,
)
from pykafka_broker.coordinator.groups.core.share.turn import ShareTurn
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.protocol.java_hash import state_walked, string_hash, uuid_hash, walked


def updated_target(turn: ShareTurn, member_id: str) -> Assignment:
    """Make a target if the group's epoch has none and the last one is old enough; return a member's part."""
    group = turn.group
    interval_ms = turn.settings.assignment_interval_ms
    if group.assignment_epoch >= group.group_epoch or not is_time_for_a_target(
        group.assignment_timestamp_ms, interval_ms, turn.now_ms
    ):
        return group.target_of(member_id)
    assign = ASSIGNORS[turn.config.share_group_assignors[0]]
    order = walked(state_walked(group.members), string_hash)
    result = assign(_group_spec(group, order, turn.groups.topics))
    targets = {name: result.get(name, NO_ASSIGNMENT) for name in order}
    changed = [
        name
        for name, target in targets.items()
        if (before := group.targets.get(name)) is None or not same_partitions(before, target)
    ]
    turn.write(
        *(target_record(group.group_id, name, targets[name]) for name in changed),
        target_epoch_record(group.group_id, group.group_epoch, turn.now_ms),
    )
    return targets[member_id]


def _group_spec(group: ShareGroup, order: list[str], topics: TopicDirectory) -> GroupSpec:
    """The group as the assignor sees it: topics that exist, and partitions that have a state."""
    known: dict[frozenset[str], tuple[bytes, ...]] = {}
    assignable: dict[bytes, tuple[int, ...]] = {}
    initialized = {} if group.states is None else group.states.initialized
    members = {}
    for member_id in order:
        names = group.members[member_id].subscribed_topic_names
        topic_ids = known.get(names)
        if topic_ids is None:
            found = map(topics.topic, walked(sorted(names), string_hash, sized=True))
            existing = [topic for topic in found if topic is not None]
            topic_ids = known[names] = tuple(topic.topic_id for topic in existing)
            for topic in existing:
                states = initialized.get(topic.topic_id)
                has_state = () if states is None else frozenset(states.partitions)
                assignable[topic.topic_id] = tuple(
                    partition for partition in range(topic.partition_count) if partition in has_state
                )
        members[member_id] = MemberSpec(topic_ids, group.targets.get(member_id) or NO_ASSIGNMENT)
    return GroupSpec(members, assignable, group.is_homogeneous)


def same_partitions(one: Assignment, other: Assignment) -> bool:
    """Do two assignments name the same partitions, in whatever order?"""
    return one.keys() == other.keys() and all(
        set(partitions) == set(other[topic_id]) for topic_id, partitions in one.items()
    )


def reconcile(
    turn: ShareTurn, member: ShareMember, target: Assignment, *, changed_subscription: bool
) -> ShareMember:
    """Give a member its target, limited to the topics that it subscribes to."""
    epoch = turn.group.assignment_epoch
    if not changed_subscription and member.is_reconciled_to(epoch):
        return member
    after = member._replace(assigned=of_subscribed(target, member, turn.groups.topics))
    if member.member_epoch != epoch:
        after = after._replace(
            state=MemberState.STABLE, member_epoch=epoch, previous_member_epoch=member.member_epoch
        )
    elif not changed_subscription:
        return member
    is_same = same_partitions(after.assigned, member.assigned)
    if is_same and after == member._replace(assigned=after.assigned):
        return member
    turn.write(current_record(turn.group_id, after))
    return after


def of_subscribed(target: Assignment, member: ShareMember, topics: TopicDirectory) -> Assignment:
    """The partitions of `target` whose topics the member subscribes to."""
    found = map(topics.topic, member.subscribed_topic_names)
    topic_ids = {topic.topic_id for topic in found if topic is not None}
    if topic_ids.issuperset(target):
        return target
    copy: Table[bytes, None] = Table(uuid_hash, capacity_for(int(len(target) / 0.75 + 1)))
    for topic_id in target:
        copy.put(topic_id, None)
    return {topic_id: target[topic_id] for topic_id in copy.in_order() if topic_id in topic_ids}
