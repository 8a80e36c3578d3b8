"""Requests that only administrators send: elections, reassignments, quotas, telemetry."""

from __future__ import annotations

from typing import Any

from interop.frames.kafka import Kafka
from pykafka_broker.protocol.messages import alter_client_quotas as altering_quotas
from pykafka_broker.protocol.messages import alter_partition_reassignments as reassigning
from pykafka_broker.protocol.messages import alter_replica_log_dirs as moving
from pykafka_broker.protocol.messages import describe_client_quotas as describing_quotas
from pykafka_broker.protocol.messages import elect_leaders as electing
from pykafka_broker.protocol.messages import get_telemetry_subscriptions as subscribing
from pykafka_broker.protocol.messages import list_partition_reassignments as listing
from pykafka_broker.protocol.messages import push_telemetry as pushing
from pykafka_broker.protocol.messages import update_features as updating


class Administration:
    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka

    def alter_replica_log_dirs(self, version: int) -> Any:
        topics = [moving.AlterReplicaLogDirTopic(name="golden", partitions=[0, 7])]
        return moving.AlterReplicaLogDirsRequest(
            dirs=[moving.AlterReplicaLogDir(path="/missing", topics=topics)]
        )

    def elect_leaders(self, version: int) -> Any:
        topic = electing.TopicPartitions(topic="golden", partitions=[0, 7])
        return electing.ElectLeadersRequest(topic_partitions=[topic])

    def alter_partition_reassignments(self, version: int) -> Any:
        partitions = [
            reassigning.ReassignablePartition(partition_index=0, replicas=[1]),
            reassigning.ReassignablePartition(partition_index=1, replicas=[77]),
            reassigning.ReassignablePartition(partition_index=7, replicas=None),
        ]
        topic = reassigning.ReassignableTopic(name="golden", partitions=partitions)
        return reassigning.AlterPartitionReassignmentsRequest(topics=[topic])

    def list_partition_reassignments(self, version: int) -> Any:
        topic = listing.ListPartitionReassignmentsTopics(name="golden", partition_indexes=[0])
        return listing.ListPartitionReassignmentsRequest(topics=[topic])

    def alter_client_quotas(self, version: int) -> Any:
        def entry(key: str, user: str | None) -> altering_quotas.AlterClientQuotasRequestEntryData:
            return altering_quotas.AlterClientQuotasRequestEntryData(
                entity=[altering_quotas.EntityData(entity_type="user", entity_name=user)],
                ops=[altering_quotas.OpData(key=key, value=1024.5, remove=False)],
            )

        entries = [entry("request_percentage", "golden"), entry("unknown_quota", None)]
        return altering_quotas.AlterClientQuotasRequest(entries=entries, validate_only=False)

    def describe_client_quotas(self, version: int) -> Any:
        component = describing_quotas.ComponentData(entity_type="user", match_type=0, match="golden")
        return describing_quotas.DescribeClientQuotasRequest(components=[component], strict=True)

    def update_features(self, version: int) -> Any:
        update = updating.FeatureUpdateKey(feature="missing.version", max_version_level=1)
        return updating.UpdateFeaturesRequest(feature_updates=[update])

    def get_telemetry_subscriptions(self, version: int) -> Any:
        return subscribing.GetTelemetrySubscriptionsRequest(client_instance_id=bytes(16))

    def push_telemetry(self, version: int) -> Any:
        return pushing.PushTelemetryRequest(
            client_instance_id=bytes(range(16)),
            subscription_id=1,
            terminating=False,
            compression_type=0,
            metrics=b"metrics",
        )
