"""Fetch on a listener of controllers: replicas of the metadata log, and what is no place in that log."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import ANY, E, Talk
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

METADATA_ID = bytes(15) + b"\x01"


def replicating(
    epoch: int, offset: int = 0, last_epoch: int = 0, *, cluster_id: str | None = None
) -> FetchRequest:
    """The Fetch of an observer of the metadata log."""
    partition = FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        partition_max_bytes=0,
    )
    topic = FetchTopic(topic_id=METADATA_ID, partitions=[partition])
    return FetchRequest(cluster_id=cluster_id, max_wait_ms=0, min_bytes=0, topics=[topic])


@conversation("13+")
def a_listener_of_controllers_fences_epochs_of_the_metadata_log(talk: Talk) -> None:
    controllers = talk.controllers()
    epoch = talk.quorum_epoch()
    controllers.ask(replicating(epoch - 1), E.FENCED_LEADER_EPOCH)
    controllers.ask(replicating(epoch + 1_000), E.UNKNOWN_LEADER_EPOCH)


@conversation("13+")
def a_listener_of_controllers_refuses_what_cannot_be_a_place_in_the_metadata_log(talk: Talk) -> None:
    controllers = talk.controllers()
    epoch = talk.quorum_epoch()
    controllers.ask(replicating(epoch, -1), E.INVALID_REQUEST)
    controllers.ask(replicating(epoch, 0, epoch + 1), E.INVALID_REQUEST)
    controllers.ask(replicating(epoch, cluster_id="another"), E.INCONSISTENT_CLUSTER_ID)


@conversation
def a_listener_of_controllers_serves_the_metadata_log_alone(talk: Talk) -> None:
    topic = talk.topic()
    wanted = FetchTopic(
        topic=topic.name if talk.version < 13 else "",
        topic_id=topic.id if talk.version >= 13 else bytes(16),
        partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)],
    )
    talk.controllers().ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[wanted]), ANY)
