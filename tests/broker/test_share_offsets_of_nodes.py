"""Where a share group starts reading is asked of every broker, if topics are named."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.testing.user import User
from tests.apis.share_members import altered, described, offsets_in
from tests.broker.test_replication_of_nodes import QUICK_FETCHES
from tests.support.clusters import Cluster

SETTINGS = {
    **QUICK_FETCHES,
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
NODES = (1, 2, 3)
NONE = ErrorCode.NONE


async def coordinator_of_groups(user: User) -> int:
    """The broker that coordinates group g."""
    while True:
        answer = await user.send(FindCoordinatorRequest(coordinator_keys=["g"], key_type=0), 6)
        [found] = answer.coordinators
        if found.error_code == NONE:
            node_id: int = found.node_id
            return node_id


async def test_brokers_that_coordinate_no_group_answer_for_named_topics_as_the_coordinator_does() -> None:
    cluster = Cluster(len(NODES), overrides=SETTINGS)
    async with cluster.running(*NODES):
        async with cluster.user_of(1) as user:
            await user.create_topic("t", 2)
            coordinator = await coordinator_of_groups(user)
        async with cluster.user_of(coordinator) as user:
            while (await altered(user, {"t": {0: 0}})).error_code != NONE:
                pass  # the coordinator is still coming
        await cluster.agree(NODES)
        for node_id in NODES:
            async with cluster.user_of(node_id) as user:
                assert offsets_in(await described(user, {"t": [0, 1], "u": [0]})) == {
                    ("t", 0): (0, 0, NONE),
                    ("t", 1): (-1, -1, NONE),
                    ("u", 0): (-1, -1, NONE),
                }
                unknown = await described(user, {"t": [0]}, group_id="nobody's")
                assert (unknown.error_code, offsets_in(unknown)) == (NONE, {("t", 0): (-1, -1, NONE)})
                every_topic = await described(user)
                expected = NONE if node_id == coordinator else ErrorCode.NOT_COORDINATOR
                assert every_topic.error_code == expected
