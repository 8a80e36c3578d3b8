"""The leader of a share partition changes: members are told, the next one goes on from what was stored."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from pykafka_broker.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from pykafka_broker.share.core.in_flight import Delivery
from pykafka_broker.share.core.state import Phase
from pykafka_broker.testing.home import until
from pykafka_broker.testing.user import User
from tests.apis.share_consuming import ACCEPT, RELEASE, Member, acknowledged, acquired, errors_of, values
from tests.apis.share_consuming import partitions_of as shared_partitions_of
from tests.apis.sharing import DONE, GROUP, Sharing, error_of
from tests.broker.test_replication_of_nodes import QUICK_FETCHES, agree, create, leader_among, produce
from tests.broker.test_share_state_of_nodes import coordinator_beside, led
from tests.support.clusters import Cluster

SETTINGS = {
    **QUICK_FETCHES,
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}
#: Node 1 is the controller; these two hold the topic.
LEADER, NEXT = 2, 3
A_MINUTE_MS = 60_000
RECORDS = (b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h")


async def begun(cluster: Cluster) -> bytes:
    """A topic led by `LEADER` and copied by `NEXT`, in which the group begins at offset 0; its id."""
    await create(cluster, "orders", [[LEADER, NEXT]])
    await leader_among(cluster, LEADER, NEXT)
    topic_id: bytes = cluster.broker(LEADER).node.image.topics["orders"].topic_id
    async with cluster.user_of(1) as user:
        coordinator = await coordinator_beside(user)
    async with cluster.user_of(coordinator) as user:
        sharing = Sharing(user, topic_id)
        await led(sharing)
        assert await sharing.initialize(0) == {0: DONE}
    return topic_id


def share_partition_at(cluster: Cluster, node_id: int, topic_id: bytes) -> Any:
    """None if this node does not lead it, or nobody has fetched from it there."""
    return cluster.broker(node_id).node.broker.ports.share_partitions.find(GROUP, topic_id, 0)


def is_loaded(cluster: Cluster, node_id: int, topic_id: bytes) -> bool:
    found = share_partition_at(cluster, node_id, topic_id)
    return found is not None and found.state.phase is Phase.ACTIVE


async def opened(cluster: Cluster, user: User, node_id: int, topic_id: bytes, member_id: str) -> Member:
    """A member with a session at a node that leads, whose share partition has been loaded there."""
    member = Member(user, topic_id, member_id)
    await member.fetch(0)
    await until(partial(is_loaded, cluster, node_id, topic_id))
    return member


async def lead(cluster: Cluster, user: User, *replicas: int) -> None:
    """Have the first of these brokers lead, without stopping another."""
    wanted = ReassignablePartition(partition_index=0, replicas=list(replicas))
    topics = [ReassignableTopic(name="orders", partitions=[wanted])]
    answer = await user.send(AlterPartitionReassignmentsRequest(topics=topics), 1)
    assert answer.responses[0].partitions[0].error_code == 0
    partitions = [TopicPartitions(topic="orders", partitions=[0])]
    request = ElectLeadersRequest(election_type=0, topic_partitions=partitions, timeout_ms=10_000)
    answer = await user.send(request, 2)
    assert answer.replica_election_results[0].partition_result[0].error_code == 0
    await until(
        lambda: all(
            (found := cluster.broker(node_id).node.image.partition("orders", 0))
            and found.leader == replicas[0]
            for node_id in (1, *replicas)
        )
    )


async def test_who_waits_is_told_of_the_next_leader_and_that_one_knows_what_was_acknowledged() -> None:
    cluster = Cluster(1, brokers=2, overrides=SETTINGS)
    async with cluster.running():
        topic_id = await begun(cluster)
        async with (
            cluster.user_of(1) as admin,
            cluster.user_of(LEADER) as user,
            cluster.user_of(LEADER) as beside,
            cluster.user_of(NEXT) as there,
        ):
            ann = await opened(cluster, user, LEADER, topic_id, "ann")
            bob = await opened(cluster, beside, LEADER, topic_id, "bob")
            await produce(user, *RECORDS)
            await agree(cluster, LEADER, NEXT)
            assert acquired(await ann.fetch()) == [(0, 7, 1)]
            assert errors_of(await ann.acknowledge((0, 3, ACCEPT))) == {0: ErrorCode.NONE}
            waiting = asyncio.ensure_future(bob.fetch(max_wait_ms=A_MINUTE_MS))
            await until(lambda: share_partition_at(cluster, LEADER, topic_id).on_advance)

            await lead(cluster, admin, NEXT, LEADER)

            told = await waiting
            assert errors_of(told) == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}
            [partition] = shared_partitions_of(told)
            assert partition.current_leader.leader_id == NEXT
            assert [one.node_id for one in told.node_endpoints] == [NEXT]
            late = await ann.acknowledge((4, 7, ACCEPT))
            assert errors_of(late) == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}, "as Apache Kafka calls it"

            carl = await opened(cluster, there, NEXT, topic_id, "carl")
            answer = await carl.fetch()
            assert values(answer) == [b"e", b"f", b"g", b"h"], "what was accepted does not come again"
            assert acquired(answer) == [(4, 7, 1)], "that it was acquired was not stored"
            answer = await carl.fetch(said={0: [(4, 5, ACCEPT), (6, 7, RELEASE)]}, max_records=1)
            assert acknowledged(answer) == {0: ErrorCode.NONE}

            await lead(cluster, admin, LEADER, NEXT)

            dora = await opened(cluster, user, LEADER, topic_id, "dora")
            answer = await dora.fetch()
            assert (values(answer), acquired(answer)) == ([b"g", b"h"], [(6, 7, 2)])


async def test_a_member_goes_on_at_the_next_leader_when_the_first_is_killed() -> None:
    cluster = Cluster(1, brokers=2, overrides=SETTINGS)
    async with cluster.running():
        topic_id = await begun(cluster)
        async with cluster.user_of(LEADER) as user:
            ann = await opened(cluster, user, LEADER, topic_id, "ann")
            await produce(user, *RECORDS)
            await agree(cluster, LEADER, NEXT)
            assert acquired(await ann.fetch()) == [(0, 7, 1)]
            assert errors_of(await ann.acknowledge((0, 2, ACCEPT))) == {0: ErrorCode.NONE}
            await cluster.broker(LEADER).kill()

        assert await leader_among(cluster, NEXT) == NEXT
        async with cluster.user_of(NEXT) as user:
            bob = await opened(cluster, user, NEXT, topic_id, "bob")
            answer = await bob.fetch()
            assert (values(answer), acquired(answer)) == (list(RECORDS[3:]), [(3, 7, 1)])
            answer = await bob.fetch(said={0: [(3, 7, ACCEPT)]})
            assert (acknowledged(answer), acquired(answer)) == ({0: ErrorCode.NONE}, [])
            stored = await coordinated(cluster, topic_id)
            assert stored[0][3:] == (3, [(3, 7, Delivery.ACKNOWLEDGED.value, 1)])


async def coordinated(cluster: Cluster, topic_id: bytes) -> dict[int, Any]:
    """What the share coordinator, that may have been the killed one, has of the share partition."""
    while True:
        for node_id in (1, NEXT):
            async with cluster.user_of(node_id) as user:
                answer = await Sharing(user, topic_id).read(0)
                if error_of(answer) == ErrorCode.NONE:
                    return answer
