"""Topics whose partitions are on three brokers: followers have what their leader has, byte by byte."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

import pytest

from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import create_topics as creation
from pykafka_broker.testing.home import until
from pykafka_broker.testing.user import User
from tests.log.logs import NOW, batch, values
from tests.support.clusters import Cluster

pytestmark = pytest.mark.acknowledged

QUICK_FETCHES = {"replica.fetch.wait.max.ms": "100", "replica.fetch.backoff.ms": "100"}


async def create(
    cluster: Cluster, name: str, replicas: Sequence[Sequence[int]], configs: Mapping[str, str] | None = None
) -> None:
    """Create a topic with these replicas of each partition; return when all brokers hold and show theirs."""
    topic = creation.CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            creation.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in enumerate(replicas)
        ],
        configs=[creation.CreatableTopicConfig(name=k, value=v) for k, v in (configs or {}).items()],
    )
    async with cluster.user_of(replicas[0][0]) as user:
        answer = await user.send(creation.CreateTopicsRequest(topics=[topic]), 7)
        assert [one.error_code for one in answer.topics] == [0]
    await until(
        lambda: all(
            cluster.broker(node_id).node.logs.get(name, index) is not None
            and cluster.broker(node_id).node.image.partition(name, index) is not None
            for index, brokers in enumerate(replicas)
            for node_id in brokers
        )
    )


def log_of(cluster: Cluster, node_id: int, topic: str = "orders") -> PartitionLog:
    log = cluster.broker(node_id).node.logs.get(topic, 0)
    assert log is not None
    return log


def segments(cluster: Cluster, node_id: int, topic: str = "orders") -> dict[str, bytes]:
    """The bytes of each segment of partition 0, by the name of its file."""
    files = cluster.homes[node_id].files
    return {
        os.path.basename(segment.path): bytes(files.read_file(segment.path + ".log"))[: segment.size]
        for segment in log_of(cluster, node_id, topic).state.segments
    }


async def agree(cluster: Cluster, *node_ids: int, topic: str = "orders") -> None:
    """Return when these nodes' logs end, and are committed, at the same offset."""
    first = log_of(cluster, node_ids[0], topic).state

    def is_same() -> bool:
        ends = {
            (log_of(cluster, n, topic).state.log_end_offset, log_of(cluster, n, topic).state.high_watermark)
            for n in node_ids
        }
        return ends == {(first.log_end_offset, first.log_end_offset)}

    await until(is_same)


async def leader_among(cluster: Cluster, *node_ids: int, topic: str = "orders") -> int:
    """The broker that leads partition 0, once all of these say that it is one of them."""
    leaders: set[int] = set()

    def is_known() -> bool:
        leaders.clear()
        for node_id in node_ids:
            registration = cluster.broker(node_id).node.image.partition(topic, 0)
            leaders.add(-1 if registration is None else registration.leader)
        return len(leaders) == 1 and leaders <= set(node_ids)

    await until(is_known)
    return leaders.pop()


async def produce(user: User, *values: bytes, topic: str = "orders") -> None:
    """Produce with acks=all, again while the leader is moving."""
    async with asyncio.timeout(30):
        while error := ErrorCode((await user.try_to_produce(topic, *values, acks=-1)).error_code):
            assert error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_three_logs_are_identical_and_a_follower_goes_on_when_the_leader_stops() -> None:
    cluster = Cluster(3, overrides=QUICK_FETCHES)
    async with cluster.running():
        await create(cluster, "orders", [[1, 2, 3]], {"segment.bytes": "1048576"})
        async with cluster.user_of(1) as user:
            for number in range(40):
                await produce(user, *[b"%d-%d" % (number, n) + b"x" * 1000 for n in range(50)])
        await agree(cluster, 1, 2, 3)
        assert len(segments(cluster, 1)) > 1
        assert segments(cluster, 1) == segments(cluster, 2) == segments(cluster, 3)

        await cluster.broker(1).stop()
        leader = await leader_among(cluster, 2, 3)
        async with cluster.user_of(leader) as user:
            await produce(user, b"after the stop")
        await agree(cluster, 2, 3)

        await cluster.homes[1].new_broker().start()
        await agree(cluster, leader, 1, 2, 3)
        assert segments(cluster, 1) == segments(cluster, 2) == segments(cluster, 3)
        assert (
            log_of(cluster, 1).state.epochs.entries
            == log_of(cluster, 2).state.epochs.entries
            == log_of(cluster, 3).state.epochs.entries
        )


@pytest.mark.asyncio
async def test_a_leader_that_was_killed_with_records_of_its_own_gives_them_up_and_catches_up() -> None:
    cluster = Cluster(1, brokers=3, overrides=QUICK_FETCHES)
    async with cluster.running():
        await create(cluster, "orders", [[2, 3, 4]])
        async with cluster.user_of(2) as user:
            await produce(user, b"committed")
        await agree(cluster, 2, 3, 4)

        # The disk as a kill leaves it that comes before any follower has fetched.
        led = log_of(cluster, 2)
        led.writer.append(batch(b"lost"), leader_epoch=led.state.latest_epoch, now_ms=NOW)
        killed = cluster.homes[2].killed()
        led.trimmer.truncate_to(1)
        await cluster.broker(2).stop()
        leader = await leader_among(cluster, 3, 4)
        async with cluster.user_of(leader) as user:
            await produce(user, b"kept", b"kept too")
            await produce(user, b"and this")

        cluster.homes[2] = killed
        await killed.new_broker().start()
        await agree(cluster, leader, 2, 3, 4)
        assert segments(cluster, 2) == segments(cluster, 3) == segments(cluster, 4)
        assert values(log_of(cluster, 2)) == [b"committed", b"kept", b"kept too", b"and this"]
        await until(
            lambda: {2, 3, 4} == set(cluster.broker(leader).node.image.partition("orders", 0).isr)  # type: ignore[union-attr]
        )


@pytest.mark.asyncio
async def test_a_topic_that_is_deleted_and_created_anew_is_followed_anew() -> None:
    cluster = Cluster(1, brokers=2, overrides=QUICK_FETCHES)
    async with cluster.running():
        await create(cluster, "orders", [[2, 3]])
        async with cluster.user_of(2) as user:
            await produce(user, b"old", b"older")
            await agree(cluster, 2, 3)
            await user.delete_topic("orders")
            await until(lambda: not any(cluster.broker(n).node.logs.get("orders", 0) for n in (2, 3)))
            await create(cluster, "orders", [[2, 3]])
            await produce(user, b"new")
        await agree(cluster, 2, 3)
        assert values(log_of(cluster, 3)) == [b"new"]
