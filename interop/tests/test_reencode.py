"""`make reencode` can fail: every other answer of Apache Kafka's classes is a complaint."""

from __future__ import annotations

import pytest

from interop.reencode import complaints, samples_of
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest

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
