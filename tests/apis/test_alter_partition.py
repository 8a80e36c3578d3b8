"""AlterPartition (56): a leader elsewhere asks for other in-sync replicas."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.alter_partition import alter_partition
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import alter_partition as altering
from pykafka_broker.protocol.messages import create_topics as creating
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import every
from tests.support.controllers import heartbeat, unfenced

UNKNOWN = b"\x07" * 16


def change(
    partition: int, isr: dict[int, int], version: int, *, leader_epoch: int = 0
) -> altering.AlterPartitionRequestPartitionData:
    members = [altering.BrokerState(broker_id=one, broker_epoch=epoch) for one, epoch in isr.items()]
    return altering.AlterPartitionRequestPartitionData(
        partition_index=partition,
        leader_epoch=leader_epoch,
        new_isr=list(isr) if version < 3 else [],
        new_isr_with_epochs=members if version >= 3 else [],
        partition_epoch=0,
    )


def asking(
    epoch: int, topics: dict[bytes, list[altering.AlterPartitionRequestPartitionData]]
) -> altering.AlterPartitionRequest:
    return altering.AlterPartitionRequest(
        broker_id=2,
        broker_epoch=epoch,
        topics=[
            altering.AlterPartitionRequestTopicData(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ],
    )


@pytest.mark.parametrize("version", every(alter_partition))
async def test_the_leader_of_a_partition_changes_who_is_in_sync(
    combined: Home, controllers: User, version: int
) -> None:
    epoch = await unfenced(controllers, combined)
    assignment = creating.CreatableReplicaAssignment(partition_index=0, broker_ids=[2, 1])
    topic = creating.CreatableTopic(
        name="orders", num_partitions=-1, replication_factor=-1, assignments=[assignment], configs=[]
    )
    created = await controllers.send(creating.CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
    [orders] = [one.topic_id for one in created.topics]

    answer = await controllers.send(
        asking(epoch, {orders: [change(0, {2: epoch}, version), change(9, {2: epoch}, version)]}), version
    )

    assert answer.error_code == 0
    [answered] = answer.topics
    first, second = answered.partitions
    assert (first.error_code, first.leader_id, first.isr, first.partition_epoch) == (0, 2, [2], 1)
    assert (second.partition_index, second.error_code) == (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert combined.broker.node.image.topics["orders"].partitions[0].isr == (2,)
    fenced = await controllers.send(asking(epoch, {UNKNOWN: [change(0, {2: epoch}, version)]}), version)
    assert fenced.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    # Or else this node's broker would wait for it when it stops.
    await controllers.send(heartbeat(epoch, epoch, want_fence=True), 2)


async def test_a_broker_of_an_earlier_life_is_refused(combined: Home, controllers: User) -> None:
    epoch = await unfenced(controllers, combined)

    answer = await controllers.send(asking(epoch + 1, {UNKNOWN: []}), 3)

    assert answer == altering.AlterPartitionResponse(error_code=int(ErrorCode.STALE_BROKER_EPOCH), topics=[])
