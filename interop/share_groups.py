"""Let Apache Kafka keep a share group, and keep what it answers and writes.

    python -m interop.share_groups

Writes `tests/coordinator/golden/share-groups.jsonl`, one step of a conversation per line: what was asked, the
answer, and the records that came into `__consumer_offsets`. `tests/coordinator/test_share_group_as_apache.py`
asks our core the same, does the work of the share coordinator in its place, and compares answers and records
byte for byte.

A step is `{"ask": {"what": ...}, "at_ms": ..., "answer": ..., "records": [[key, value], ...]}`, bytes in hex.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pykafka_broker.client.blocking import Client
from pykafka_broker.coordinator.groups.core.record import Record, decode_record
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from pykafka_broker.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka_broker.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.protocol.messages.metadata import MetadataResponseTopic
from pykafka_broker.protocol.messages.records.group import (
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMetadataValue,
)
from pykafka_broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from pykafka_broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from pykafka_broker.protocol.records.batch import iter_batches, read_records
from pykafka_broker.testing.apache.broker import ApacheBroker

GOLDEN = Path(__file__).parents[1] / "tests" / "coordinator" / "golden" / "share-groups.jsonl"
#: Nothing follows what was written so long ago.
QUIET_S = 1.5
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.share.assignment.interval.ms": "0",
    "group.share.max.size": "5",
}


def plain(value: Any) -> Any:
    """A message as JSON can hold it: bytes in hex, fields by their names."""
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "__slots__"):
        return {name: plain(getattr(value, name)) for name in value.__slots__}
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


class Conversation:
    """Asks Apache Kafka, and notes what comes of it."""

    def __init__(self, broker: ApacheBroker, client: Client) -> None:
        self._folder = broker.data_dir / "__consumer_offsets-0"
        self._client = client
        self._seen = 0
        self.steps: list[dict[str, Any]] = []

    def records(self) -> list[tuple[bytes, bytes | None]]:
        files = sorted(self._folder.glob("*.log")) if self._folder.exists() else []
        return [
            (bytes(record.key), None if record.value is None else bytes(record.value))
            for file in files
            for log in [file.read_bytes()]
            for pos, header in iter_batches(log)
            for record in read_records(log[pos : pos + header.size_in_bytes])
            if record.key is not None
        ]

    def prepare(self) -> None:
        """Have the topic of groups made, and that of states, with a group that is left again."""
        self._client.coordinator("g")
        describe = ShareGroupDescribeRequest(group_ids=["g"], include_authorized_operations=False)
        while self._client.send(describe).groups[0].error_code != ErrorCode.GROUP_ID_NOT_FOUND:
            time.sleep(0.1)
        request = ShareGroupHeartbeatRequest(
            group_id="first", member_id="m", member_epoch=0, subscribed_topic_names=["t"]
        )
        self._client.send(request)
        while not self._has_initialized():
            time.sleep(0.1)
        self._client.send(ShareGroupHeartbeatRequest(group_id="first", member_id="m", member_epoch=-1))
        self._seen = len(self._settled())

    def _has_initialized(self) -> bool:
        found = (decode_record(*record) for record in self.records())
        values = (record.value for record in found if isinstance(record, Record))
        return any(
            isinstance(value, ShareGroupStatePartitionMetadataValue) and value.initialized_topics
            for value in values
        )

    def _settled(self) -> list[tuple[bytes, bytes | None]]:
        count, since = -1, time.monotonic()
        while time.monotonic() - since < QUIET_S:
            found = self.records()
            if len(found) != count:
                count, since = len(found), time.monotonic()
            time.sleep(0.05)
        return found

    def note(self, ask: dict[str, Any], answer: Any = None) -> Any:
        """Note a step and the records that have come since the last."""
        found = self._settled()
        new, self._seen = found[self._seen :], len(found)
        at_ms = int(time.time() * 1000)
        for key, value in new:
            record = decode_record(key, value)
            if isinstance(record, Record) and isinstance(
                record.value, ShareGroupTargetAssignmentMetadataValue
            ):
                at_ms = record.value.assignment_timestamp
        step = {
            "ask": ask,
            "at_ms": at_ms,
            "answer": plain(answer),
            "records": [[key.hex(), None if value is None else value.hex()] for key, value in new],
        }
        self.steps.append(step)
        return answer

    def topics(self, *names: str) -> None:
        """Note which topics there are now."""
        found = {name: self._topic(name) for name in names}
        said = {name: [topic.topic_id.hex(), len(topic.partitions)] for name, topic in found.items()}
        self.note({"what": "topics", "topics": said})

    def _topic(self, name: str) -> MetadataResponseTopic:
        while True:
            try:
                return self._client.topic(name)
            except KafkaError:
                time.sleep(0.1)

    def beat(self, member: str, epoch: int, *topics: str, rack: str | None = None, group: str = "g") -> int:
        """A heartbeat; the member's epoch from then on."""
        ask = {"what": "heartbeat", "group": group, "member": member, "epoch": epoch, "rack": rack}
        names = list(topics) or None
        request = ShareGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, rack_id=rack, subscribed_topic_names=names
        )
        answer = self.note({**ask, "topics": names}, self._client.send(request))
        return int(answer.member_epoch)

    def describe(self, *groups: str) -> None:
        for group in groups:
            request = ShareGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
            self.note({"what": "describe", "group": group}, self._client.send(request).groups[0])

    def alter(self, group: str, offsets: dict[str, dict[int, int]]) -> None:
        request = AlterShareGroupOffsetsRequest(
            group_id=group,
            topics=[
                AlterShareGroupOffsetsRequestTopic(
                    topic_name=name,
                    partitions=[
                        AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=offset)
                        for partition, offset in partitions.items()
                    ],
                )
                for name, partitions in offsets.items()
            ],
        )
        asked = {name: list(partitions.items()) for name, partitions in offsets.items()}
        self.note({"what": "alter", "group": group, "offsets": asked}, self._client.send(request))

    def delete_offsets(self, group: str, *topics: str) -> None:
        request = DeleteShareGroupOffsetsRequest(
            group_id=group, topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
        )
        ask = {"what": "delete offsets", "group": group, "topics": list(topics)}
        self.note(ask, self._client.send(request))

    def delete_group(self, group: str) -> None:
        answer = self._client.send(DeleteGroupsRequest(groups_names=[group])).results[0]
        self.note({"what": "delete group", "group": group}, answer)


def converse(client: Client, said: Conversation) -> None:
    """Members and topics come, change and go; offsets are set and forgotten; the group is deleted."""

    def create(name: str, count: int) -> None:
        topic = CreatableTopic(
            name=name, num_partitions=count, replication_factor=1, assignments=[], configs=[]
        )
        client.send(CreateTopicsRequest(topics=[topic]))

    for name, count in {"t": 2, "u": 3, "v": 20}.items():
        create(name, count)
    said.prepare()
    said.topics("t", "u", "v")
    said.beat("m-a", 1)
    said.beat("m-a", -1)
    said.beat("m-a", 0)
    epochs = {"m-a": said.beat("m-a", 0, "t")}

    def everyone() -> None:
        for member in list(epochs):
            epochs[member] = said.beat(member, epochs[member])

    everyone()
    everyone()
    said.describe("g", "none")
    said.beat("m-a", epochs["m-a"] - 1)
    said.beat("m-a", epochs["m-a"] + 7)
    said.beat("m-x", 3)
    epochs["m-b"] = said.beat("m-b", 0, "t", "u", rack="r1")
    everyone()
    everyone()
    said.beat("m-a", 1)
    epochs["7f2c-c"] = said.beat("7f2c-c", 0, "v", "u")
    everyone()
    everyone()
    epochs["m-a"] = said.beat("m-a", epochs["m-a"], "t", "u", "v", "missing")
    everyone()
    everyone()
    for member in ("m-d", "m-e"):
        epochs[member] = said.beat(member, 0, "t")
        everyone()
    said.beat("m-f", 0, "t")
    said.describe("g")
    client.send(
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="t", count=4, assignments=None)],
            timeout_ms=10_000,
            validate_only=False,
        )
    )
    said.topics("t", "u", "v")
    everyone()
    everyone()
    said.beat("m-b", -1)
    del epochs["m-b"]
    everyone()
    said.delete_group("g")
    said.alter("g", {"t": {0: 5}})
    said.delete_offsets("g", "t")
    gone = DeleteTopicState(name="v", topic_id=bytes(16))
    client.send(DeleteTopicsRequest(topics=[gone], topic_names=["v"], timeout_ms=10_000))
    said.topics("t", "u")
    everyone()
    everyone()
    for member in list(epochs):
        said.beat(member, -1)
    said.describe("g")
    said.alter("g", {"t": {0: 5, 9: 1}, "none": {0: 1}})
    said.delete_offsets("g", "u", "none", "t")
    said.delete_offsets("g", "u")
    said.alter("fresh", {"u": {1: 7, 0: 2}})
    said.describe("fresh")
    said.delete_offsets("nobody", "u")
    said.delete_group("fresh")
    said.delete_group("g")
    said.describe("g")


def rounds() -> Iterator[dict[str, Any]]:
    """The steps of a conversation with an Apache Kafka that is started for it."""
    with ApacheBroker(PROPERTIES) as broker, Client(broker.address) as client:
        said = Conversation(broker, client)
        converse(client, said)
    yield from said.steps


def main() -> None:
    steps = list(rounds())
    GOLDEN.write_text("".join(json.dumps(step) + "\n" for step in steps))
    print(f"{len(steps)} steps, {sum(len(step['records']) for step in steps)} records")


if __name__ == "__main__":
    main()
