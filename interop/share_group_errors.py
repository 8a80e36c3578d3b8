"""Let Apache Kafka answer requests of other kinds of groups that name a share group.

    python -m interop.share_group_errors

Writes `tests/coordinator/golden/share-group-errors.json`: for each request, what depends on the group.
`tests/coordinator/test_share_group_among_kinds.py` compares what our core answers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from interop.share_groups import PROPERTIES, Conversation
from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pykafka_broker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
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
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest
from pykafka_broker.testing.apache.broker import ApacheBroker

GOLDEN = Path(__file__).parents[1] / "tests" / "coordinator" / "golden" / "share-group-errors.json"


def answers(client: Client) -> dict[str, Any]:
    """By request; the group g has the member m."""
    joined = client.send(
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id="",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        ),
        version=9,
    )
    # Version 5 would have to name a protocol.
    syncing = SyncGroupRequest(group_id="g", generation_id=1, member_id="m", assignments=[])
    synced = client.send(syncing, version=4)
    beaten = client.send(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"))
    left = client.send(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")]))
    consumed = client.send(
        ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
    )
    described = client.send(DescribeGroupsRequest(groups=["g"]), version=6).groups[0]
    before = client.send(DescribeGroupsRequest(groups=["g"]), version=5).groups[0]
    listed = client.send(ListGroupsRequest(types_filter=["Share"])).groups
    deleted = client.send(
        OffsetDeleteRequest(
            group_id="g",
            topics=[
                OffsetDeleteRequestTopic(
                    name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
                )
            ],
        )
    )
    return {
        "JoinGroup": [joined.error_code, joined.member_id],
        "SyncGroup": synced.error_code,
        "Heartbeat": beaten.error_code,
        "LeaveGroup": [left.error_code, [member.error_code for member in left.members]],
        "OffsetCommit": [committed(client, epoch) for epoch in (-1, 2)],
        "ConsumerGroupHeartbeat": [consumed.error_code, consumed.error_message],
        "DescribeGroups": [described.error_code, described.group_state, described.error_message],
        "DescribeGroups v5": [before.error_code, before.group_state],
        "ListGroups": [
            [group.group_id, group.protocol_type, group.group_state, group.group_type]
            for group in listed
            if group.group_id == "g"
        ],
        "OffsetDelete": deleted.error_code,
    }


def committed(client: Client, epoch: int) -> int:
    """The error of an offset that is committed by nobody, or by the member in this epoch."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata=None)
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=epoch,
        member_id="" if epoch < 0 else "m",
        topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    return int(client.send(request, version=9).topics[0].partitions[0].error_code)


def main() -> None:
    with ApacheBroker(PROPERTIES) as broker, Client(broker.address) as client:
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[])
        client.send(CreateTopicsRequest(topics=[topic]))
        said = Conversation(broker, client)
        said.topics("t")
        said.prepare()
        said.beat("m", 0, "t")
        found = answers(client)
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
