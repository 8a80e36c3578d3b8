"""In-sync replicas of several brokers: who leaves and comes back, and what producers and consumers see."""

from __future__ import annotations

import asyncio
from typing import Any

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from pykafka_broker.replication.replica_fetchers import ReplicaFetchers
from pykafka_broker.testing.home import until
from pykafka_broker.testing.user import User
from tests.apis.asking import fetching_of, partitions_of, wanting
from tests.broker.test_replication_of_nodes import QUICK_FETCHES, agree, create, log_of, produce
from tests.support.clusters import Cluster

LAG = {"replica.lag.time.max.ms": "1500"}


def isr_at(cluster: Cluster, node_id: int, topic: str = "orders") -> tuple[int, ...]:
    registration = cluster.broker(node_id).node.image.partition(topic, 0)
    assert registration is not None
    return tuple(sorted(registration.isr))


async def isr_is(cluster: Cluster, node_id: int, *isr: int, topic: str = "orders") -> None:
    await until(lambda: isr_at(cluster, node_id, topic) == isr)


async def error_of_producing(user: User) -> ErrorCode:
    answer = await user.try_to_produce("orders", b"more", acks=-1)
    return ErrorCode(answer.error_code)


async def test_a_follower_that_stops_leaves_the_isr_and_joins_again_when_it_has_caught_up() -> None:
    cluster = Cluster(3, overrides={**QUICK_FETCHES, **LAG})
    async with cluster.running():
        await create(cluster, "orders", [[1, 2, 3]], {"min.insync.replicas": "2"})
        async with cluster.user_of(1) as user:
            await produce(user, b"one")
            await cluster.broker(3).stop()
            await isr_is(cluster, 1, 1, 2)
            await produce(user, b"two")

            await cluster.homes[3].new_broker().start()

            await isr_is(cluster, 1, 1, 2, 3)
            await agree(cluster, 1, 2, 3)


async def test_a_follower_that_does_not_fetch_leaves_the_isr_and_producers_are_told() -> None:
    cluster = Cluster(2, overrides={**QUICK_FETCHES, **LAG})
    async with cluster.running():
        await create(cluster, "orders", [[1, 2]], {"min.insync.replicas": "2"})
        async with cluster.user_of(1) as user:
            await produce(user, b"one")
            await agree(cluster, 1, 2)
            roles = cluster.broker(2).node.broker.replicas._roles
            [fetchers] = [one for one in roles if isinstance(one, ReplicaFetchers)]
            await fetchers.stop()
            waiting = asyncio.ensure_future(user.try_to_produce("orders", b"two", timeout_ms=1_000))
            await isr_is(cluster, 1, 1)
            assert log_of(cluster, 1).state.high_watermark == 1, "too few replicas are in sync"
            answer = await waiting
            assert ErrorCode(answer.error_code) is ErrorCode.REQUEST_TIMED_OUT
            assert cluster.broker(1).node.broker.purgatory.produces.expired == 1
            assert answer.base_offset == 1  # it is in the log of the leader
            assert await error_of_producing(user) is ErrorCode.NOT_ENOUGH_REPLICAS


async def test_a_partition_is_reassigned_to_another_broker_and_leaves_the_first() -> None:
    cluster = Cluster(3, overrides=QUICK_FETCHES)
    async with cluster.running():
        await create(cluster, "orders", [[1, 2]])
        async with cluster.user_of(1) as user:
            await produce(user, b"one", b"two")
            wanted = ReassignablePartition(partition_index=0, replicas=[3, 2])
            request = AlterPartitionReassignmentsRequest(
                topics=[ReassignableTopic(name="orders", partitions=[wanted])]
            )
            answer = await user.send(request, 1)
            assert answer.responses[0].partitions[0].error_code == 0

            await isr_is(cluster, 1, 2, 3)
            await until(lambda: cluster.broker(1).node.logs.get("orders", 0) is None)
        totals = [cluster.broker(number).node.broker.replicas.counts.total() for number in (1, 2, 3)]
        assert sum(total.reassignment_bytes_out for total in totals) == totals[2].reassignment_bytes_in
        assert [total.reassignment_bytes_in > 0 for total in totals] == [False, False, True]
        await agree(cluster, 2, 3)
        assert log_of(cluster, 3).state.log_end_offset == 2


async def committed(user: User, topic_id: bytes, offset: int) -> Any:
    [answer] = partitions_of(await user.send(fetching_of(wanting(topic_id, offset)), 17))
    return answer


async def test_a_consumer_reads_from_a_follower_what_is_committed() -> None:
    cluster = Cluster(2, overrides=QUICK_FETCHES)
    async with cluster.running():
        await create(cluster, "orders", [[1, 2]])
        async with cluster.user_of(1) as user, cluster.user_of(2) as beside:
            await produce(user, b"one")
            await agree(cluster, 1, 2)
            topic_id = cluster.broker(2).node.image.topics["orders"].topic_id
            answer = await committed(beside, topic_id, 0)
            assert (answer.error_code, answer.high_watermark) == (0, 1)
            assert len(answer.records) > 0
