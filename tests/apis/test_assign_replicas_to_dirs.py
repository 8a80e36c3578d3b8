"""AssignReplicasToDirs (73): a broker elsewhere says which of its directories hold its replicas."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import assign_replicas_to_dirs as assigning
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.support.controllers import DIRECTORY, heartbeat, unfenced

ANOTHER = b"\x03" * 16
UNKNOWN = b"\x07" * 16


def topic(topic_id: bytes, *partitions: int) -> assigning.AssignReplicasToDirsRequestTopicData:
    return assigning.AssignReplicasToDirsRequestTopicData(
        topic_id=topic_id,
        partitions=[
            assigning.AssignReplicasToDirsRequestPartitionData(partition_index=partition)
            for partition in partitions
        ],
    )


def asking(
    epoch: int, directory: bytes, *topics: assigning.AssignReplicasToDirsRequestTopicData
) -> assigning.AssignReplicasToDirsRequest:
    data = assigning.AssignReplicasToDirsRequestDirectoryData(id=directory, topics=list(topics))
    return assigning.AssignReplicasToDirsRequest(broker_id=2, broker_epoch=epoch, directories=[data])


async def test_each_replica_has_an_outcome_and_those_of_the_broker_are_noted(
    combined: Home, controllers: User
) -> None:
    epoch = await unfenced(controllers, combined, log_dirs=[DIRECTORY, ANOTHER])
    async with await User.connect(combined.broker.bootstrap_servers) as user:
        await user.create_topic("orders", partitions=2)
    orders = combined.broker.node.image.topics["orders"]
    [ours] = [p.partition_id for p in orders.partitions.values() if p.replicas == (2,)]
    request = asking(epoch, ANOTHER, topic(orders.topic_id, ours, 1 - ours, 9), topic(UNKNOWN, 0))

    answer = await controllers.send(request, 0)

    assert answer.error_code == 0
    [directory] = answer.directories
    assert directory.id == ANOTHER
    assert [
        (told.topic_id, [(p.partition_index, ErrorCode(p.error_code)) for p in told.partitions])
        for told in directory.topics
    ] == [
        (
            orders.topic_id,
            [
                (ours, ErrorCode.NONE),
                (1 - ours, ErrorCode.NOT_LEADER_OR_FOLLOWER),
                (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ],
        ),
        (UNKNOWN, [(0, ErrorCode.UNKNOWN_TOPIC_ID)]),
    ]
    assert combined.broker.node.image.topics["orders"].partitions[ours].directories == (ANOTHER,)
    # Or else this node's broker would wait for it when it stops.
    await controllers.send(heartbeat(epoch, epoch, want_fence=True), 2)


async def test_a_broker_of_an_earlier_life_is_refused(combined: Home, controllers: User) -> None:
    epoch = await unfenced(controllers, combined)

    answer = await controllers.send(asking(epoch + 1, DIRECTORY, topic(UNKNOWN, 0)), 0)

    assert answer == assigning.AssignReplicasToDirsResponse(
        error_code=int(ErrorCode.STALE_BROKER_EPOCH), directories=[]
    )
