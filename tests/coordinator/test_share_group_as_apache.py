"""The core of share groups answers and writes what Apache Kafka answers and writes.

`python -m interop.share_groups` has stored a conversation with Apache Kafka 4.3.1.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig, ShareGroupSettings
from pykafka_broker.coordinator.groups.core.events import DeleteGroup, TopicsDeleted
from pykafka_broker.coordinator.groups.core.record import Record, encode_record
from pykafka_broker.coordinator.groups.core.share.events import (
    AlteredShareOffsets,
    AlterShareOffsets,
    DeletedShareOffsets,
    DeleteShareOffsets,
    DeleteShareState,
    DescribedShareGroup,
    DescribeShareGroup,
    ShareGroupHeartbeatResult,
    ShareStateDeleted,
    ShareStateInitialized,
)
from pykafka_broker.coordinator.groups.core.topics import TopicInfo
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.share_groups import ShareWorld

GOLDEN = Path(__file__).parent / "golden" / "share-groups.jsonl"
CLIENT_ID = "pykafka-broker"


class Retelling:
    """Asks our core what Apache Kafka was asked; a share coordinator that never fails does the work."""

    def __init__(self) -> None:
        self.world = ShareWorld(
            GroupCoordinatorConfig(
                share_group=ShareGroupSettings(assignment_interval_ms=0), share_group_max_size=5
            )
        )
        self.topic_ids: dict[str, bytes] = {}

    def retell(self, step: dict[str, Any]) -> tuple[Any, list[list[str | None]]]:
        """Our answer to one step, and our records."""
        world, ask = self.world, step["ask"]
        world.now_ms = step["at_ms"]
        before = len(world.log)
        answer: Any = None
        match ask["what"]:
            case "topics":
                self.set_topics(ask["topics"])
            case "heartbeat":
                topics = None if ask["topics"] is None else tuple(ask["topics"])
                heard = world.share(
                    ask["member"],
                    ask["epoch"],
                    topics=topics,
                    group_id=ask["group"],
                    rack=ask["rack"],
                    client=CLIENT_ID,
                )
                answer = heartbeat_shown(heard)
            case "describe":
                answer = group_shown(world.ask(DescribeShareGroup, ask["group"]))
            case "alter":
                asked = tuple((name, tuple(map(tuple, said))) for name, said in ask["offsets"].items())
                answer = altered_shown(self.after_work(AlterShareOffsets, ask["group"], asked))
            case "delete offsets":
                topics = tuple(ask["topics"])
                answer = deleted_shown(self.after_work(DeleteShareOffsets, ask["group"], topics))
            case "delete group":
                token = world.token()
                world.submit(DeleteGroup(token, ask["group"]))
                self.work()
                error = world.answers[token]
                answer = {"group_id": ask["group"], "error_code": int(error)}
        self.work()
        records = [encode_record(record) for record in world.log[before:] if isinstance(record, Record)]
        return answer, [[key.hex(), None if value is None else value.hex()] for key, value in records]

    def set_topics(self, topics: dict[str, list[Any]]) -> None:
        infos = [TopicInfo(name, bytes.fromhex(key), count) for name, (key, count) in topics.items()]
        gone = [(name, key) for name, key in self.topic_ids.items() if name not in topics]
        self.topic_ids = {info.name: info.topic_id for info in infos}
        self.world.set_topics(*infos)
        if gone:
            self.world.submit(TopicsDeleted(tuple(gone), self.world.now_ms))

    def after_work(self, event: Any, *fields: Any) -> Any:
        token = self.world.token()
        self.world.submit(event(token, self.world.now_ms, *fields))
        self.work()
        return self.world.answers[token]

    def work(self) -> None:
        while self.world.asked:
            work = self.world.asked.pop(0)
            fine: Any
            if isinstance(work, DeleteShareState):
                fine = tuple(
                    (key, tuple((p, ErrorCode.NONE, None) for p in said)) for key, said in work.topics
                )
                self.world.submit(ShareStateDeleted(self.world.now_ms, work, fine))
            else:
                fine = tuple(
                    (key, tuple((p, ErrorCode.NONE, None) for p, _ in said)) for key, said in work.topics
                )
                self.world.submit(ShareStateInitialized(self.world.now_ms, work, fine))


def heartbeat_shown(heard: ShareGroupHeartbeatResult) -> dict[str, Any]:
    assignment = None
    if heard.assignment is not None:
        partitions = [
            {"topic_id": key.hex(), "partitions": list(partitions)} for key, partitions in heard.assignment
        ]
        assignment = {"topic_partitions": partitions}
    return {
        "throttle_time_ms": 0,
        "error_code": int(heard.error),
        "error_message": heard.error_message,
        "member_id": heard.member_id,
        "member_epoch": heard.member_epoch,
        "heartbeat_interval_ms": heard.heartbeat_interval_ms,
        "assignment": assignment,
    }


def group_shown(group: DescribedShareGroup) -> dict[str, Any]:
    return {
        "error_code": int(group.error),
        "error_message": group.error_message,
        "group_id": group.group_id,
        "group_state": group.state,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor_name": group.assignor,
        "members": [
            {
                "member_id": member.member_id,
                "rack_id": member.rack_id,
                "member_epoch": member.member_epoch,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "subscribed_topic_names": list(member.subscribed_topic_names),
                "assignment": {
                    "topic_partitions": [
                        {"topic_id": key.hex(), "topic_name": name, "partitions": list(partitions)}
                        for key, name, partitions in member.assignment
                    ]
                },
            }
            for member in group.members
        ],
        "authorized_operations": -0x80000000,
    }


def altered_shown(altered: AlteredShareOffsets) -> dict[str, Any]:
    return {
        "throttle_time_ms": 0,
        "error_code": int(altered.error),
        "error_message": altered.error_message,
        "responses": [
            {
                "topic_name": name,
                "topic_id": key.hex(),
                "partitions": [
                    {"partition_index": partition, "error_code": int(error), "error_message": message}
                    for partition, error, message in partitions
                ],
            }
            for name, key, partitions in altered.topics
        ],
    }


def deleted_shown(deleted: DeletedShareOffsets) -> dict[str, Any]:
    return {
        "throttle_time_ms": 0,
        "error_code": int(deleted.error),
        "error_message": deleted.error_message,
        "responses": [
            {
                "topic_name": topic.topic or "",
                "topic_id": topic.topic_id.hex(),
                "error_code": int(topic.error),
                "error_message": topic.error_message,
            }
            for topic in deleted.topics
        ],
    }


def in_any_order(answer: dict[str, Any]) -> dict[str, Any]:
    """Without regard to the order of members, which is that of a table of Apache Kafka, and of answered
    topics: what its request handlers answer by themselves comes first.
    """
    if answer is not None and "members" in answer:
        return {**answer, "members": sorted(answer["members"], key=lambda member: str(member["member_id"]))}
    if answer is not None and "responses" in answer:
        return {
            **answer,
            "responses": sorted(answer["responses"], key=lambda topic: str(topic["topic_name"])),
        }
    return answer


def test_a_conversation_about_share_groups_goes_as_with_apache_kafka() -> None:
    retelling = Retelling()
    steps = [json.loads(line) for line in GOLDEN.read_text().splitlines()]

    for number, step in enumerate(steps):
        answer, records = retelling.retell(step)
        assert in_any_order(answer) == in_any_order(step["answer"]), (number, step["ask"])
        assert records == step["records"], (number, step["ask"])

    assert len(steps) == 87
    types = {int(key[:4], 16) for step in steps for key, _ in step["records"]}
    assert types == {10, 11, 12, 13, 14, 15}
