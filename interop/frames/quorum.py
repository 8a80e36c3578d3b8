"""Requests between controllers and brokers. Answers that would break the only voter are refusals."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

from interop.frames.kafka import CLIENT_ID, Kafka
from pykafka_broker.client.core.frames import request_header
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.fields import api_key_of
from pykafka_broker.protocol.messages import add_raft_voter as adding
from pykafka_broker.protocol.messages import allocate_producer_ids as allocating
from pykafka_broker.protocol.messages import alter_partition as altering
from pykafka_broker.protocol.messages import assign_replicas_to_dirs as assigning
from pykafka_broker.protocol.messages import begin_quorum_epoch as beginning
from pykafka_broker.protocol.messages import broker_heartbeat as beating
from pykafka_broker.protocol.messages import broker_registration as registering
from pykafka_broker.protocol.messages import controller_registration as registering_controllers
from pykafka_broker.protocol.messages import describe_quorum as describing
from pykafka_broker.protocol.messages import end_quorum_epoch as ending
from pykafka_broker.protocol.messages import envelope as enveloping
from pykafka_broker.protocol.messages import fetch_snapshot as fetching
from pykafka_broker.protocol.messages import remove_raft_voter as removing
from pykafka_broker.protocol.messages import unregister_broker as unregistering
from pykafka_broker.protocol.messages import update_raft_voter as updating
from pykafka_broker.protocol.messages import vote as voting
from pykafka_broker.protocol.messages.default_principal import DefaultPrincipalData
from pykafka_broker.testing.apache.broker import CLUSTER_ID

METADATA = "__cluster_metadata"
DIRECTORY = bytes(range(16))
INCARNATION = bytes(range(16, 32))
#: A broker that exists only in these requests.
GHOST = 2

#: The feature that a broker must support to be registered.
FEATURES = {
    "metadata.version": (7, 30),
    "kraft.version": (0, 1),
    "transaction.version": (0, 2),
    "group.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
}


class Quorum:
    def __init__(self, controller: Kafka, topic_id: bytes, metadata_folder: Path) -> None:
        self.kafka = controller
        self.topic_id = topic_id
        self.metadata_folder = metadata_folder

    # --- the quorum -----------------------------------------------------------------------------------

    def describe_quorum(self, version: int) -> Any:
        partition = describing.DescribeQuorumRequestPartitionData(partition_index=0)
        topic = describing.DescribeQuorumRequestTopicData(topic_name=METADATA, partitions=[partition])
        return describing.DescribeQuorumRequest(topics=[topic])

    def vote(self, version: int) -> Any:
        partition = voting.VoteRequestPartitionData(
            partition_index=0,
            replica_epoch=1,
            replica_id=GHOST,
            replica_directory_id=DIRECTORY,
            last_offset_epoch=0,
            last_offset=0,
        )
        topic = voting.VoteRequestTopicData(topic_name=METADATA, partitions=[partition])
        return voting.VoteRequest(cluster_id=CLUSTER_ID, voter_id=1, topics=[topic])

    def begin_quorum_epoch(self, version: int) -> Any:
        partition = beginning.BeginQuorumEpochRequestPartitionData(
            partition_index=0, leader_id=GHOST, leader_epoch=0
        )
        topic = beginning.BeginQuorumEpochRequestTopicData(topic_name=METADATA, partitions=[partition])
        return beginning.BeginQuorumEpochRequest(cluster_id=CLUSTER_ID, voter_id=1, topics=[topic])

    def end_quorum_epoch(self, version: int) -> Any:
        partition = ending.EndQuorumEpochRequestPartitionData(
            partition_index=0, leader_id=GHOST, leader_epoch=0
        )
        topic = ending.EndQuorumEpochRequestTopicData(topic_name=METADATA, partitions=[partition])
        return ending.EndQuorumEpochRequest(cluster_id=CLUSTER_ID, topics=[topic])

    def _snapshot_id(self) -> fetching.SnapshotId:
        """The newest snapshot. Of one that is not there Kafka says only that something went wrong: -1."""
        for _ in range(300):
            newest = max(self.metadata_folder.glob("*.checkpoint")).stem
            end_offset, epoch = (int(part) for part in newest.split("-"))
            if end_offset:
                return fetching.SnapshotId(end_offset=end_offset, epoch=epoch)
            time.sleep(0.1)
        raise TimeoutError("the controller takes no snapshot")

    def fetch_snapshot(self, version: int) -> Any:
        partition = fetching.FetchSnapshotRequestPartitionSnapshot(
            partition=0,
            current_leader_epoch=1,
            snapshot_id=self._snapshot_id(),
            position=0,
            replica_directory_id=DIRECTORY,
        )
        topic = fetching.FetchSnapshotRequestTopicSnapshot(name=METADATA, partitions=[partition])
        return fetching.FetchSnapshotRequest(cluster_id=CLUSTER_ID, max_bytes=500, topics=[topic])

    def add_raft_voter(self, version: int) -> Any:
        listener = adding.Listener(name="CONTROLLER", host="127.0.0.1", port=1)
        return adding.AddRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            timeout_ms=1_000,
            voter_id=1,
            voter_directory_id=DIRECTORY,
            listeners=[listener],
        )

    def remove_raft_voter(self, version: int) -> Any:
        return removing.RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID, voter_id=GHOST, voter_directory_id=DIRECTORY
        )

    def update_raft_voter(self, version: int) -> Any:
        return updating.UpdateRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            current_leader_epoch=0,
            voter_id=GHOST,
            voter_directory_id=DIRECTORY,
            listeners=[updating.Listener(name="CONTROLLER", host="127.0.0.1", port=1)],
            kraft_version_feature=updating.KRaftVersionFeature(
                min_supported_version=0, max_supported_version=1
            ),
        )

    # --- brokers and controllers ----------------------------------------------------------------------

    def broker_registration(self, version: int) -> Any:
        features = [
            registering.Feature(name=name, min_supported_version=first, max_supported_version=last)
            for name, (first, last) in FEATURES.items()
        ]
        return registering.BrokerRegistrationRequest(
            broker_id=GHOST,
            cluster_id=CLUSTER_ID,
            incarnation_id=INCARNATION,
            listeners=[registering.Listener(name="PLAINTEXT", host="127.0.0.1", port=1, security_protocol=0)],
            features=features,
            rack="golden-rack",
            log_dirs=[DIRECTORY],
        )

    def _broker_epoch(self) -> int:
        """Register the ghost and return its epoch."""
        epoch: int = self.kafka.call(self.broker_registration(4), 4).broker_epoch
        return epoch

    def broker_heartbeat(self, version: int) -> Any:
        return beating.BrokerHeartbeatRequest(
            broker_id=GHOST,
            broker_epoch=self._broker_epoch(),
            current_metadata_offset=0,
            want_fence=True,
            want_shut_down=False,
        )

    def allocate_producer_ids(self, version: int) -> Any:
        return allocating.AllocateProducerIdsRequest(broker_id=GHOST, broker_epoch=self._broker_epoch())

    def assign_replicas_to_dirs(self, version: int) -> Any:
        partition = assigning.AssignReplicasToDirsRequestPartitionData(partition_index=0)
        topic = assigning.AssignReplicasToDirsRequestTopicData(topic_id=self.topic_id, partitions=[partition])
        directory = assigning.AssignReplicasToDirsRequestDirectoryData(id=DIRECTORY, topics=[topic])
        return assigning.AssignReplicasToDirsRequest(
            broker_id=GHOST, broker_epoch=self._broker_epoch(), directories=[directory]
        )

    def alter_partition(self, version: int) -> Any:
        partition = altering.AlterPartitionRequestPartitionData(
            partition_index=0,
            leader_epoch=0,
            new_isr=[1],
            new_isr_with_epochs=[altering.BrokerState(broker_id=1)],
            partition_epoch=0,
        )
        topic = altering.AlterPartitionRequestTopicData(topic_id=self.topic_id, partitions=[partition])
        return altering.AlterPartitionRequest(
            broker_id=GHOST, broker_epoch=self._broker_epoch(), topics=[topic]
        )

    def unregister_broker(self, version: int) -> Any:
        self._broker_epoch()
        return unregistering.UnregisterBrokerRequest(broker_id=GHOST)

    def controller_registration(self, version: int) -> Any:
        feature = registering_controllers.Feature(
            name="metadata.version", min_supported_version=7, max_supported_version=30
        )
        listener = registering_controllers.Listener(
            name="CONTROLLER", host="127.0.0.1", port=1, security_protocol=0
        )
        return registering_controllers.ControllerRegistrationRequest(
            controller_id=GHOST,
            incarnation_id=INCARNATION,
            zk_migration_ready=False,
            listeners=[listener],
            features=[feature],
        )

    def envelope(self, version: int) -> Any:
        """A forwarded UnregisterBroker of a broker that is not there."""
        inner = unregistering.UnregisterBrokerRequest(broker_id=77)
        header = request_header(api_key_of(inner), 0, 1, CLIENT_ID)
        principal = DefaultPrincipalData(type="User", name="ANONYMOUS", token_authenticated=False)
        return enveloping.EnvelopeRequest(
            request_data=header + encode(inner, 0),
            request_principal=b"\0\0" + encode(principal, 0),
            client_host_address=socket.inet_aton("127.0.0.1"),
        )
