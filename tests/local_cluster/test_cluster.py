"""`Cluster`: whole nodes in this process, stopped and started again under their clients."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient

from pykafka_broker import Cluster, Security
from pykafka_broker.config.keys import ConfigError
from pykafka_broker.local_cluster.folder import ClusterFolder, NoSuchNodeError
from pykafka_broker.local_cluster.layout import Layout
from pykafka_broker.local_cluster.nodes import Nodes
from pykafka_broker.log.disk.directories import LogDirError
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from pykafka_broker.testing.clock import settle
from pykafka_broker.testing.user import User
from tests.support.pages import blocks

REPLICATED = {"default.replication.factor": 3}


async def create(cluster: Cluster, topic: str, *, partitions: int = 1, node_id: int = 1) -> None:
    """Create a topic with as many replicas as the cluster's default says."""
    wanted = CreatableTopic(
        name=topic, num_partitions=partitions, replication_factor=-1, assignments=[], configs=[]
    )
    async with await User.connect(cluster.address(node_id)) as user:
        answer = await user.send(CreateTopicsRequest(topics=[wanted]), 7)
    assert ErrorCode(answer.topics[0].error_code) == ErrorCode.NONE


async def produce(cluster: Cluster, topic: str, *values: bytes) -> None:
    """Produce to the leader; all replicas in sync have the records."""
    async with await User.connect(cluster.address(await cluster.leader(topic))) as user:
        await user.produce(topic, *values)


async def values(cluster: Cluster, topic: str) -> list[bytes | None]:
    async with await User.connect(cluster.address(await cluster.leader(topic))) as user:
        return await user.values(topic)


async def voters(cluster: Cluster, node_id: int) -> dict[int, bytes]:
    """The voters of the quorum, each with the id of its directory."""
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    async with await User.connect(cluster.address(node_id)) as user:
        answer = await user.send(DescribeQuorumRequest(topics=[topic]), 2)
    found = answer.topics[0].partitions[0].current_voters
    return {voter.replica_id: voter.replica_directory_id for voter in found}


def threads() -> set[str]:
    """The threads of brokers and clusters: asyncio keeps some of its own for the next time."""
    return {thread.name for thread in threading.enumerate() if not thread.name.startswith("asyncio_")}


def names_in(folder: Path) -> list[str]:
    return os.listdir(folder)


async def test_what_all_replicas_have_is_there_when_the_leader_has_stopped() -> None:
    async with Cluster(nodes=3, overrides=REPLICATED) as cluster:
        await create(cluster, "orders")
        await produce(cluster, "orders", b"one", b"two")
        before = await cluster.leader("orders")
        await cluster.stop(before)
        assert await cluster.leader("orders") != before
        assert await values(cluster, "orders") == [b"one", b"two"]


async def test_nodes_that_were_all_killed_wait_for_none_of_the_sessions_that_they_had() -> None:
    """A session of an hour would be waited for until the test has no time left."""
    hour = {"broker.session.timeout.ms": 3_600_000}
    async with Cluster(nodes=3, overrides={**REPLICATED, **hour}) as cluster:
        await create(cluster, "orders")
        await produce(cluster, "orders", b"one")
        await cluster.kill(*cluster.node_ids)
        await cluster.start(*cluster.node_ids)
        await cluster.wait_until_in_sync("orders")
        assert await values(cluster, "orders") == [b"one"]


async def test_a_leader_that_is_killed_hands_nothing_over_and_recovers_its_logs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Cluster(nodes=3, overrides=REPLICATED) as cluster:
        await create(cluster, "orders")
        await produce(cluster, "orders", b"one")
        before = await cluster.leader("orders")
        async with await User.connect(cluster.address(before)) as user:
            await cluster.kill(before)
            assert await user.is_closed()
        assert await cluster.leader("orders") != before
        await produce(cluster, "orders", b"two")
        with caplog.at_level("INFO"):
            await cluster.start(before)
        await cluster.kill(before)
        await cluster.kill(before)
        await cluster.start(before)
        assert "since clean shutdown file was found" not in caplog.text
        await cluster.wait_until_in_sync("orders")
        assert await values(cluster, "orders") == [b"one", b"two"]


async def test_a_node_that_comes_back_is_in_sync_again() -> None:
    async with Cluster(nodes=3, overrides=REPLICATED) as cluster:
        await create(cluster, "orders", partitions=3)
        await cluster.wait_until_in_sync("orders")
        await cluster.stop(2)
        with pytest.raises(TimeoutError, match=r"Not all replicas of orders were in sync within 0\.01 s"):
            await cluster.wait_until_in_sync("orders", timeout_s=0.01)
        await cluster.start(2)
        await cluster.wait_until_in_sync()
        await cluster.stop(1, 3)
        await cluster.start(1, 3)
        await cluster.wait_until_in_sync("orders")


async def test_a_restart_of_all_leaves_everything_in_sync() -> None:
    async with Cluster(nodes=3, overrides=REPLICATED) as cluster:
        await create(cluster, "orders", partitions=6)
        await produce(cluster, "orders", b"one")
        await cluster.restart()
        await cluster.wait_until_in_sync(timeout_s=0.01)
        await cluster.kill(2)
        await cluster.restart(1)  # it waits for no node that does not run
        await cluster.restart(2)
        await cluster.wait_until_in_sync(timeout_s=0.01)


async def test_the_active_controller_may_stop_and_start_again() -> None:
    async with Cluster(nodes=3) as cluster:
        before = await cluster.controller()
        await cluster.stop(before)
        assert await cluster.controller() != before
        await cluster.start(before)
        await create(cluster, "orders", node_id=before)


async def test_controllers_may_be_apart_from_brokers() -> None:
    async with Cluster(brokers=2, controllers=1) as cluster:
        assert cluster.node_ids == (1, 2, 3)
        assert cluster.bootstrap_servers == f"{cluster.address(2)},{cluster.address(3)}"
        assert await cluster.controller() == 1
        await create(cluster, "orders", node_id=3)
        await cluster.restart()
        assert await cluster.leader("orders") in (2, 3)


async def test_the_data_is_there_for_the_next_cluster(tmp_path: Path) -> None:
    async with Cluster(nodes=2, data_dir=tmp_path / "cluster") as cluster:
        address = cluster.bootstrap_servers
        await create(cluster, "orders")
        await produce(cluster, "orders", b"one")
    async with Cluster(data_dir=tmp_path / "cluster") as cluster:
        assert cluster.bootstrap_servers == address
        assert await values(cluster, "orders") == [b"one"]
    with pytest.raises(LogDirError, match="holds a cluster of 2 nodes, not of 3 nodes"):
        await Cluster(nodes=3, data_dir=tmp_path / "cluster").start()


async def test_a_controller_that_lost_its_disk_does_not_outvote_the_one_that_remembers(
    tmp_path: Path,
) -> None:
    """Before, it came back as the voter that it was, with nothing in its log: it and node 3, which was down
    when the topic was made, elected each other, and the topic was gone.
    """
    # It asks to join after three of these time-outs.
    keys = {"controller.quorum.fetch.timeout.ms": 1000}
    async with Cluster(nodes=3, data_dir=tmp_path, overrides=keys) as cluster:
        await cluster.kill(3)
        await create(cluster, "orders")
        before = await voters(cluster, 1)
        await cluster.kill(1, 2)
        shutil.rmtree(tmp_path / "node-2" / "data")
        with pytest.raises(TimeoutError, match=r"Not up within 3 s: 2, 3"):
            await cluster.start(2, 3, timeout_s=3)
        await cluster.start(1, 2, 3)
        async with await User.connect(cluster.address(3)) as user:
            assert await user.try_to_create_topic("orders") == ErrorCode.TOPIC_ALREADY_EXISTS
        while set(now := await voters(cluster, 3)) != {1, 2, 3} or now[2] == before[2]:
            pass  # it joins again
        # What is decided now is decided behind that.
        await create(cluster, "payments")
        await cluster.kill(1)
        assert await cluster.controller() in (2, 3)
        await create(cluster, "refunds", node_id=2)


async def test_clusters_run_side_by_side() -> None:
    async with Cluster(nodes=1) as one, Cluster(nodes=1) as other:
        await create(one, "orders")
        await create(other, "orders")
        await produce(one, "orders", b"one")
        await produce(other, "orders", b"other")
        assert await values(one, "orders") == [b"one"]


async def test_a_cluster_that_has_stopped_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    threads_before, tasks_before = threads(), asyncio.all_tasks()
    cluster = Cluster(nodes=2)
    async with cluster:
        await create(cluster, "orders")
        assert [name[:16] for name in names_in(tmp_path)] == ["pykafka-cluster-"]
    await cluster.stop()
    assert names_in(tmp_path) == []
    assert threads() == threads_before
    assert asyncio.all_tasks() == tasks_before


async def test_a_start_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        await Cluster(nodes=2, overrides={"num.partitions": "many"}).start()
    assert names_in(tmp_path) == []


async def test_an_address_that_another_has_is_named(tmp_path: Path) -> None:
    async with Cluster(nodes=1, data_dir=tmp_path) as cluster:
        host, _, port = cluster.address(1).rpartition(":")
    before = threads()
    with socket.create_server((host, int(port))), pytest.raises(OSError, match=f"to bind to {host}:{port}"):
        await Cluster(data_dir=tmp_path).start()
    assert threads() == before
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_nodes_that_cannot_start_in_time_are_stopped_again() -> None:
    async with Cluster(nodes=3) as cluster:
        await cluster.stop(1, 2, 3)
        with pytest.raises(TimeoutError, match=r"Not up within 0\.1 s: 1"):
            await cluster.start(1, timeout_s=0.1)
        with pytest.raises(TimeoutError, match=r"No controller has been active for 0\.01 s"):
            await cluster.controller(timeout_s=0.01)
        await cluster.start(*cluster.node_ids)
        await cluster.controller()


async def test_a_node_that_is_starting_when_the_cluster_stops_is_stopped_too() -> None:
    before = threads()
    async with Cluster(nodes=2) as cluster:
        await cluster.stop(2)
        starting = asyncio.ensure_future(cluster.start(2))
        await settle()
    for start in (starting, cluster.start(2)):
        with pytest.raises(RuntimeError, match="this cluster has been stopped: make another one"):
            await start
    assert threads() == before


def test_nothing_is_in_sync_while_no_node_runs(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path / "cluster")
    folder.create(Layout(combined=3), 0, {})

    assert Nodes(folder, {}).are_in_sync(None) is None


async def test_what_there_is_not_is_refused_with_a_sentence() -> None:
    with pytest.raises(ConfigError, match=r"node\.id cannot be overridden here"):
        Cluster(overrides={"node.id": 4})
    with pytest.raises(ValueError, match="either nodes, or both brokers and controllers"):
        Cluster(nodes=3, brokers=2)
    cluster = Cluster(nodes=1)
    with pytest.raises(RuntimeError, match="this cluster has not been started"):
        _ = cluster.bootstrap_servers
    with pytest.raises(RuntimeError, match="this cluster has not been started"):
        cluster.__exit__()
    async with cluster:
        with pytest.raises(NoSuchNodeError, match=r"There is no node 2; the cluster has 1\."):
            await cluster.stop(2)
        with pytest.raises(TimeoutError, match=r"Partition orders-0 has had no leader for 0\.01 s"):
            await cluster.leader("orders", timeout_s=0.01)
        with pytest.raises(RuntimeError, match="a cluster starts once: make another one"):
            await cluster.start()
    with pytest.raises(RuntimeError, match="a cluster starts once: make another one"):
        await cluster.start()


@pytest.fixture
def closed_sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """kafka-python does not close a socket at which it was refused."""
    made: list[socket.socket] = []

    def make(_: object, *details: int) -> socket.socket:
        made.append(socket.socket(*details))
        return made[-1]

    monkeypatch.setattr("kafka.net.inet.KafkaNetSocket.socket", make)
    yield
    for one in made:
        one.close()


@pytest.mark.usefixtures("closed_sockets")
def test_the_story_of_the_page_is_true() -> None:
    [page] = blocks("docs/cluster.md", "python")
    names: dict[str, Any] = {}
    exec(page, names)
    before = threads()
    names["test_orders_survive_the_leader_of_their_partition"]()
    assert threads() == before


def test_programs_without_an_event_loop_have_the_same_calls() -> None:
    with Cluster(nodes=2) as cluster:
        assert cluster.node_ids == (1, 2)
        assert cluster.bootstrap_servers == f"{cluster.address(1)},{cluster.address(2)}"
        before = cluster.controller()
        cluster.restart(before)
        cluster.kill(cluster.controller())
        cluster.start(*cluster.node_ids)
        cluster.wait_until_in_sync()
        with pytest.raises(TimeoutError, match=r"Partition orders-0 has had no leader for 0\.01 s"):
            cluster.leader("orders", timeout_s=0.01)
    with pytest.raises(RuntimeError, match="has been stopped"):
        cluster.leader("orders")


def test_a_blocking_cluster_can_be_stopped_in_the_middle() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.stop()
        with pytest.raises(RuntimeError, match="has been stopped"):
            cluster.start(1)


def delivered(producer: Producer, topic: str) -> KafkaError | None:
    """What became of one record."""
    outcomes: list[KafkaError | None] = []
    producer.produce(topic, b"value", on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(60) == 0
    [outcome] = outcomes
    return outcome


@pytest.mark.parametrize("tls", [False, True])
def test_users_and_acls_count_on_all_nodes_and_for_nodes_that_come_back(tls: bool) -> None:
    users = {"alice": "alice-secret", "bob": "bob-secret"}
    may = {"alice": ["all topic orders"]}
    security = Security(users, acls=may, super_users=["bob"], tls=tls)
    with Cluster(nodes=3, overrides=REPLICATED, security=security) as cluster:
        settings = cluster.client_settings("alice")
        assert settings.security_protocol == ("SASL_SSL" if tls else "SASL_PLAINTEXT")
        producer = Producer(settings.confluent)
        assert delivered(producer, "orders") is None
        before = cluster.leader("orders")
        cluster.kill(before)
        assert delivered(producer, "orders") is None
        cluster.start(before)
        cluster.wait_until_in_sync("orders")
        refused = delivered(producer, "others")
        assert refused is not None
        assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        for node_id in cluster.node_ids:
            admin = AdminClient({**settings.confluent, "bootstrap.servers": cluster.address(node_id)})
            assert set(admin.list_topics(timeout=60).topics) == {"orders"}


async def test_controllers_apart_from_brokers_are_told_of_users_too() -> None:
    async with Cluster(brokers=1, controllers=1, security=Security({"alice": "secret"})) as cluster:
        settings = cluster.client_settings("alice")
        async with AIOKafkaProducer(**settings.python) as producer:
            assert (await producer.send_and_wait("events", b"hello")).offset == 0
        assert settings.bootstrap_servers == cluster.bootstrap_servers
