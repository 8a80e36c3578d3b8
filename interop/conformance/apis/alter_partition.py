"""AlterPartition: the leader of a partition asks for other in-sync replicas."""

from __future__ import annotations

from interop.conformance.brokers import (
    ELSEWHERE,
    broker_of,
    leave,
    registered,
    topic_on,
    unfenced,
    uuid_of,
)
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)


def asking(
    talk: Talk,
    epoch: int,
    topic_id: bytes,
    isr: dict[int, int],
    *,
    partition: int = 0,
    leader_epoch: int = 0,
    partition_epoch: int = 0,
) -> AlterPartitionRequest:
    members = [BrokerState(broker_id=broker, broker_epoch=known) for broker, known in isr.items()]
    data = AlterPartitionRequestPartitionData(
        partition_index=partition,
        leader_epoch=leader_epoch,
        new_isr=list(isr) if talk.version < 3 else [],
        new_isr_with_epochs=members if talk.version >= 3 else [],
        partition_epoch=partition_epoch,
    )
    topic = AlterPartitionRequestTopicData(topic_id=topic_id, partitions=[data])
    return AlterPartitionRequest(broker_id=broker_of(talk), broker_epoch=epoch, topics=[topic])


@conversation(settings=ELSEWHERE)
def the_leader_of_a_partition_changes_who_is_in_sync(talk: Talk) -> None:
    controllers = talk.controllers()
    own = broker_of(talk)
    epoch = unfenced(talk, controllers)
    topic_id = topic_on(talk, own, 1)
    controllers.ask(asking(talk, epoch, topic_id, {own: epoch}))
    controllers.ask(asking(talk, epoch, topic_id, {own: epoch}), E.INVALID_UPDATE_VERSION)
    controllers.ask(asking(talk, epoch, topic_id, {own: epoch, 1: -1}, partition_epoch=1))
    leave(talk, controllers, epoch)


@conversation(settings=ELSEWHERE)
def changes_that_cannot_be_are_refused(talk: Talk) -> None:
    controllers = talk.controllers()
    own = broker_of(talk)
    epoch = unfenced(talk, controllers)
    topic_id = topic_on(talk, own, 1)
    for request, error in (
        (asking(talk, epoch, uuid_of(talk, "unknown"), {own: epoch}), E.UNKNOWN_TOPIC_ID),
        (asking(talk, epoch, topic_id, {own: epoch}, partition=9), E.UNKNOWN_TOPIC_OR_PARTITION),
        (asking(talk, epoch, topic_id, {own: epoch}, leader_epoch=7), E.NOT_CONTROLLER),
        (asking(talk, epoch, topic_id, {own: epoch}, partition_epoch=7), E.NOT_CONTROLLER),
        (asking(talk, epoch, topic_id, {1: -1}), E.INVALID_REQUEST),
        (asking(talk, epoch, topic_id, {own: epoch, 3_000_000: -1}), E.INVALID_REQUEST),
        (asking(talk, epoch - 1, topic_id, {own: epoch}), E.STALE_BROKER_EPOCH),
    ):
        controllers.ask(request, error)
    leave(talk, controllers, epoch)


@conversation(settings=ELSEWHERE)
def a_partition_that_another_leads_is_not_changed(talk: Talk) -> None:
    controllers = talk.controllers()
    topic_id = topic_on(talk, 1)
    epoch = registered(talk, controllers)
    controllers.ask(asking(talk, epoch, topic_id, {1: -1}), E.INVALID_REQUEST)
