"""`cluster status`: the quorum, the brokers and what partitions lack."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pykafka_broker import Cluster
from pykafka_broker.cli.local_cluster.lags import Lag
from pykafka_broker.cli.local_cluster.status import (
    PartitionStatus,
    TopicStatus,
    partition_statuses,
    topic_status,
)
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.client.reassignments import Ongoing
from pykafka_broker.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from tests.cli.conftest import Run, run_command


def partition(
    leader_id: int, replicas: list[int], in_sync: list[int], index: int = 0
) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=0, partition_index=index, leader_id=leader_id, replica_nodes=replicas, isr_nodes=in_sync
    )


@contextmanager
def hanging_up(address: str, answers: int) -> Iterator[str]:
    """The address of a broker that stops after some answers, which are those of the broker at `address`."""
    server = socket.create_server(("127.0.0.1", 0))

    def forward(source: socket.socket, target: socket.socket) -> None:
        head = source.recv(4, socket.MSG_WAITALL)
        [length] = struct.unpack(">i", head)
        target.sendall(head + source.recv(length, socket.MSG_WAITALL))

    def serve() -> None:
        asking, _ = server.accept()
        server.close()
        with asking, socket.create_connection(parse_address(address)) as answering:
            for _ in range(answers):
                forward(asking, answering)
                forward(answering, asking)

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"127.0.0.1:{server.getsockname()[1]}"
    thread.join()


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
    assert topic_status(topic, least=2, ends={}, ongoing={}) == TopicStatus(
        "orders",
        partitions=4,
        under_replicated=3,
        at_min_isr=1,
        under_min_isr=2,
        offline=1,
        max_lag=None,
        silent_replicas=[1, 2, 3],
    )


def test_replicas_that_a_reassignment_adds_are_not_missing() -> None:
    topic = MetadataResponseTopic(
        error_code=0, name="orders", partitions=[partition(1, [3, 1], [1]), partition(1, [3, 1], [1], 1)]
    )
    moving = {("orders", 0): Ongoing([3, 1], adding=[3], removing=[1])}
    assert topic_status(topic, 1, {}, moving).under_replicated == 1
    over = {("orders", 1): Ongoing([4, 5, 2], adding=[4, 5], removing=[2])}
    assert topic_status(topic, 1, {}, over).under_replicated == 2


def test_partitions_that_are_not_well_are_told_from_those_that_are() -> None:
    topic = MetadataResponseTopic(
        error_code=0,
        name="orders",
        partitions=[
            partition(1, [1, 2], [1, 2], 0),
            partition(1, [1, 2], [1], 1),
            partition(-1, [1, 2], [], 2),
            partition(3, [3, 1], [3, 1], 3),
            partition(1, [3, 1], [1], 4),
        ],
    )
    moving = {("orders", 4): Ongoing([3, 1], adding=[3], removing=[])}
    ends = {(1, ("orders", 1)): 9, (2, ("orders", 1)): 4}
    assert list(partition_statuses(topic, 1, ends, moving, answering=[1, 2])) == [
        PartitionStatus("orders", 0, 1, [1, 2], [1, 2], [], None, [1, 2], "all", is_well=True),
        PartitionStatus("orders", 1, 1, [1, 2], [1], [2], 5, [], "all", is_well=False),
        PartitionStatus("orders", 2, None, [1, 2], [], [1, 2], None, [1, 2], None, is_well=False),
        PartitionStatus("orders", 3, 3, [3, 1], [3, 1], [], None, [1, 3], None, is_well=False),
        PartitionStatus("orders", 4, 1, [3, 1], [1], [], None, [1, 3], "all", is_well=True),
    ]


def test_a_local_cluster_is_found_by_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYKAFKA_BROKER_BOOTSTRAP_SERVER", raising=False)
    monkeypatch.chdir(tmp_path)
    with Cluster(nodes=1, data_dir=tmp_path / "pykafka-cluster"):
        assert run_command("cluster", "status").status == 0
        assert run_command("cluster", "status", "-d", "pykafka-cluster").status == 0
    both = run_command("cluster", "status", "-d", "pykafka-cluster", "-b", "127.0.0.1:1")
    assert (both.status, "Give either --bootstrap-server or --data-dir." in both.err) == (2, True)
    missing = run_command("cluster", "status", "-d", "nothing")
    assert (missing.status, missing.err) == (1, "Error: There is no cluster in nothing\n")


def test_the_lag_is_that_of_the_last_replica_that_tells_with_the_brokers_that_do_not() -> None:
    told, in_part, leaderless = (partition(leader, [1, 2, 3], [1, 2, 3], leader) for leader in (1, 2, 3))
    ends = {(1, ("orders", 1)): 10, (2, ("orders", 1)): 4, (3, ("orders", 1)): 9}
    ends |= {(1, ("orders", 2)): 5, (2, ("orders", 2)): 17, (1, ("orders", 3)): 3}
    topic = MetadataResponseTopic(error_code=0, name="orders", partitions=[told, in_part, leaderless])
    found = partition_statuses(topic, 2, ends, {}, answering=[1, 2])
    assert [one.lag for one in found] == [Lag(6, []), Lag(12, [3]), Lag(None, [2, 3])]
    assert topic_status(topic, 2, ends, {}).lag == Lag(12, [2, 3])
    topic.partitions = [told]
    assert topic_status(topic, 2, ends, {}).lag == Lag(6, [])
    topic.partitions = [leaderless]
    assert topic_status(topic, 2, ends, {}).lag == Lag(None, [2, 3])
    shown = [f"{lag}" for lag in (Lag(6, []), Lag(12, [2]), Lag(None, [2, 3]))]
    assert shown == ["6", "12 (node 2 does not tell)", "unknown (nodes 2, 3 do not tell)"]


def test_a_cluster_of_one_node_lacks_nothing(run: Run, broker: str) -> None:
    run("topics", "create", "orders", "--partitions", "2")
    shown = run("cluster", "status", "--topics")
    identity, quorum, *rest = shown.out.splitlines()
    assert identity.startswith("ClusterId: ")
    assert quorum.startswith("Quorum: LeaderId: 1\tLeaderEpoch: 1\tVoters: 1\tMaxFollowerLag: 0")
    counts = "Partitions: 2\tUnderReplicated: 0\tAtMinIsr: 2\tUnderMinIsr: 0\tOffline: 0\tMaxLag: 0"
    assert rest == [
        f"Broker: 1\tState: up\tAddress: {broker}\tRack: \tLeaders: 2\tReplicas: 2\tInSync: 2",
        f"Topics: 1\t{counts}",
        f"Topic: orders\t{counts}",
    ]
    assert "Topic: " not in run("cluster", "status").out
    told = "\tTopic: orders\tPartition: {}\tLeader: 1\tReplicas: 1\tIsr: 1\tMissing: \tMaxLag: 0\tAcks: all"
    all_of_them = run("cluster", "status", "--partitions").out.splitlines()
    assert all_of_them[-2:] == [told.format(0), told.format(1)]
    found = json.loads(run("cluster", "status", "--json").out)
    assert [topic["topic"] for topic in found["topics"]] == ["orders"]


def test_a_broker_that_stops_in_the_middle_leaves_the_others_to_ask(broker: str) -> None:
    for answers in (2, 3):
        with hanging_up(broker, answers) as address:
            shown = run_command("cluster", "status", "-b", address)
            assert (shown.status, shown.out[:11]) == (0, "ClusterId: "), shown.err
