"""Short words for the requests of members of streams groups."""

from __future__ import annotations

from typing import Any

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import streams_group_heartbeat as m
from pykafka_broker.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from pykafka_broker.testing.user import User

#: Settings with which tasks are assigned as soon as a member asks.
AT_ONCE = {"group.streams.initial.rebalance.delay.ms": "0", "group.streams.assignment.interval.ms": "0"}
#: What a streams group has been told before its first assignment.
DELAYED = m.Status(
    status_code=5, status_detail="Assignment delayed due to the configured initial rebalance delay."
)


def internal(name: str, partitions: int = 0, replication_factor: int = 0, **configs: str) -> m.TopicInfo:
    """A changelog or repartition topic."""
    return m.TopicInfo(
        name=name,
        partitions=partitions,
        replication_factor=replication_factor,
        topic_configs=[m.KeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def reading(*topics: str, **parts: Any) -> m.Topology:
    """A topology of one subtopology."""
    part: dict[str, Any] = {
        "source_topics": list(topics),
        "source_topic_regex": [],
        "state_changelog_topics": [],
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "copartition_groups": [],
        **parts,
    }
    return m.Topology(epoch=0, subtopologies=[m.Subtopology(subtopology_id="0", **part)])


def tasks(*partitions: int) -> list[m.TaskIds]:
    """Tasks of the one subtopology."""
    return [m.TaskIds(subtopology_id="0", partitions=list(partitions))] if partitions else []


def owning(*partitions: int) -> dict[str, Any]:
    """Active tasks that a member says it has, and no others."""
    return {"active_tasks": tasks(*partitions), "standby_tasks": [], "warmup_tasks": []}


def beating(
    member_id: str = "m", member_epoch: int = 0, *, group: str = "g", **said: Any
) -> StreamsGroupHeartbeatRequest:
    """A heartbeat; one that joins says everything it must."""
    if member_epoch == 0:
        said = {
            "rebalance_timeout_ms": 60_000,
            "topology": reading("t"),
            "process_id": f"p-{member_id}",
            **owning(),
            **said,
        }
    said = {"endpoint_information_epoch": 0, **said}
    return StreamsGroupHeartbeatRequest(
        group_id=group, member_id=member_id, member_epoch=member_epoch, **said
    )


async def beat(user: User, *args: Any, **said: Any) -> StreamsGroupHeartbeatResponse:
    answer: StreamsGroupHeartbeatResponse = await user.send(beating(*args, **said), 0)
    return answer


def answered(member_epoch: int = 0, member_id: str = "m", **said: Any) -> StreamsGroupHeartbeatResponse:
    """An answer to a member that is in the group."""
    values: dict[str, Any] = {
        "error_code": 0,
        "member_id": member_id,
        "member_epoch": member_epoch,
        "heartbeat_interval_ms": 5_000,
        "acceptable_recovery_lag": 0,
        "task_offset_interval_ms": 0,
        "status": [],
        "endpoint_information_epoch": 0,
        **said,
    }
    return StreamsGroupHeartbeatResponse(**values)


def refused(error: ErrorCode, message: str | None = None) -> StreamsGroupHeartbeatResponse:
    """An answer that says only what is wrong."""
    return answered(member_id="", error_code=int(error), error_message=message, heartbeat_interval_ms=0)
