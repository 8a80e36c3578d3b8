"""Producing, fetching, topics, configs and classic groups: the frames of an ordinary client."""

from __future__ import annotations

import time

from interop.frames.kafka import Kafka
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.messages.alter_configs import AlterableConfig as FullConfig
from pykafka_broker.protocol.messages.alter_configs import AlterConfigsRequest
from pykafka_broker.protocol.messages.alter_configs import AlterConfigsResource as FullResource
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from pykafka_broker.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from pykafka_broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest
from pykafka_broker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from pykafka_broker.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from pykafka_broker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
)
from pykafka_broker.protocol.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pykafka_broker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pykafka_broker.protocol.messages.list_config_resources import ListConfigResourcesRequest
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykafka_broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from pykafka_broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from pykafka_broker.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from pykafka_broker.protocol.records.batch import BatchFields, build_batch

TOPIC_RESOURCE = 2

#: Subscriptions and assignments of members, each behind its version; the broker parses them.
SUBSCRIPTION = b"\x00\x01" + encode(ConsumerProtocolSubscription(topics=["golden"]), 1)
ASSIGNMENT = b"\x00\x01" + encode(
    ConsumerProtocolAssignment(assigned_partitions=[TopicPartition(topic="golden", partitions=[0, 1])]), 1
)


class RecordsAndGroups:
    """One method per API: it prepares the broker and returns the request to capture."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        self.topic_id = self.create("golden", partitions=2)
        self.produced = build_batch(
            [(1_700_000_000_000, b"key", b"value", [("trace", b"1")])],
            BatchFields(producer_id=-1, base_offset=0),
        )
        self.kafka.call_until_ok(self.produce(9), 9)
        self.kafka.call_until_ok(self.find_coordinator(4), 4)
        self.kafka.call_until_ok(self.offset_commit(8), 8)

    def create(self, name: str, partitions: int = 1) -> bytes:
        created = self.kafka.call(self._creation(name, partitions), 7)
        time.sleep(0.2)
        topic_id: bytes = created.topics[0].topic_id
        return topic_id

    @staticmethod
    def _creation(name: str, partitions: int) -> CreateTopicsRequest:
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            assignments=[],
            configs=[CreatableTopicConfig(name="retention.ms", value="3600000")],
        )
        return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)

    def produce(self, version: int) -> ProduceRequest:
        partitions = [PartitionProduceData(index=0, records=self.produced)]
        topic = TopicProduceData(name="golden", topic_id=self.topic_id, partition_data=partitions)
        return ProduceRequest(transactional_id=None, acks=-1, timeout_ms=10_000, topic_data=[topic])

    def fetch(self, version: int) -> FetchRequest:
        partitions = [
            FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100),
            FetchPartition(partition=1, fetch_offset=5, partition_max_bytes=100),
        ]
        return FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=100,
            session_epoch=0,
            topics=[FetchTopic(topic="golden", topic_id=self.topic_id, partitions=partitions)],
        )

    def list_offsets(self, version: int) -> ListOffsetsRequest:
        partition = ListOffsetsPartition(partition_index=0, timestamp=1_700_000_000_000)
        topic = ListOffsetsTopic(name="golden", partitions=[partition])
        return ListOffsetsRequest(replica_id=-1, topics=[topic], timeout_ms=1000)

    def metadata(self, version: int) -> MetadataRequest:
        names = ["golden"] if version < 4 else ["golden", "missing"]
        return MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )

    def offset_commit(self, version: int, group: str = "golden-group") -> OffsetCommitRequest:
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=1, committed_leader_epoch=0, committed_metadata="note"
        )
        topic = OffsetCommitRequestTopic(name="golden", topic_id=self.topic_id, partitions=[partition])
        return OffsetCommitRequest(group_id=group, member_id="", topics=[topic])

    def offset_fetch(self, version: int) -> OffsetFetchRequest:
        topics = [OffsetFetchRequestTopics(name="golden", topic_id=self.topic_id, partition_indexes=[0, 1])]
        return OffsetFetchRequest(
            group_id="golden-group",
            topics=[OffsetFetchRequestTopic(name="golden", partition_indexes=[0, 1])],
            groups=[
                OffsetFetchRequestGroup(group_id="golden-group", topics=topics),
                OffsetFetchRequestGroup(group_id="missing", topics=None),
            ],
        )

    def find_coordinator(self, version: int) -> FindCoordinatorRequest:
        return FindCoordinatorRequest(key="golden-group", coordinator_keys=["golden-group"])

    def join_group(self, version: int, group: str = "golden-join") -> JoinGroupRequest:
        request = JoinGroupRequest(
            group_id=f"{group}-{version}",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id="",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
            reason="to capture a frame",
        )
        if version >= 4:
            request.member_id = self.kafka.call(request, version).member_id
        return request

    def joined(self, api: str, version: int) -> tuple[str, str, int]:
        """A fresh group with one member, before the assignment: its id, the member's and the generation."""
        request = self.join_group(5, f"golden-{api}-{version}")
        response = self.kafka.call(request, 5)
        return request.group_id, response.member_id, response.generation_id

    def stable(self, api: str, version: int) -> tuple[str, str, int]:
        """The same after the assignment."""
        group_id, member_id, generation_id = self.joined(api, version)
        self.kafka.call(self._assignment(group_id, member_id, generation_id), 3)
        return group_id, member_id, generation_id

    @staticmethod
    def _assignment(group_id: str, member_id: str, generation_id: int) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=group_id,
            generation_id=generation_id,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequestAssignment(member_id=member_id, assignment=ASSIGNMENT)],
        )

    def sync_group(self, version: int) -> SyncGroupRequest:
        return self._assignment(*self.joined("sync", version))

    def heartbeat(self, version: int) -> HeartbeatRequest:
        group_id, member_id, generation_id = self.stable("heartbeat", version)
        return HeartbeatRequest(group_id=group_id, generation_id=generation_id, member_id=member_id)

    def leave_group(self, version: int) -> LeaveGroupRequest:
        group_id, member_id, _ = self.stable("leave", version)
        members = [MemberIdentity(member_id=member_id, reason="done")]
        return LeaveGroupRequest(group_id=group_id, member_id=member_id, members=members)

    def describe_groups(self, version: int) -> DescribeGroupsRequest:
        group_id, _, _ = self.stable("describe", version)
        return DescribeGroupsRequest(groups=[group_id, "missing"], include_authorized_operations=True)

    def list_groups(self, version: int) -> ListGroupsRequest:
        return ListGroupsRequest(states_filter=["Empty"], types_filter=["classic"])

    def delete_groups(self, version: int) -> DeleteGroupsRequest:
        group = f"golden-delete-{version}"
        self.kafka.call(self.offset_commit(8, group), 8)
        return DeleteGroupsRequest(groups_names=[group, "missing"])

    def offset_delete(self, version: int) -> OffsetDeleteRequest:
        partitions = [OffsetDeleteRequestPartition(partition_index=0)]
        topic = OffsetDeleteRequestTopic(name="golden", partitions=partitions)
        return OffsetDeleteRequest(group_id="golden-group", topics=[topic])

    def api_versions(self, version: int) -> ApiVersionsRequest:
        return ApiVersionsRequest(client_software_name="golden", client_software_version="1.0")

    def create_topics(self, version: int) -> CreateTopicsRequest:
        request = self._creation(f"golden-create-{version}", partitions=1)
        request.topics.append(
            CreatableTopic(name="golden", num_partitions=1, replication_factor=1, assignments=[], configs=[])
        )
        return request

    def delete_topics(self, version: int) -> DeleteTopicsRequest:
        name = f"golden-delete-{version}"
        topic_id = self.create(name)
        return DeleteTopicsRequest(
            topic_names=[name, "missing"],
            topics=[
                DeleteTopicState(name=None, topic_id=topic_id),
                DeleteTopicState(name="missing", topic_id=bytes(16)),
            ],
            timeout_ms=10_000,
        )

    def create_partitions(self, version: int) -> CreatePartitionsRequest:
        name = f"golden-grow-{version}"
        self.create(name)
        return CreatePartitionsRequest(
            topics=[
                CreatePartitionsTopic(name=name, count=3, assignments=None),
                CreatePartitionsTopic(name="golden", count=1, assignments=None),
            ],
            timeout_ms=10_000,
            validate_only=False,
        )

    def delete_records(self, version: int) -> DeleteRecordsRequest:
        partitions = [
            DeleteRecordsPartition(partition_index=0, offset=1),
            DeleteRecordsPartition(partition_index=1, offset=100),
        ]
        topic = DeleteRecordsTopic(name="golden", partitions=partitions)
        return DeleteRecordsRequest(topics=[topic], timeout_ms=10_000)

    def describe_configs(self, version: int) -> DescribeConfigsRequest:
        keys = ["retention.ms", "cleanup.policy"]
        resources = [
            DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=keys)
            for name in ("golden", "missing")
        ]
        return DescribeConfigsRequest(
            resources=resources, include_synonyms=True, include_documentation=version == 3
        )

    def incremental_alter_configs(self, version: int) -> IncrementalAlterConfigsRequest:
        configs = [
            AlterableConfig(name="retention.ms", config_operation=0, value="7200000"),
            AlterableConfig(name="cleanup.policy", config_operation=1, value=None),
        ]
        resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name="golden", configs=configs)
        return IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)

    def alter_configs(self, version: int) -> AlterConfigsRequest:
        configs = [FullConfig(name="retention.ms", value="not a number")]
        resource = FullResource(resource_type=TOPIC_RESOURCE, resource_name="golden", configs=configs)
        return AlterConfigsRequest(resources=[resource], validate_only=True)

    def init_producer_id(self, version: int) -> InitProducerIdRequest:
        return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)

    def offset_for_leader_epoch(self, version: int) -> OffsetForLeaderEpochRequest:
        partition = OffsetForLeaderPartition(partition=0, leader_epoch=0)
        return OffsetForLeaderEpochRequest(
            replica_id=-1, topics=[OffsetForLeaderTopic(topic="golden", partitions=[partition])]
        )

    def describe_cluster(self, version: int) -> DescribeClusterRequest:
        return DescribeClusterRequest(include_cluster_authorized_operations=True)

    def describe_topic_partitions(self, version: int) -> DescribeTopicPartitionsRequest:
        topics = [DescribedTopic(name="golden"), DescribedTopic(name="missing")]
        return DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=1)

    def describe_log_dirs(self, version: int) -> DescribeLogDirsRequest:
        return DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="golden", partitions=[0, 1])])

    def describe_producers(self, version: int) -> DescribeProducersRequest:
        batch = build_batch(
            [(0, None, b"x", [])], BatchFields(producer_id=99, producer_epoch=0, base_sequence=0)
        )
        topic = TopicProduceData(name="golden", partition_data=[PartitionProduceData(index=1, records=batch)])
        self.kafka.call(
            ProduceRequest(transactional_id=None, acks=-1, timeout_ms=10_000, topic_data=[topic]), 9
        )
        return DescribeProducersRequest(topics=[TopicRequest(name="golden", partition_indexes=[1, 7])])

    def list_config_resources(self, version: int) -> ListConfigResourcesRequest:
        return ListConfigResourcesRequest(resource_types=[TOPIC_RESOURCE] if version else [])
