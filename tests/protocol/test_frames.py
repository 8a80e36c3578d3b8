"""FrameReader: bytes in any pieces, the same frames out, and no more memory than bytes received."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.frames import (
    LANDING_BYTES,
    LARGE_FRAME_BYTES,
    SMALL_REST_BYTES,
    SMALL_ROUNDS_BEFORE_RELEASE,
    FrameReader,
    Landing,
)

MAX_BYTES = 8 * 1024 * 1024


def framed(*payloads: bytes) -> bytes:
    return b"".join(len(payload).to_bytes(4, "big") + payload for payload in payloads)


def payload_of(size: int, seed: int = 1) -> bytes:
    return bytes((seed + i) % 251 for i in range(min(size, 251))) * (size // min(size, 251) + 1)


def sized(size: int, seed: int = 1) -> bytes:
    return payload_of(size, seed)[:size]


def new_reader(landing: Landing | None = None) -> FrameReader:
    return FrameReader(landing or Landing(), MAX_BYTES)


def rounds(reader: FrameReader, data: bytes, step: int = LANDING_BYTES) -> list[bytes]:
    """Feed `data` in rounds of at most `step` bytes; copies of the frames."""
    frames = []
    view = memoryview(data)
    while view:
        buffer = reader.get_buffer()
        size = min(step, len(buffer), len(view))
        buffer[:size] = view[:size]
        reader.received(size)
        view = view[size:]
        while (frame := reader.next_frame()) is not None:
            frames.append(bytes(frame))
        reader.settle()
    return frames


def test_several_frames_of_one_round_come_out_one_by_one() -> None:
    reader = new_reader()
    assert rounds(reader, framed(b"one", b"two", b"three")) == [b"one", b"two", b"three"]
    assert (reader.pending_bytes, reader.held_bytes) == (0, 0)


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_frame_may_be_cut_at_every_byte(cut: int) -> None:
    stream = framed(b"first", b"the second")
    reader = new_reader()
    assert rounds(reader, stream[:cut]) + rounds(reader, stream[cut:]) == [b"first", b"the second"]


@pytest.mark.parametrize("size", [100, SMALL_REST_BYTES + 1])
def test_what_is_pending_can_be_looked_at_between_rounds(size: int) -> None:
    reader = new_reader()
    rest = framed(sized(size))[:-1]
    assert rounds(reader, framed(b"first") + rest) == [b"first"]
    assert reader.pending == rest
    assert rounds(reader, framed(sized(size))[-1:]) == [sized(size)]
    assert bytes(reader.pending) == b""


@given(
    sizes=st.lists(
        st.sampled_from([1, 3, 100, SMALL_REST_BYTES, LARGE_FRAME_BYTES + 1, 300_000, 1_100_000]), max_size=6
    ),
    step=st.sampled_from([1_000, 5_003, 70_000, LANDING_BYTES, 10_000_000]),
)
def test_any_sizes_in_any_pieces_give_the_same_frames(sizes: list[int], step: int) -> None:
    payloads = [sized(size, seed) for seed, size in enumerate(sizes)]
    reader = new_reader()
    assert rounds(reader, framed(*payloads), step) == payloads
    assert reader.pending_bytes == 0


def test_a_frame_fed_byte_by_byte_is_whole() -> None:
    payload = sized(SMALL_REST_BYTES + 500)
    assert rounds(new_reader(), framed(payload), step=1) == [payload]


def test_frames_are_views_into_the_buffer_not_copies() -> None:
    reader = new_reader()
    stream = framed(b"payload")
    buffer = reader.get_buffer()
    buffer[: len(stream)] = stream
    reader.received(len(stream))
    frame = reader.next_frame()
    assert frame is not None
    frame[0] = ord("P")
    assert bytes(buffer[4:11]) == b"Payload"


def test_readers_of_one_loop_share_the_landing_and_not_their_rests() -> None:
    landing = Landing()
    mine, other = new_reader(landing), new_reader(landing)
    assert rounds(mine, framed(b"mine")[:6]) == []
    assert rounds(other, framed(b"other")[:7]) == []
    assert rounds(mine, framed(b"mine")[6:]) == [b"mine"]
    assert rounds(other, framed(b"other")[7:]) == [b"other"]


def test_asking_for_room_and_then_receiving_nothing_loses_nothing() -> None:
    landing = Landing()
    mine, other = new_reader(landing), new_reader(landing)
    assert rounds(mine, framed(b"mine")[:6]) == []
    mine.get_buffer()
    assert rounds(other, framed(b"other")) == [b"other"]
    assert rounds(mine, framed(b"mine")[6:]) == [b"mine"]


def test_frames_whose_turn_has_not_come_wait_for_a_later_round() -> None:
    landing = Landing()
    reader = new_reader(landing)
    stream = framed(b"now", b"later", b"last")
    buffer = reader.get_buffer()
    buffer[: len(stream)] = stream
    reader.received(len(stream))
    first = reader.next_frame()
    assert first is not None and bytes(first) == b"now"
    reader.settle()
    rounds(new_reader(landing), framed(b"another frame was here"))

    reader.land()
    assert [bytes(reader.next_frame() or b""), bytes(reader.next_frame() or b"")] == [b"later", b"last"]
    reader.settle()
    assert reader.pending_bytes == 0


def test_a_frame_put_back_comes_out_again() -> None:
    landing = Landing()
    reader = new_reader(landing)
    stream = framed(b"first", b"second")
    buffer = reader.get_buffer()
    buffer[: len(stream)] = stream
    reader.received(len(stream))
    frame = reader.next_frame()
    assert frame is not None
    reader.put_back(frame)
    reader.settle()
    rounds(new_reader(landing), framed(b"another frame was here"))

    reader.land()
    assert [bytes(reader.next_frame() or b""), bytes(reader.next_frame() or b"")] == [b"first", b"second"]


@pytest.mark.parametrize("length", [0, -1, -(2**31), MAX_BYTES + 1, 2**31 - 1])
def test_a_length_that_no_frame_can_have_is_refused_before_anything_is_allocated(length: int) -> None:
    reader = new_reader()
    with pytest.raises(ProtocolError, match="Invalid receive"):
        rounds(reader, length.to_bytes(4, "big", signed=True))
    assert reader.held_bytes == 0


def test_the_largest_frame_is_accepted() -> None:
    payload = bytes(MAX_BYTES)
    assert rounds(new_reader(), framed(payload)) == [payload]


@pytest.mark.parametrize(
    ("first", "protocol"),
    [(b"GET / HTTP/1.1\r\n", "HTTP"), (b"\x16\x03\x01\x02\x00\x01", "TLS")],
)
def test_the_refusal_names_the_protocol_of_a_peer_on_the_wrong_port(first: bytes, protocol: str) -> None:
    with pytest.raises(ProtocolError, match=f"speak {protocol}"):
        rounds(new_reader(), first)


def test_a_peer_that_announces_much_and_sends_little_costs_little() -> None:
    reader = new_reader()
    rounds(reader, MAX_BYTES.to_bytes(4, "big"))
    assert reader.held_bytes == 4
    rounds(reader, bytes(1_000))
    assert reader.held_bytes == 1_004


def test_a_buffer_grows_with_the_bytes_received_and_never_beyond_twice_of_them() -> None:
    reader = new_reader()
    stream = framed(bytes(MAX_BYTES))
    for start in range(0, len(stream), 100_000):
        piece = stream[start : start + 100_000]
        rounds(reader, piece)
        assert reader.held_bytes <= 2 * (start + len(piece))


def test_a_steady_flow_of_large_frames_lands_at_the_front_of_one_buffer() -> None:
    reader = new_reader()
    payload = sized(1_000_000)
    rounds(reader, framed(payload))
    buffer = reader.get_buffer()
    for _ in range(5):
        assert rounds(reader, framed(payload)) == [payload]
        assert reader.get_buffer().obj is buffer.obj
    # The next read ends where the last frame ended: nothing of a frame after it would have to be moved.
    assert len(reader.get_buffer()) == 4 + len(payload)


def test_the_buffer_is_given_back_when_frames_have_become_small() -> None:
    reader = new_reader()
    rounds(reader, framed(sized(1_000_000)))
    assert reader.held_bytes >= 1_000_000
    for _ in range(SMALL_ROUNDS_BEFORE_RELEASE + 1):
        rounds(reader, framed(b"small"))
    assert reader.held_bytes == 0


def test_a_resting_reader_gives_its_buffer_back_and_one_in_the_middle_of_a_frame_does_not() -> None:
    reader = new_reader()
    rounds(reader, framed(sized(1_000_000)))
    reader.release()
    assert reader.held_bytes == 0

    stream = framed(sized(1_000_000))
    rounds(reader, stream[:500_000])
    reader.release()
    assert rounds(reader, stream[500_000:]) == [sized(1_000_000)]


def test_a_closed_reader_holds_nothing() -> None:
    reader = new_reader()
    rounds(reader, framed(sized(1_000_000))[:500_000])
    reader.close()
    assert (reader.held_bytes, reader.pending_bytes) == (0, 0)
