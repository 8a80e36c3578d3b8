"""A partition whose only replica in sync is away: what clients see before and after an unclean election."""

from __future__ import annotations

from pykafka_broker.cluster.image import PartitionRegistration
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import fetch as fetching
from pykafka_broker.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from pykafka_broker.testing.home import until
from pykafka_broker.testing.user import User
from tests.broker.test_isr_of_nodes import isr_is
from tests.broker.test_replication_of_nodes import QUICK_FETCHES, agree, create, log_of, produce, segments
from tests.log.logs import values
from tests.support.clusters import Cluster

UNCLEAN = 1


async def elected_uncleanly(user: User) -> ErrorCode:
    wanted = TopicPartitions(topic="orders", partitions=[0])
    request = ElectLeadersRequest(election_type=UNCLEAN, topic_partitions=[wanted], timeout_ms=10_000)
    answer: ElectLeadersResponse = await user.send(request, 2)
    return ErrorCode(answer.replica_election_results[0].partition_result[0].error_code)


async def fetched(user: User, offset: int, leader_epoch: int, last_epoch: int) -> fetching.PartitionData:
    """The answer to a consumer that has read up to `offset`, in these epochs."""
    wanted = fetching.FetchPartition(
        partition=0,
        fetch_offset=offset,
        current_leader_epoch=leader_epoch,
        last_fetched_epoch=last_epoch,
        partition_max_bytes=1 << 20,
    )
    topic = fetching.FetchTopic(topic="orders", partitions=[wanted])
    request = fetching.FetchRequest(max_wait_ms=0, min_bytes=1, topics=[topic])
    answer: fetching.FetchResponse = await user.send(request, 12)
    return answer.responses[0].partitions[0]


async def test_an_unclean_election_costs_what_only_the_old_leader_had_and_consumers_are_told() -> None:
    cluster = Cluster(1, brokers=2, overrides=QUICK_FETCHES)
    async with cluster.running():
        await create(cluster, "orders", [[2, 3]])
        async with cluster.user_of(2) as user:
            await produce(user, b"on both")
            await agree(cluster, 2, 3)
            await cluster.broker(3).kill()
            await isr_is(cluster, 2, 2)
            await produce(user, b"only here", b"and this")
            assert [r.value for r in await user.records("orders")] == [b"on both", b"only here", b"and this"]
        old_epoch = log_of(cluster, 2).state.latest_epoch
        await cluster.broker(2).kill()

        await cluster.homes[3].new_broker().start()
        await until(lambda: partition_at(cluster, 3).leader == -1)
        async with cluster.user_of(3) as user:
            described = await user.metadata("orders")
            [partition] = described.topics[0].partitions
            assert ErrorCode(partition.error_code) is ErrorCode.LEADER_NOT_AVAILABLE
            refused = await user.try_to_produce("orders", b"not yet")
            assert ErrorCode(refused.error_code) is ErrorCode.NOT_LEADER_OR_FOLLOWER

            assert await elected_uncleanly(user) is ErrorCode.NONE
            await until(lambda: partition_at(cluster, 3).leader == 3)
            assert partition_at(cluster, 3).isr == (3,)
            new_epoch = partition_at(cluster, 3).leader_epoch
            await produce(user, b"a new life")

            behind = await fetched(user, 3, old_epoch, old_epoch)
            assert ErrorCode(behind.error_code) is ErrorCode.FENCED_LEADER_EPOCH
            diverging = await fetched(user, 3, new_epoch, old_epoch)
            assert ErrorCode(diverging.error_code) is ErrorCode.NONE
            epoch_end = diverging.diverging_epoch
            assert epoch_end is not None and (epoch_end.epoch, epoch_end.end_offset) == (old_epoch, 1)
            beyond = await fetched(user, 3, new_epoch, -1)
            assert ErrorCode(beyond.error_code) is ErrorCode.OFFSET_OUT_OF_RANGE

        await cluster.homes[2].new_broker().start()
        await isr_is(cluster, 3, 2, 3)
        await agree(cluster, 3, 2)
        assert values(log_of(cluster, 2)) == [b"on both", b"a new life"]
        assert segments(cluster, 2) == segments(cluster, 3)


async def test_the_lost_leader_leads_again_with_all_its_records_if_it_is_waited_for() -> None:
    cluster = Cluster(1, brokers=2, overrides=QUICK_FETCHES)
    async with cluster.running():
        await create(cluster, "orders", [[2, 3]])
        async with cluster.user_of(2) as user:
            await cluster.broker(3).kill()
            await isr_is(cluster, 2, 2)
            await produce(user, b"only here")
        await cluster.broker(2).kill()
        await cluster.homes[3].new_broker().start()
        await until(lambda: partition_at(cluster, 3).leader == -1)

        await cluster.homes[2].new_broker().start()
        await isr_is(cluster, 2, 2, 3)
        await agree(cluster, 2, 3)
        assert values(log_of(cluster, 3)) == [b"only here"]


def partition_at(cluster: Cluster, node_id: int) -> PartitionRegistration:
    """What a broker knows of the partition."""
    found = cluster.broker(node_id).node.image.partition("orders", 0)
    assert found is not None
    return found
