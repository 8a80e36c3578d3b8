"""AssignReplicasToDirs: a broker says which of its directories hold its replicas."""

from __future__ import annotations

from interop.conformance.brokers import ELSEWHERE, broker_of, registered, topic_on, uuid_of
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)


def asking(talk: Talk, epoch: int, *topics: tuple[bytes, int]) -> AssignReplicasToDirsRequest:
    data = [
        AssignReplicasToDirsRequestTopicData(
            topic_id=topic_id,
            partitions=[AssignReplicasToDirsRequestPartitionData(partition_index=partition)],
        )
        for topic_id, partition in topics
    ]
    directory = AssignReplicasToDirsRequestDirectoryData(id=uuid_of(talk, "dir"), topics=data)
    return AssignReplicasToDirsRequest(broker_id=broker_of(talk), broker_epoch=epoch, directories=[directory])


@conversation(settings=ELSEWHERE)
def replicas_that_a_broker_does_not_have_are_refused_one_by_one(talk: Talk) -> None:
    controllers = talk.controllers()
    topic_id = topic_on(talk, 1)
    epoch = registered(talk, controllers)
    controllers.ask(
        asking(talk, epoch, (topic_id, 0), (topic_id, 9), (uuid_of(talk, "unknown"), 0)),
        E.NOT_LEADER_OR_FOLLOWER,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_ID,
    )


@conversation(settings=ELSEWHERE)
def an_earlier_life_is_refused(talk: Talk) -> None:
    controllers = talk.controllers()
    epoch = registered(talk, controllers)
    controllers.ask(asking(talk, epoch - 1, (uuid_of(talk, "unknown"), 0)), E.STALE_BROKER_EPOCH)
