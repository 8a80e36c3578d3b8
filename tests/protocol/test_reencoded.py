"""Our bytes of the messages that no client exchanges: Apache's own classes read them and wrote back the same.

`make reencode` asks them about every message, and keeps one encoding per version of these in `reencoded.txt`.
The end of this file shows that it can fail.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interop.reencode import complaints, samples_of
from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.schema import schema_of
from pykafka_broker.testing.apache.message_json import kafka_json
from pykafka_broker.testing.messages import as_of, everything, full

KNOWN = [line.split(" ") for line in (Path(__file__).parent / "reencoded.txt").read_text().splitlines()]
CLASSES: dict[str, type[Any]] = {schema_of(cls).name: cls for cls in everything()}


@pytest.mark.parametrize(("name", "version", "encoded"), KNOWN, ids=lambda value: value[:50])
def test_every_field_is_encoded_as_apache_does(name: str, version: str, encoded: str) -> None:
    message = as_of(full(CLASSES[name]), int(version))

    assert encode(message, int(version)).hex() == encoded
    assert decode(CLASSES[name], int(version), bytes.fromhex(encoded)) == (message, len(encoded) // 2)


def test_every_version_of_these_messages_is_there() -> None:
    names = {name for name, _, _ in KNOWN}

    assert {(name, int(version)) for name, version, _ in KNOWN} == {
        (name, version) for name in names for version in schema_of(CLASSES[name]).versions
    }
    assert {"PartitionRecord", "OffsetCommitValue", "VotersRecord", "RequestHeader"} <= names


HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=3, member_id="m", group_instance_id=None)
HEARTBEAT_HEX = "026700000003026d0000"
HEARTBEAT_JSON = '{"groupId":"g","generationId":3,"memberId":"m","groupInstanceId":null}'


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ([HEARTBEAT_HEX, HEARTBEAT_JSON, HEARTBEAT_HEX], []),
        (["", HEARTBEAT_JSON, HEARTBEAT_HEX], ["comes back as "]),
        ([HEARTBEAT_HEX, HEARTBEAT_JSON.replace("3", "4"), HEARTBEAT_HEX], ["is read as "]),
        ([HEARTBEAT_HEX, "java.lang.RuntimeException: no", HEARTBEAT_HEX], ["is read as "]),
        ([HEARTBEAT_HEX, HEARTBEAT_JSON, HEARTBEAT_HEX.replace("6d", "6e")], [" when Kafka encodes "]),
    ],
)
def test_any_disagreement_with_apaches_classes_is_a_complaint(
    answer: list[str], complaint: list[str]
) -> None:
    sample = list(samples_of(HEARTBEAT))[4]
    found = list(complaints(sample, answer))

    assert (sample.version, sample.encoded) == (4, HEARTBEAT_HEX)
    assert [part in text for part, text in zip(complaint, found, strict=True)] == [True] * len(found)


def test_kafkas_json_has_its_own_names_and_writes_bytes_in_base64() -> None:
    message = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=1,
        topic_data=[
            TopicProduceData(
                topic_id=bytes(15) + b"\xff",
                partition_data=[PartitionProduceData(index=0, records=b"\xff\xfe")],
            )
        ],
    )
    topic = {"topicId": "AAAAAAAAAAAAAAAAAAAA_w", "partitionData": [{"index": 0, "records": "//4="}]}

    assert kafka_json(message, 13) == {
        "transactionalId": None,
        "acks": -1,
        "timeoutMs": 1,
        "topicData": [topic],
    }
    topic["partitionData"] = [{"index": 0, "recordsSizeInBytes": 2}]
    assert kafka_json(message, 13, written=True)["topicData"] == [topic]
