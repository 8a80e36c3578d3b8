"""The state of share groups goes from Apache Kafka 4.3.1 to our broker and back: `__share_group_state` with
its snapshots and updates, deletions and cuts, after stops in order and after kill -9.

Group coordinators and leaders of partitions are played by the test, as both brokers let anybody do who may
act for the cluster.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.messages import delete_share_group_state as deleting
from pykafka_broker.protocol.messages import initialize_share_group_state as initializing
from pykafka_broker.protocol.messages import read_share_group_state as reading
from pykafka_broker.protocol.messages import read_share_group_state_summary as summing_up
from pykafka_broker.protocol.messages import write_share_group_state as writing
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.exchange.contents import TIMEOUT_S
from tests.exchange.node import Node

GROUPS = [f"group-{number}" for number in range(6)]
PARTITIONS = range(3)
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
    "share.coordinator.state.topic.prune.interval.ms": "500",
}
EARLIEST = -2
NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
#: What is read of a share partition, and the summary.
State = tuple[Any, Any]


@pytest.fixture
def node(kafka_jars: Path, tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path, SETTINGS)
    yield node
    node.kill()


class Sharing:
    """Share groups in one topic."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.random = Random(7)
        self.topic_id = b""
        self.leader_epoch = 0
        self.state_epoch = 1

    def create_topic(self) -> None:
        topic = CreatableTopic(
            name="orders", num_partitions=len(PARTITIONS), replication_factor=1, assignments=[], configs=[]
        )
        with Client(self.node.address) as client:
            [created] = client.send(CreateTopicsRequest(topics=[topic])).topics
        assert created.error_code == 0
        self.topic_id = created.topic_id

    def find(self) -> None:
        keys = [f"{group}:{uuid_text(self.topic_id)}:{each}" for group in GROUPS for each in PARTITIONS]
        until_s = time.monotonic() + TIMEOUT_S
        with Client(self.node.address) as client:
            request = FindCoordinatorRequest(key_type=2, coordinator_keys=keys)
            while any(found.error_code for found in client.send(request).coordinators):
                assert time.monotonic() < until_s
                time.sleep(0.05)

    def ask(self, request: Any) -> dict[int, Any]:
        """By partition, its result; asked again while the coordinator is coming."""
        until_s = time.monotonic() + TIMEOUT_S
        with Client(self.node.address) as client:
            while True:
                [topic] = client.send(request).results
                if not any(each.error_code in NOT_YET for each in topic.partitions):
                    return {each.partition: each for each in topic.partitions}
                assert time.monotonic() < until_s, topic
                time.sleep(0.05)

    def initialize(self, group: str, start_offset: int = 0) -> None:
        asked = [
            initializing.PartitionData(
                partition=each, state_epoch=self.state_epoch, start_offset=start_offset
            )
            for each in PARTITIONS
        ]
        topic = initializing.InitializeStateData(topic_id=self.topic_id, partitions=asked)
        request = initializing.InitializeShareGroupStateRequest(group_id=group, topics=[topic])
        assert {each.error_code for each in self.ask(request).values()} == {0}

    def write(self, times: int) -> None:
        """What leaders write: random batches, and start offsets that move on."""
        for number in range(times):
            asked = [
                writing.PartitionData(
                    partition=each,
                    state_epoch=self.state_epoch,
                    leader_epoch=self.leader_epoch,
                    start_offset=self.random.choice([-1, number]),
                    delivery_complete_count=number,
                    state_batches=[self.batch(number)],
                )
                for each in PARTITIONS
            ]
            topic = writing.WriteStateData(topic_id=self.topic_id, partitions=asked)
            group = self.random.choice(GROUPS[:-1])
            request = writing.WriteShareGroupStateRequest(group_id=group, topics=[topic])
            assert {each.error_code for each in self.ask(request).values()} == {0}

    def batch(self, number: int) -> writing.StateBatch:
        first = number + self.random.randrange(10)
        return writing.StateBatch(
            first_offset=first,
            last_offset=first + self.random.randrange(4),
            delivery_state=self.random.choice([0, 2, 4]),
            delivery_count=self.random.randrange(1, 4),
        )

    def delete(self, group: str) -> None:
        asked = [deleting.PartitionData(partition=each) for each in PARTITIONS]
        topic = deleting.DeleteStateData(topic_id=self.topic_id, partitions=asked)
        request = deleting.DeleteShareGroupStateRequest(group_id=group, topics=[topic])
        assert {each.error_code for each in self.ask(request).values()} == {0}

    def read(self, group: str) -> dict[int, Any]:
        asked = [reading.PartitionData(partition=each, leader_epoch=self.leader_epoch) for each in PARTITIONS]
        topic = reading.ReadStateData(topic_id=self.topic_id, partitions=asked)
        return self.ask(reading.ReadShareGroupStateRequest(group_id=group, topics=[topic]))

    def sum_up(self, group: str) -> dict[int, Any]:
        asked = [summing_up.PartitionData(partition=each, leader_epoch=0) for each in PARTITIONS]
        topic = summing_up.ReadStateSummaryData(topic_id=self.topic_id, partitions=asked)
        return self.ask(summing_up.ReadShareGroupStateSummaryRequest(group_id=group, topics=[topic]))

    def logs_are_cut(self) -> None:
        """Wait until no log begins at its beginning any more."""
        places = [ListOffsetsPartition(partition_index=each, timestamp=EARLIEST) for each in range(4)]
        topics = [ListOffsetsTopic(name="__share_group_state", partitions=places)]
        until_s = time.monotonic() + TIMEOUT_S
        with Client(self.node.address) as client:
            while True:
                [topic] = client.send(ListOffsetsRequest(replica_id=-1, topics=topics)).topics
                if all(each.offset > 0 for each in topic.partitions):
                    return
                assert time.monotonic() < until_s, topic
                time.sleep(0.05)

    def contents(self) -> dict[str, State]:
        """All that can be read, without the words of errors."""
        found = {}
        for group in GROUPS:
            read = self.read(group)
            for result in read.values():
                result.error_message = None
            found[group] = (read, self.sum_up(group))
        return found


@pytest.mark.timeout(600)
def test_the_state_of_share_groups_goes_there_and_back(node: Node) -> None:
    sharing = Sharing(node)
    with node.running("apache"):
        sharing.create_topic()
        sharing.find()
        for group in GROUPS:
            sharing.initialize(group)
        sharing.write(40)
        sharing.delete(GROUPS[0])
        written = sharing.contents()
        assert {each.error_code for each in written[GROUPS[0]][0].values()} == {ErrorCode.INVALID_REQUEST}
        assert all(written[group][0][0].state_batches for group in GROUPS[1:-1])

    node.run("ours")
    sharing.find()
    assert sharing.contents() == written
    sharing.initialize(GROUPS[0], start_offset=5)
    sharing.leader_epoch = 3
    sharing.contents()
    sharing.write(40)
    sharing.delete(GROUPS[-1])
    written = sharing.contents()
    sharing.logs_are_cut()
    node.kill()

    node.run("apache")
    sharing.find()
    assert sharing.contents() == written
    sharing.leader_epoch = 2
    fenced = sharing.read(GROUPS[0])
    assert {each.error_code for each in fenced.values()} == {ErrorCode.FENCED_LEADER_EPOCH}
    sharing.leader_epoch = 3
    sharing.initialize(GROUPS[-1])
    sharing.write(20)
    written = sharing.contents()
    node.kill()

    with node.running("ours"):
        sharing.find()
        assert sharing.contents() == written
