"""EndQuorumEpoch: a replica of the metadata log resigns from an epoch that is over."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartitionData,
    EndQuorumEpochRequestTopicData,
    LeaderEndpoint,
)


def asking(epoch: int, cluster_id: str | None = None) -> EndQuorumEpochRequest:
    partition = EndQuorumEpochRequestPartitionData(partition_index=0, leader_id=9, leader_epoch=epoch)
    topic = EndQuorumEpochRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    return EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[topic],
        leader_endpoints=[LeaderEndpoint(name="CONTROLLER", host="elsewhere", port=9093)],
    )


@conversation
def another_cluster(talk: Talk) -> None:
    talk.controllers().ask(asking(1, "another"), E.INCONSISTENT_CLUSTER_ID)


@conversation
def an_epoch_that_is_over(talk: Talk) -> None:
    talk.controllers().ask(asking(talk.quorum_epoch() - 1), E.FENCED_LEADER_EPOCH)
