"""BeginQuorumEpoch: a replica makes itself known as the leader of an epoch that is over already."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestPartitionData,
    BeginQuorumEpochRequestTopicData,
    LeaderEndpoint,
)


def asking(epoch: int, cluster_id: str | None = None) -> BeginQuorumEpochRequest:
    partition = BeginQuorumEpochRequestPartitionData(partition_index=0, leader_id=9, leader_epoch=epoch)
    topic = BeginQuorumEpochRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    return BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=1,
        topics=[topic],
        leader_endpoints=[LeaderEndpoint(name="CONTROLLER", host="elsewhere", port=9093)],
    )


@conversation
def another_cluster(talk: Talk) -> None:
    talk.controllers().ask(asking(1, "another"), E.INCONSISTENT_CLUSTER_ID)


@conversation
def an_epoch_that_is_over(talk: Talk) -> None:
    talk.controllers().ask(asking(talk.quorum_epoch() - 1), E.FENCED_LEADER_EPOCH)
