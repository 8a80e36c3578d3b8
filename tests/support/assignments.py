"""Groups for assignors as JSON: topic ids in base64, partitions as sorted lists."""

from __future__ import annotations

import base64
from typing import Any

from pykafka_broker.coordinator.group.consumer.assignors import ASSIGNORS
from pykafka_broker.coordinator.group.consumer.assignors.spec import GroupSpec, MemberSpec
from pykafka_broker.protocol.java_hash import uuid_hash, walked


def topic_bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def topic_text(topic_id: bytes) -> str:
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def group_spec(group: dict[str, Any]) -> GroupSpec:
    members = {
        name: MemberSpec(
            dict.fromkeys(walked(map(topic_bytes, member["topics"]), uuid_hash)).keys(),
            {topic_bytes(topic): frozenset(partitions) for topic, partitions in member["assignment"].items()},
            member["instance"],
        )
        for name, member in group["members"].items()
    }
    counts = {topic_bytes(topic): count for topic, count in group["topics"].items()}
    owned = {
        (topic_id, partition)
        for member in members.values()
        for topic_id, partitions in member.assignment.items()
        for partition in partitions
    }
    return GroupSpec(members, counts, group["homogeneous"], owned)


def assigned(group: dict[str, Any]) -> dict[str, dict[str, list[int]]]:
    """What our assignor makes of `group`."""
    result = ASSIGNORS[group["assignor"]](group_spec(group))
    return {
        name: {topic_text(topic_id): sorted(partitions) for topic_id, partitions in assignment.items()}
        for name, assignment in result.items()
    }
