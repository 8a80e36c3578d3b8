"""The share coordinator of a cluster moves: what leaders have stored is there on the next broker."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.testing.user import User
from tests.apis.sharing import DONE, GROUP, Sharing, error_of
from tests.broker.test_replication_of_nodes import QUICK_FETCHES
from tests.support.clusters import Cluster

SETTINGS = {
    **QUICK_FETCHES,
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
}
NODES = (1, 2, 3)


async def coordinator_beside(user: User, dead: int = -1) -> int:
    """The broker that coordinates share partitions, once it is another one than `dead`."""
    sharing = Sharing(user, bytes(16))
    while True:
        found = await sharing.find(f"{GROUP}:{'A' * 22}:0")
        if found.error_code == ErrorCode.NONE and found.node_id != dead:
            return found.node_id


async def test_the_state_of_a_killed_coordinator_is_found_by_the_next_one() -> None:
    cluster = Cluster(len(NODES), overrides=SETTINGS)
    async with cluster.running(*NODES):
        async with cluster.user_of(1) as user:
            topic_id = await user.create_topic("orders", 2)
            first = await coordinator_beside(user)
        async with cluster.user_of(first) as user:
            sharing = Sharing(user, topic_id)
            await led(sharing)
            assert await sharing.initialize(0, 1) == {0: DONE, 1: DONE}
            await sharing.read(leader_epoch=4)
            for offset in range(8):
                assert await sharing.write((offset, offset, 2, 1), complete=offset + 1) == {0: DONE}
            stored = await sharing.read(0, 1)
        for other in {*NODES} - {first}:
            async with cluster.user_of(other) as user:
                refused = await Sharing(user, topic_id).read(0)
                assert error_of(refused) == ErrorCode.NOT_COORDINATOR

        await cluster.broker(first).kill()
        async with cluster.user_of(min({*NODES} - {first})) as user:
            second = await coordinator_beside(user, dead=first)
        async with cluster.user_of(second) as user:
            sharing = Sharing(user, topic_id)
            await led(sharing)
            assert await sharing.read(0, 1) == stored
            assert stored[0] == (0, None, 1, 0, [(0, 7, 2, 1)])
            assert error_of(await sharing.write(leader_epoch=3)) == ErrorCode.FENCED_LEADER_EPOCH
            assert await sharing.write((8, 8, 4, 5), leader_epoch=4, complete=9) == {0: DONE}
            assert (await sharing.summary())[0] == (0, None, 1, 4, 0, 9)


async def led(sharing: Sharing) -> None:
    """Wait until the coordinator here serves the topic's state."""
    while error_of(await sharing.delete(0, group="nobody")) != ErrorCode.NONE:
        pass
