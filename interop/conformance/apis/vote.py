"""Vote: a replica of the metadata log asks for a vote, in an epoch that does not come."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.vote import VoteRequest, VoteRequestPartitionData, VoteRequestTopicData


def asking(epoch: int, cluster_id: str | None = None) -> VoteRequest:
    partition = VoteRequestPartitionData(
        partition_index=0, replica_epoch=epoch, replica_id=9, last_offset_epoch=0, last_offset=0
    )
    topic = VoteRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    return VoteRequest(cluster_id=cluster_id, voter_id=1, topics=[topic])


@conversation
def another_cluster(talk: Talk) -> None:
    talk.controllers().ask(asking(1, "another"), E.INCONSISTENT_CLUSTER_ID)
