"""What the readers of groups hold against a coordinator that loses commits, and what is right; and that they
find one in a cluster.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tests.torture.clients import TOPIC, Load, create_ledger
from tests.torture.group_readers import (
    DEPOSED_S,
    KINDS,
    Group,
    GroupReaders,
    LostCommit,
    Member,
    lost_commits,
)
from tests.torture.harness import PARTITIONS, TOPIC_CONFIG
from tests.torture.history import Place
from tests.torture.mutants import forget_committed_offsets
from tests.torture.tortured_cluster import NODES, RECORDS_A_ROUND, SEED, TorturedCluster


class Coordinator:
    """What it knows of the committed offsets of a group, and whether it answers."""

    def __init__(self) -> None:
        self.committed: dict[int, int] = {}
        self.answers = True

    def check(self) -> None:
        if not self.answers:
            raise KafkaException(KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE))


class Reader:
    """A member of the group, with the part of a consumer that it uses."""

    def __init__(self, coordinator: Coordinator, group: Group) -> None:
        self.now_s = 0.0
        self._coordinator = coordinator
        self._positions: dict[int, int] = {}
        self._fetched: list[Message[Any, Any]] = []
        self._member = Member(cast(Consumer, self), group, lambda: self.now_s)

    def is_assigned(self, partition: int) -> None:
        self._on_assign(self, [TopicPartition(TOPIC, partition)])
        self._positions[partition] = max(0, self._coordinator.committed.get(partition, -1))

    def read(self, partition: int, count: int) -> None:
        """Read so many records, and commit."""
        for _ in range(count):
            self._fetched.append(Message(TOPIC, partition, self._positions[partition]))
            self._positions[partition] += 1
        self._member.step()

    # What a consumer does.

    def subscribe(self, topics: list[str], on_assign: Any) -> None:
        assert topics == [TOPIC]
        self._on_assign = on_assign

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition(TOPIC, partition) for partition in self._positions]

    def consume(self, num_messages: int, timeout: float) -> list[Message[Any, Any]]:
        fetched, self._fetched = self._fetched, []
        return fetched

    def commit(self, *, asynchronous: bool) -> list[TopicPartition]:
        assert not asynchronous
        self._coordinator.check()
        self._coordinator.committed |= self._positions
        return [TopicPartition(TOPIC, *position) for position in self._positions.items()]

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        self._coordinator.check()
        known = self._coordinator.committed
        return [TopicPartition(TOPIC, p.partition, known.get(p.partition, -1001)) for p in partitions]


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def group() -> Group:
    return Group()


@pytest.fixture
def reader(coordinator: Coordinator, group: Group) -> Reader:
    """Has read five records, and committed."""
    reader = Reader(coordinator, group)
    reader.is_assigned(0)
    reader.read(0, 5)
    return reader


def test_less_than_was_acknowledged_is_lost_and_more_is_not() -> None:
    assert lost_commits({0: 5, 1: 5, 2: 5}, {0: 5, 1: 6, 2: 4, 3: -1}) == [LostCommit(2, 5, 4)]


def test_the_highest_offset_that_was_acknowledged_counts(group: Group) -> None:
    group.acknowledge({0: 5, 1: 1})
    group.acknowledge({0: 4})
    assert group.acknowledged == {0: 5, 1: 1}


def test_a_coordinator_that_keeps_what_it_acknowledged_is_right(reader: Reader, group: Group) -> None:
    reader.read(0, 5)
    assert group.lost == []
    assert group.acknowledged == {0: 10}
    assert group.seen == {Place(0, offset) for offset in range(10)}


def test_what_a_coordinator_forgets_under_a_member_is_seen_at_its_next_commit(
    reader: Reader, coordinator: Coordinator, group: Group
) -> None:
    coordinator.committed.clear()
    reader.read(0, 1)
    assert group.lost == [LostCommit(0, 5, -1)]


def test_what_is_lost_once_is_told_once(reader: Reader, coordinator: Coordinator, group: Group) -> None:
    coordinator.committed.clear()
    for _ in range(3):
        reader.read(0, 1)
    assert group.lost == [LostCommit(0, 5, -1)]


@pytest.mark.usefixtures("reader")
def test_who_gets_a_partition_whose_offset_was_forgotten_notices(
    coordinator: Coordinator, group: Group
) -> None:
    coordinator.committed.clear()
    other = Reader(coordinator, group)
    other.is_assigned(0)
    other.read(0, 1)
    assert group.lost == [LostCommit(0, 5, -1)]


def test_a_commit_that_is_acknowledged_after_the_partition_has_moved_is_not_missed(
    reader: Reader, coordinator: Coordinator, group: Group
) -> None:
    other = Reader(coordinator, group)
    other.is_assigned(0)
    reader.read(0, 5)
    coordinator.committed = {0: 5}
    other.read(0, 1)
    assert group.lost == []


def test_a_commit_that_took_effect_and_was_not_acknowledged_is_right(
    reader: Reader, coordinator: Coordinator, group: Group
) -> None:
    coordinator.committed[0] = 7
    reader.read(0, 5)
    assert group.lost == []


def test_nothing_is_committed_while_the_coordinator_does_not_say_what_it_knows(
    reader: Reader, coordinator: Coordinator, group: Group
) -> None:
    coordinator.answers = False
    reader.read(0, 5)
    assert group.acknowledged == {0: 5}
    coordinator.answers = True
    reader.read(0, 0)
    assert group.acknowledged == {0: 10}
    assert group.lost == []


def test_a_coordinator_that_does_not_know_of_the_newest_commits_may_be_deposed(
    reader: Reader, coordinator: Coordinator, group: Group
) -> None:
    coordinator.committed[0] = 4
    reader.read(0, 1)
    assert group.lost == []
    assert coordinator.committed == {0: 4}, "a commit hides what was forgotten"
    coordinator.committed[0] = 5
    reader.now_s += DEPOSED_S
    reader.read(0, 1)
    assert group.lost == []
    assert coordinator.committed == {0: 7}


def test_one_that_does_not_learn_of_them_has_lost_them(
    reader: Reader, coordinator: Coordinator, group: Group
) -> None:
    coordinator.committed[0] = 4
    reader.read(0, 1)
    reader.now_s += DEPOSED_S
    reader.read(0, 1)
    assert group.lost == [LostCommit(0, 5, 4)]
    assert coordinator.committed == {0: 7}


def forgotten_in(folder: Path, mutant: str = "") -> dict[str, list[LostCommit]]:
    """What coordinators have forgotten when each node has been restarted."""
    cluster = TorturedCluster(folder, random.Random(SEED))
    for node_id in NODES:
        cluster.node(node_id).mutant = mutant
    with cluster.nodes:
        create_ledger(cluster.addresses, PARTITIONS, len(NODES), **TOPIC_CONFIG)
        cluster.heal()
        with (
            GroupReaders(cluster.addresses) as readers,
            Load(cluster.addresses, PARTITIONS, chores=False) as load,
        ):
            load.wait_for(RECORDS_A_ROUND)
            groups = readers.groups.values()
            cluster.nodes.comes(
                lambda: all(len(group.acknowledged) == PARTITIONS for group in groups),
                "the groups do not commit",
            )
        cluster.restart_all()
        return readers.forgotten()


class TestARoundInWhichCoordinatorsMove:
    pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

    def test_costs_no_commit_where_no_bug_is_planted(self, tmp_path: Path) -> None:
        assert forgotten_in(tmp_path) == {}

    def test_shows_coordinators_that_forget(self, tmp_path: Path) -> None:
        assert forgotten_in(tmp_path, forget_committed_offsets.__name__).keys() == set(KINDS)
