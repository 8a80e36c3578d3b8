"""`cluster status`: the quorum, the brokers and what partitions lack."""

from __future__ import annotations

import json

from pykafka_broker.cli.local_cluster.status import TopicStatus, topic_status
from pykafka_broker.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from tests.cli.conftest import Run


def partition(leader_id: int, replicas: list[int], in_sync: list[int]) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=0, partition_index=0, leader_id=leader_id, replica_nodes=replicas, isr_nodes=in_sync
    )


def test_partitions_are_counted_as_kafka_topics_selects_them() -> None:
    topic = MetadataResponseTopic(
        error_code=0,
        name="orders",
        partitions=[
            partition(1, [1, 2, 3], [1, 2, 3]),
            partition(1, [1, 2, 3], [1, 2]),
            partition(2, [1, 2, 3], [2]),
            partition(-1, [1, 2, 3], []),
        ],
    )
    assert topic_status(topic, least=2) == TopicStatus(
        "orders", partitions=4, under_replicated=3, at_min_isr=1, under_min_isr=2, offline=1
    )


def test_a_cluster_of_one_node_lacks_nothing(run: Run, broker: str) -> None:
    run("topics", "create", "orders", "--partitions", "2")
    shown = run("cluster", "status", "--topics")
    identity, quorum, *rest = shown.out.splitlines()
    assert identity.startswith("ClusterId: ")
    assert quorum.startswith("Quorum: LeaderId: 1\tLeaderEpoch: 1\tVoters: 1\tMaxFollowerLag: 0")
    assert rest == [
        f"Broker: 1\tState: up\tAddress: {broker}\tRack: \tLeaders: 2\tReplicas: 2\tInSync: 2",
        "Topics: 1\tPartitions: 2\tUnderReplicated: 0\tAtMinIsr: 2\tUnderMinIsr: 0\tOffline: 0",
        "Topic: orders\tPartitions: 2\tUnderReplicated: 0\tAtMinIsr: 2\tUnderMinIsr: 0\tOffline: 0",
    ]
    assert "Topic: " not in run("cluster", "status").out
    found = json.loads(run("cluster", "status", "--json").out)
    assert [topic["topic"] for topic in found["topics"]] == ["orders"]
