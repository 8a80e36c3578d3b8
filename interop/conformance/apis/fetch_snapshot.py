"""FetchSnapshot: replicas of the metadata log ask for snapshots.

A request without topics, which ends Apache Kafka's controller (CVE-2026-83525), is not asked here. Nor is one
that has an error for the snapshot alone: Apache Kafka 4.3.1 cannot write that answer, and says
UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestTopicSnapshot,
    SnapshotId,
)

METADATA = "__cluster_metadata"


def asking(epoch: int, cluster_id: str) -> FetchSnapshotRequest:
    partition = FetchSnapshotRequestPartitionSnapshot(
        partition=0,
        current_leader_epoch=epoch,
        snapshot_id=SnapshotId(end_offset=1_000_000, epoch=1),
        position=0,
    )
    topic = FetchSnapshotRequestTopicSnapshot(name=METADATA, partitions=[partition])
    return FetchSnapshotRequest(cluster_id=cluster_id, replica_id=3_000_000, topics=[topic])


@conversation
def another_cluster(talk: Talk) -> None:
    talk.controllers().ask(asking(1, "another"), E.INCONSISTENT_CLUSTER_ID)
