"""Frames from the client's side: whole requests out, pieces of responses in."""

from __future__ import annotations

import pytest

from pykafka_broker.client.core.frames import (
    FrameCutter,
    correlation_id_of,
    framed,
    has_response,
    read_response,
    request_frame,
    request_header,
)
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.frames import LENGTH_BYTES
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pykafka_broker.protocol.messages.metadata import MetadataRequest
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

HEARTBEAT = 12
LANDINGS = [LENGTH_BYTES, 8, 64, 1024]


def cut(cutter: FrameCutter, data: bytes, step: int) -> list[bytes]:
    """The frames in `data`, which arrives in pieces of at most `step` bytes."""
    frames = []
    while True:
        while (frame := cutter.next_frame()) is not None:
            frames.append(bytes(frame))
        if not data:
            return frames
        buffer = cutter.get_buffer()
        size = min(len(buffer), len(data), step)
        assert size > 0
        buffer[:size] = data[:size]
        data = data[size:]
        cutter.received(size)


@pytest.mark.parametrize("landing_bytes", LANDINGS)
@pytest.mark.parametrize("step", [1, 3, 7, 4096])
def test_frames_come_out_however_their_bytes_came_in(landing_bytes: int, step: int) -> None:
    frames = [b"a", b"bc" * 3, b"d" * 70, b"e", b"f" * 2000, b"g" * 5]
    cutter = FrameCutter("a broker", landing_bytes)
    assert cut(cutter, b"".join(map(framed, frames)), step) == frames


def test_a_small_landing_never_asks_for_bytes_of_the_next_frame() -> None:
    cutter = FrameCutter("a broker")
    asked = []
    for part in (b"\0\0\0\3", b"abc", b"\0\0\0\1", b"d"):
        asked.append(len(cutter.get_buffer()))
        assert cut(cutter, part, 100) == ([part] if part.isalpha() else [])
    assert asked == [4, 3, 4, 1]


def test_a_frame_stays_valid_when_the_next_one_comes() -> None:
    cutter = FrameCutter("a broker", 64)
    first, second = b"first", b"other"
    cutter.get_buffer()[: 2 * 9] = framed(first) + framed(second)
    cutter.received(2 * 9)
    kept = cutter.next_frame()
    cut(cutter, framed(b"x" * 60), 100)
    assert kept == first


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (b"\xff\xff\xff\xff", "a broker announces a response of -1 bytes"),
        (b"\0\0\0\0", "a broker announces a response of 0 bytes"),
        (b"\0\0\0\x65", "a broker announces a response of 101 bytes"),
        (b"HTTP", "a broker announces a response of 1213486160 bytes, and seems to speak HTTP"),
        (b"\x15\x03\x01\x00", "a broker announces a response of 352518400 bytes, and seems to speak TLS"),
    ],
)
def test_what_cannot_be_the_length_of_a_response_is_refused(first: bytes, said: str) -> None:
    with pytest.raises(ProtocolError) as error:
        cut(FrameCutter("a broker", max_frame_bytes=100), first, 4)
    assert str(error.value) == said


def test_a_request_is_its_length_its_header_and_its_body() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=2, member_id="m")
    assert request_frame(request, 0, 7, "me") == (
        b"\0\0\0\x16" + b"\0\x0c\0\0" + b"\0\0\0\7" + b"\0\2me" + b"\0\1g" + b"\0\0\0\2" + b"\0\1m"
    )


def test_a_header_can_be_made_for_a_version_that_does_not_exist() -> None:
    assert request_header(HEARTBEAT, 99, 1, None) == b"\0\x0c\0\x63\0\0\0\1\xff\xff\0"


def test_records_stand_in_the_frame_of_their_request() -> None:
    data = PartitionProduceData(index=0, records=[b"one", b"two"])
    topics = [TopicProduceData(name="t", partition_data=[data])]
    frame = request_frame(ProduceRequest(acks=-1, timeout_ms=1, topic_data=topics), 9)
    assert b"onetwo" in frame
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4


@pytest.mark.parametrize(
    ("version", "frame"),
    [(0, b"\0\0\0\7" + b"\0\x10"), (4, b"\0\0\0\7\0" + b"\0\0\0\0" + b"\0\x10" + b"\0")],
)
def test_a_response_is_read_behind_the_header_of_its_version(version: int, frame: bytes) -> None:
    response = read_response(HEARTBEAT, version, frame + b"more")
    assert response == (7, HeartbeatResponse(error_code=16, throttle_time_ms=0), len(frame))
    assert correlation_id_of(frame) == 7


def test_a_frame_without_room_for_a_header_is_no_response() -> None:
    with pytest.raises(ProtocolError, match="a response of 3 bytes has no header"):
        correlation_id_of(b"abc")


def test_only_a_produce_request_can_want_no_response() -> None:
    acks = [ProduceRequest(acks=acks, timeout_ms=1, topic_data=[]) for acks in (-1, 0, 1)]
    assert [has_response(request) for request in (*acks, MetadataRequest(topics=None))] == [
        True,
        False,
        True,
        True,
    ]
