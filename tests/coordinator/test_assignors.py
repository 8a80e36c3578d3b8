"""Server-side assignors: the promises they make.

That they divide random groups as Apache Kafka does is tested in interop/tests/test_assignments.py.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.coordinator.groups.core.consumer.assignors import ASSIGNORS
from pykafka_broker.coordinator.groups.core.consumer.assignors.range import assign_ranges
from pykafka_broker.coordinator.groups.core.consumer.assignors.spec import Assignment, GroupSpec, MemberSpec
from pykafka_broker.coordinator.groups.core.consumer.assignors.uniform import assign_uniformly

T, U = b"t" * 16, b"u" * 16


def group(members: dict[str, MemberSpec], counts: dict[bytes, int]) -> GroupSpec:
    owned = {
        (topic_id, partition)
        for member in members.values()
        for topic_id, partitions in member.assignment.items()
        for partition in partitions
    }
    return GroupSpec(members, counts, len({member.topic_ids for member in members.values()}) == 1, owned)


def partitions(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


def test_range_gives_what_does_not_divide_evenly_to_static_members_first() -> None:
    both = frozenset([T, U])
    members = {
        "a": MemberSpec(both, {}),
        "z": MemberSpec(both, {}, instance_id="instance"),
        "b": MemberSpec(frozenset([U]), {}),
    }

    assert assign_ranges(group(members, {T: 3, U: 2})) == {
        "z": {T: partitions(0, 1), U: partitions(0)},
        "a": {T: partitions(2), U: partitions(1)},
        "b": {},
    }


def test_uniform_moves_only_what_a_newcomer_needs() -> None:
    topics = frozenset([T])
    members = {
        "a": MemberSpec(topics, {T: partitions(0, 1, 2)}),
        "b": MemberSpec(topics, {T: partitions(3, 4, 5)}),
        "new": MemberSpec(topics, {}),
    }

    result = assign_uniformly(group(members, {T: 6}))

    assert result == {
        "a": {T: partitions(0, 1)},
        "b": {T: partitions(3, 4)},
        "new": {T: partitions(2, 5)},
    }


@pytest.mark.parametrize("assignor", sorted(ASSIGNORS))
def test_a_group_without_members_or_topics_is_assigned_nothing(assignor: str) -> None:
    assert ASSIGNORS[assignor](GroupSpec({}, {}, True, frozenset())) == {}
    lonely = {"a": MemberSpec(frozenset(), {T: partitions(0)})}
    assert not any(ASSIGNORS[assignor](GroupSpec(lonely, {}, True, frozenset())).values())


TOPICS = [bytes([number]) * 16 for number in range(4)]


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.sets(st.sampled_from(TOPICS)), min_size=1),
    st.lists(st.integers(1, 9), min_size=4, max_size=4),
    st.sampled_from(sorted(ASSIGNORS)),
)
def test_every_partition_has_one_owner_who_subscribes_and_repeating_it_moves_nothing(
    subscriptions: dict[str, set[bytes]], counts: list[int], assignor: str
) -> None:
    sizes = dict(zip(TOPICS, counts, strict=True))
    members = {name: MemberSpec(frozenset(topics), {}) for name, topics in subscriptions.items()}

    result = ASSIGNORS[assignor](group(members, sizes))

    owned = [
        (topic_id, partition)
        for name, assignment in result.items()
        for topic_id, numbers in assignment.items()
        for partition in numbers
        if topic_id in subscriptions[name]
    ]
    wanted = {
        (topic, number)
        for topics in subscriptions.values()
        for topic in topics
        for number in range(sizes[topic])
    }
    assert sorted(owned) == sorted(wanted)
    assert total(result) == len(wanted)
    again = {name: member._replace(assignment=result.get(name, {})) for name, member in members.items()}
    assert ASSIGNORS[assignor](group(again, sizes)) == result
    if assignor == "uniform" and len({frozenset(topics) for topics in subscriptions.values()}) == 1:
        loads = [sum(map(len, result.get(name, {}).values())) for name in members]
        assert max(loads) - min(loads) <= 1


def total(result: dict[str, Assignment] | object) -> int:
    assert isinstance(result, dict)
    return sum(len(numbers) for assignment in result.values() for numbers in assignment.values())
