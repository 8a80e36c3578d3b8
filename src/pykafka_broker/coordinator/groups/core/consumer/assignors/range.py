"""The `range` assignor: each member gets consecutive partitions of each topic, so that topics with the same
number of partitions are assigned alike.

Members are sorted, static ones first and by their instance id, so that they keep their ranges when they
restart. Partitions left over go to the first members, one each.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.coordinator.groups.core.consumer.assignors.spec import Assignment, GroupSpec, MemberSpec


def assign_ranges(spec: GroupSpec) -> Mapping[str, Assignment]:
    """Divide each topic among its subscribers."""
    members = sorted(spec.members.items(), key=_rank)
    if spec.is_homogeneous and members:
        topic_ids = members[0][1].topic_ids
        subscriptions = [(member_id, topic_ids) for member_id, _ in members]
    else:
        subscriptions = [(member_id, member.topic_ids) for member_id, member in members]
    subscribers: dict[bytes, int] = {}
    for _, topic_ids in subscriptions:
        for topic_id in topic_ids:
            subscribers[topic_id] = subscribers.get(topic_id, 0) + 1

    served = dict.fromkeys(subscribers, 0)
    assignments: dict[str, Assignment] = {}
    for member_id, topic_ids in subscriptions:
        assignment = {}
        for topic_id in topic_ids:
            quota, extra = divmod(spec.partition_counts[topic_id], subscribers[topic_id])
            place = served[topic_id]
            served[topic_id] += 1
            start = place * quota + min(place, extra)
            end = start + quota + (place < extra)
            if start < end:
                assignment[topic_id] = frozenset(range(start, end))
        assignments[member_id] = assignment
    return assignments


def _rank(item: tuple[str, MemberSpec]) -> tuple[bool, bytes]:
    member_id, member = item
    if member.instance_id is not None:
        return False, in_java_order(member.instance_id)
    return True, in_java_order(member_id)


def in_java_order(text: str) -> bytes:
    """A key that sorts texts as Java does, by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")
