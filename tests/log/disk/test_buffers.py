"""A read buffer is used again exactly when nothing refers to it any more."""

from __future__ import annotations

from pykafka_broker.log.disk.buffers import MAX_BYTES, MAX_KEPT, MIN_BYTES, ReadBuffers

LARGE = MIN_BYTES * 2


def test_a_buffer_without_references_is_used_again() -> None:
    buffers = ReadBuffers()
    first = buffers.take(LARGE)
    first[:3] = b"abc"
    del first

    assert bytes(buffers.take(LARGE)[:3]) == b"abc"


def test_a_buffer_that_is_still_held_is_never_given_away() -> None:
    buffers = ReadBuffers()
    held = buffers.take(LARGE)
    part = memoryview(held)[10:20]
    held[10:20] = b"0123456789"
    del held  # a slice keeps the buffer too

    for _ in range(3 * MAX_KEPT):
        other = buffers.take(LARGE)
        other[:] = bytes(LARGE)

    assert bytes(part) == b"0123456789"


def test_what_does_not_fit_the_kept_sizes_is_fresh() -> None:
    buffers = ReadBuffers()
    for size in (61, MIN_BYTES - 1, MAX_BYTES + 1):
        taken = buffers.take(size)
        assert len(taken) == size
        assert isinstance(taken, bytearray)


def test_no_more_buffers_are_kept_than_the_limit() -> None:
    buffers = ReadBuffers()
    held = [buffers.take(LARGE) for _ in range(MAX_KEPT + 5)]
    assert len({id(view.obj) for view in held if isinstance(view, memoryview)}) == MAX_KEPT + 5
    del held

    again = [buffers.take(LARGE) for _ in range(MAX_KEPT)]
    assert len({id(view.obj) for view in again if isinstance(view, memoryview)}) == MAX_KEPT
