"""Brokers with two directories each, of which one fails: its partitions go on elsewhere, the others stay."""

from __future__ import annotations

import errno
import os

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.testing.home import until
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.broker.test_isr_of_nodes import isr_is
from tests.broker.test_replication_of_nodes import (
    QUICK_FETCHES,
    agree,
    create,
    leader_among,
    log_of,
    produce,
    segments,
)
from tests.support.clusters import Cluster

TOPICS = ("orders", "clicks")


async def created(cluster: Cluster) -> None:
    """Both topics, led by broker 1, in a directory each: not in that of the metadata is `orders`."""
    for topic in TOPICS:
        await create(cluster, topic, [[1, 2, 3]], {"min.insync.replicas": "2"})
    for node_id in (1, 2, 3):
        assert {directory(cluster, node_id, topic) for topic in TOPICS} == {"/a", "/b"}


def directory(cluster: Cluster, node_id: int, topic: str) -> str:
    return os.path.dirname(log_of(cluster, node_id, topic).state.identity.directory)


def other_than_metadata(cluster: Cluster, node_id: int) -> tuple[str, str, str]:
    """The directory that has no metadata, the topic in it, and the topic in the other."""
    kept = cluster.broker(node_id).node.logs.dirs.metadata.path
    lost, rest = sorted(TOPICS, key=lambda topic: directory(cluster, node_id, topic) == kept)
    return directory(cluster, node_id, lost), lost, rest


def fill(files: MemoryFiles, *topics: str) -> None:
    """Leave room for metadata alone, whose records are small."""
    for topic in topics:
        files.fail("pwrite", errno.ENOSPC, path=f"/{topic}-0/", times=-1)


async def test_a_leader_whose_directory_fails_leaves_its_partitions_to_those_in_sync() -> None:
    cluster = Cluster(3, overrides=QUICK_FETCHES, data_dir="/a,/b")
    async with cluster.running():
        await created(cluster)
        path, lost, rest = other_than_metadata(cluster, 1)
        async with cluster.user_of(1) as user:
            for topic in TOPICS:
                await produce(user, b"one", topic=topic)
            cluster.homes[1].files.fail("pwrite", errno.EIO, path=f"{path}/{lost}", times=-1)
            refused = await user.try_to_produce(lost, b"refused", acks=-1)
            assert ErrorCode(refused.error_code) is ErrorCode.KAFKA_STORAGE_ERROR

            leader = await leader_among(cluster, 2, 3, topic=lost)
            assert await leader_among(cluster, 1, topic=rest) == 1, "its other directory serves on"
            await produce(user, b"two", topic=rest)
        async with cluster.user_of(leader) as user:
            await produce(user, b"two", topic=lost)
        await isr_is(cluster, leader, 2, 3, topic=lost)

        await cluster.broker(1).stop()
        cluster.homes[1].files.heal()
        await cluster.homes[1].new_broker().start()
        await isr_is(cluster, leader, 1, 2, 3, topic=lost)
        await agree(cluster, 1, 2, 3, topic=lost)
        assert segments(cluster, 1, lost) == segments(cluster, leader, lost)


async def test_a_follower_whose_directory_fails_leaves_the_isr_of_its_partitions_alone() -> None:
    cluster = Cluster(3, overrides=QUICK_FETCHES, data_dir="/a,/b")
    async with cluster.running():
        await created(cluster)
        path, lost, rest = other_than_metadata(cluster, 3)
        cluster.homes[3].files.fail("pwrite", errno.EIO, path=f"{path}/{lost}", times=-1)
        async with cluster.user_of(1) as user:
            await produce(user, b"one", topic=lost)
            await isr_is(cluster, 1, 1, 2, topic=lost)
            await produce(user, b"one", topic=rest)
        await agree(cluster, 1, 2, 3, topic=rest)
        await until(lambda: cluster.broker(1).node.image.topics[rest].partitions[0].isr == (1, 2, 3))


async def test_a_node_whose_disk_is_full_leaves_its_partitions_to_the_others_until_there_is_room() -> None:
    cluster = Cluster(3, overrides=QUICK_FETCHES)
    async with cluster.running():
        await create(cluster, "orders", [[1, 2, 3]], {"min.insync.replicas": "2"})
        await create(cluster, "clicks", [[2, 1, 3]], {"min.insync.replicas": "2"})
        files, log_dir = cluster.homes[1].files, cluster.broker(1).node.logs.dirs.of_partitions[0]
        async with cluster.user_of(1) as user:
            await produce(user, b"one")
            fill(files, *TOPICS)
            refused = await user.try_to_produce("orders", b"refused")
            assert ErrorCode(refused.error_code) is ErrorCode.KAFKA_STORAGE_ERROR
            leader = await leader_among(cluster, 2, 3)
        async with cluster.user_of(leader) as user:
            await produce(user, b"two")
        async with cluster.user_of(2) as user:
            await produce(user, b"one", topic="clicks")
        await isr_is(cluster, 2, 2, 3)
        await isr_is(cluster, 2, 2, 3, topic="clicks")

        files.heal()
        log_dir.trial_due_ms = 0  # it would be in ten seconds
        for topic in TOPICS:
            await isr_is(cluster, 2, 1, 2, 3, topic=topic)
            await agree(cluster, 1, 2, 3, topic=topic)
            assert segments(cluster, 1, topic) == segments(cluster, 2, topic)


async def test_the_last_replica_in_sync_serves_on_with_a_full_disk() -> None:
    cluster = Cluster(1, brokers=1, overrides=QUICK_FETCHES)
    async with cluster.running():
        await create(cluster, "orders", [[1, 2]])
        async with cluster.user_of(1) as user:
            await produce(user, b"one")
        await agree(cluster, 1, 2)
        for node_id in (1, 2):
            fill(cluster.homes[node_id].files, "orders")
        async with cluster.user_of(1) as user:
            refused = await user.try_to_produce("orders", b"refused")
            assert ErrorCode(refused.error_code) is ErrorCode.KAFKA_STORAGE_ERROR
        assert await leader_among(cluster, 2) == 2
        async with cluster.user_of(2) as user:
            for _ in range(3):
                refused = await user.try_to_produce("orders", b"refused")
                assert ErrorCode(refused.error_code) is ErrorCode.KAFKA_STORAGE_ERROR
            assert await leader_among(cluster, 1, 2) == 2
            assert await user.values("orders") == [b"one"]
