"""Groups whose members heartbeat instead of joining: of consumers (KIP-848), sharers and streams."""

from __future__ import annotations

import base64
import time
from typing import Any

from interop.frames.kafka import Kafka
from pykafka_broker.protocol.messages import alter_share_group_offsets as altering
from pykafka_broker.protocol.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    share_group_describe,
    share_group_heartbeat,
    streams_group_describe,
    streams_group_heartbeat,
)
from pykafka_broker.protocol.messages import delete_share_group_offsets as deleting
from pykafka_broker.protocol.messages import delete_share_group_state as deleting_state
from pykafka_broker.protocol.messages import describe_share_group_offsets as describing
from pykafka_broker.protocol.messages import find_coordinator as finding
from pykafka_broker.protocol.messages import incremental_alter_configs as configuring
from pykafka_broker.protocol.messages import initialize_share_group_state as initializing
from pykafka_broker.protocol.messages import read_share_group_state as reading
from pykafka_broker.protocol.messages import read_share_group_state_summary as summarizing
from pykafka_broker.protocol.messages import share_acknowledge as acknowledging
from pykafka_broker.protocol.messages import share_fetch as fetching
from pykafka_broker.protocol.messages import write_share_group_state as writing

GROUP_RESOURCE = 32
SHARE = 2
LEAVING = -1
ACCEPT = 1


def member(number: int) -> str:
    """Members choose their own ids: random uuids, but not here."""
    return base64.urlsafe_b64encode(bytes(15) + bytes([number])).decode().rstrip("=")


class NewerGroups:
    def __init__(self, kafka: Kafka, topic_id: bytes) -> None:
        self.kafka = kafka
        self.topic_id = topic_id
        kafka.call_until_ok(finding.FindCoordinatorRequest(key_type=0, coordinator_keys=["golden"]), 4)

    # --- consumer groups ------------------------------------------------------------------------------

    def consumer_group_heartbeat(self, version: int) -> Any:
        return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=f"golden-consumers-{version}",
            member_id=member(version + 1),
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=["golden"],
            topic_partitions=[],
        )

    def consumer_group_describe(self, version: int) -> Any:
        return consumer_group_describe.ConsumerGroupDescribeRequest(
            group_ids=[f"golden-consumers-{version}", "missing"], include_authorized_operations=True
        )

    # --- streams groups -------------------------------------------------------------------------------

    def streams_group_heartbeat(self, version: int) -> Any:
        subtopology = streams_group_heartbeat.Subtopology(
            subtopology_id="0",
            source_topics=["golden"],
            source_topic_regex=[],
            state_changelog_topics=[],
            repartition_sink_topics=[],
            repartition_source_topics=[],
            copartition_groups=[],
        )
        return streams_group_heartbeat.StreamsGroupHeartbeatRequest(
            group_id="golden-streams",
            member_id=member(1),
            member_epoch=0,
            endpoint_information_epoch=0,
            rebalance_timeout_ms=10_000,
            topology=streams_group_heartbeat.Topology(epoch=0, subtopologies=[subtopology]),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            process_id="golden-process",
            user_endpoint=streams_group_heartbeat.Endpoint(host="golden.example", port=8080),
            client_tags=[streams_group_heartbeat.KeyValue(key="zone", value="a")],
        )

    def streams_group_describe(self, version: int) -> Any:
        return streams_group_describe.StreamsGroupDescribeRequest(
            group_ids=["golden-streams", "missing"], include_authorized_operations=True
        )

    # --- share groups ---------------------------------------------------------------------------------

    def _share_heartbeat(self, group: str, epoch: int) -> Any:
        return share_group_heartbeat.ShareGroupHeartbeatRequest(
            group_id=group, member_id=member(1), member_epoch=epoch, subscribed_topic_names=["golden"]
        )

    def share_group_heartbeat(self, version: int) -> Any:
        return self._share_heartbeat("golden-sharers", 0)

    def share_group_describe(self, version: int) -> Any:
        return share_group_describe.ShareGroupDescribeRequest(
            group_ids=["golden-sharers", "missing"], include_authorized_operations=True
        )

    def share_fetch(self, version: int, api: str = "fetch") -> Any:
        """The first fetch of a member for whom records are there."""
        group = f"golden-share-{api}-{version}"
        earliest = configuring.AlterableConfig(
            name="share.auto.offset.reset", config_operation=0, value="earliest"
        )
        resource = configuring.AlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=group, configs=[earliest]
        )
        self.kafka.call_until_ok(
            configuring.IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1
        )
        time.sleep(0.5)
        self.kafka.call_until_ok(self._share_heartbeat(group, 0), 1)
        time.sleep(2)
        partitions = [fetching.FetchPartition(partition_index=0, acknowledgement_batches=[])]
        return fetching.ShareFetchRequest(
            group_id=group,
            member_id=member(1),
            share_session_epoch=0,
            max_wait_ms=5_000,
            min_bytes=1,
            max_bytes=1_000,
            max_records=10,
            batch_size=10,
            topics=[fetching.FetchTopic(topic_id=self.topic_id, partitions=partitions)],
            forgotten_topics_data=[],
        )

    def share_acknowledge(self, version: int) -> Any:
        fetch = self.share_fetch(version, "acknowledge")
        answer = self.kafka.call(fetch, version)
        acquired = [
            (batch.first_offset, batch.last_offset)
            for topic in answer.responses
            for partition in topic.partitions
            for batch in partition.acquired_records
        ]
        assert acquired, answer
        batches = [
            acknowledging.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=[ACCEPT]
            )
            for first, last in acquired[:1]
        ]
        partition = acknowledging.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        return acknowledging.ShareAcknowledgeRequest(
            group_id=fetch.group_id,
            member_id=member(1),
            share_session_epoch=1,
            topics=[acknowledging.AcknowledgeTopic(topic_id=self.topic_id, partitions=[partition])],
        )

    def _empty_share_group(self, group: str) -> str:
        """A group whose only member was there and left."""
        self.kafka.call_until_ok(self._share_heartbeat(group, 0), 1)
        time.sleep(2)
        self.kafka.call_until_ok(self._share_heartbeat(group, LEAVING), 1)
        return group

    def describe_share_group_offsets(self, version: int) -> Any:
        topic = describing.DescribeShareGroupOffsetsRequestTopic(topic_name="golden", partitions=[0, 1])
        groups = [
            describing.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=[topic])
            for group in (self._empty_share_group("golden-share-offsets"), "missing")
        ]
        return describing.DescribeShareGroupOffsetsRequest(groups=groups)

    def alter_share_group_offsets(self, version: int) -> Any:
        partitions = [
            altering.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=0)
            for index in (0, 7)
        ]
        topic = altering.AlterShareGroupOffsetsRequestTopic(topic_name="golden", partitions=partitions)
        return altering.AlterShareGroupOffsetsRequest(
            group_id=self._empty_share_group("golden-share-offsets"), topics=[topic]
        )

    def delete_share_group_offsets(self, version: int) -> Any:
        topics = [
            deleting.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in ("golden", "missing")
        ]
        return deleting.DeleteShareGroupOffsetsRequest(
            group_id=self._empty_share_group("golden-share-offsets"), topics=topics
        )

    # --- the share coordinator, as brokers talk to it -------------------------------------------------

    def _state_group(self, api: str, version: int) -> str:
        """A group whose coordinator has been found."""
        group = f"golden-{api}-{version}"
        topic = base64.urlsafe_b64encode(self.topic_id).decode().rstrip("=")
        self.kafka.call_until_ok(
            finding.FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[f"{group}:{topic}:0"]), 6
        )
        return group

    def initialize_share_group_state(
        self, version: int, api: str = "initialize"
    ) -> initializing.InitializeShareGroupStateRequest:
        partition = initializing.PartitionData(partition=0, state_epoch=1, start_offset=0)
        return initializing.InitializeShareGroupStateRequest(
            group_id=self._state_group(api, version),
            topics=[initializing.InitializeStateData(topic_id=self.topic_id, partitions=[partition])],
        )

    def _initialized(self, api: str, version: int) -> str:
        request = self.initialize_share_group_state(version, api)
        self.kafka.call_until_ok(request, 0)
        return request.group_id

    def write_share_group_state(
        self, version: int, api: str = "write"
    ) -> writing.WriteShareGroupStateRequest:
        batch = writing.StateBatch(first_offset=1, last_offset=1, delivery_state=0, delivery_count=1)
        partition = writing.PartitionData(
            partition=0,
            state_epoch=1,
            leader_epoch=0,
            start_offset=1,
            delivery_complete_count=0,
            state_batches=[batch],
        )
        return writing.WriteShareGroupStateRequest(
            group_id=self._initialized(api, version),
            topics=[writing.WriteStateData(topic_id=self.topic_id, partitions=[partition])],
        )

    def _written(self, api: str, version: int) -> str:
        request = self.write_share_group_state(version, api)
        self.kafka.call_until_ok(request, 1)
        return request.group_id

    def read_share_group_state(self, version: int) -> Any:
        partitions = [reading.PartitionData(partition=0, leader_epoch=0)]
        return reading.ReadShareGroupStateRequest(
            group_id=self._written("read", version),
            topics=[reading.ReadStateData(topic_id=self.topic_id, partitions=partitions)],
        )

    def read_share_group_state_summary(self, version: int) -> Any:
        partitions = [summarizing.PartitionData(partition=0, leader_epoch=0)]
        return summarizing.ReadShareGroupStateSummaryRequest(
            group_id=self._written("summary", version),
            topics=[summarizing.ReadStateSummaryData(topic_id=self.topic_id, partitions=partitions)],
        )

    def delete_share_group_state(self, version: int) -> Any:
        partitions = [deleting_state.PartitionData(partition=0)]
        return deleting_state.DeleteShareGroupStateRequest(
            group_id=self._initialized("delete", version),
            topics=[deleting_state.DeleteStateData(topic_id=self.topic_id, partitions=partitions)],
        )
