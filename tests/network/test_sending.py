"""Large answers of a connection: a piece at a time, in order, and as fast as the peer reads."""

from __future__ import annotations

import errno
import logging
from typing import Any

import pytest

from pykafka_broker.apis.api import CLOSE, Later
from pykafka_broker.log.segment.stored_records import PIECE_BYTES
from pykafka_broker.network.limits import ConnectionLimits
from pykafka_broker.network.sending import PIECES_PER_TURN
from pykafka_broker.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from pykafka_broker.protocol.messages.produce import ProduceResponse
from pykafka_broker.testing.clock import settle
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import append, new_log, read_here
from tests.support.serving import API_VERSIONS, FETCH, Doors, Served, produce_of

ALL = 100_000_000


class Stored:
    """A log of at least so many bytes, and the handler that answers with all of it."""

    def __init__(self, size_bytes: int) -> None:
        self.files = MemoryFiles()
        self.log = new_log(self.files)
        while self.log.state.size_bytes < size_bytes:
            append(self.log, b"x" * 50_000)
        self.bytes = self.log.reader.plan_read(0, ALL).read()

    def fetch(self, request: Any, ctx: Any) -> FetchResponse:
        records = self.log.reader.plan_read(0, ALL).answer_cached(read_here)
        data = PartitionData(
            partition_index=0, error_code=0, high_watermark=1, aborted_transactions=None, records=records
        )
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])])

    def is_in(self, answer: FetchResponse) -> bool:
        return bytes(answer.responses[0].partitions[0].records or b"") == self.bytes


async def test_an_answer_read_from_its_file_is_the_frame_it_announces() -> None:
    stored = Stored(3 * PIECE_BYTES + 1)
    served = Served(fetch=stored.fetch)
    served.send(API_VERSIONS, FETCH, API_VERSIONS)
    await settle()

    (_, _), (_, fetched), (_, _) = served.answers()

    assert stored.is_in(fetched)
    assert served.shared.counters.bytes_sent == len(served.transport.written)


async def test_a_peer_that_does_not_read_keeps_one_piece_in_memory_and_starts_no_request() -> None:
    stored = Stored(PIECES_PER_TURN * PIECE_BYTES)
    served = Served(fetch=stored.fetch)
    served.transport.peer_reads = False
    served.send(FETCH)
    served.send(API_VERSIONS)
    await settle()
    assert PIECE_BYTES <= served.transport.unsent_bytes < PIECE_BYTES + 1000

    for _ in range(PIECES_PER_TURN + 1):
        unsent_bytes, served.transport.unsent_bytes = served.transport.unsent_bytes, 0
        assert unsent_bytes < PIECE_BYTES + 1000
        served.connection.resume_writing()
    await settle()

    assert served.answered() == [1, 2]


async def test_a_peer_that_reads_as_fast_as_we_send_leaves_turns_to_others() -> None:
    stored = Stored(PIECES_PER_TURN * PIECE_BYTES + 1)
    served = Served(fetch=stored.fetch)
    served.send(FETCH)

    assert 0 < len(served.transport.written) <= PIECES_PER_TURN * PIECE_BYTES + 1000
    await settle()
    assert served.answered() == [1]


async def test_answers_that_become_ready_meanwhile_go_behind() -> None:
    doors = Doors()
    stored = Stored(2 * PIECE_BYTES)
    served = Served(fetch=stored.fetch, produce=lambda request, ctx: Later(doors.wait()))
    served.transport.peer_reads = False
    served.send(FETCH, produce_of(b""))
    assert doors.waiting == [], "the fetch is being sent"
    served.transport.read_all()
    await settle()
    doors.open(ProduceResponse(responses=[]))
    await settle()
    assert served.answered() == [1, 2]


async def test_an_answer_written_while_a_large_one_is_being_sent_waits_for_its_end() -> None:
    doors = Doors()
    stored = Stored(2 * PIECE_BYTES)
    served = Served(fetch=stored.fetch, produce=lambda request, ctx: Later(doors.wait()))
    served.send(produce_of(b""), FETCH, produce_of(b""))
    await settle()
    served.transport.peer_reads = False
    doors.open(ProduceResponse(responses=[]))
    await settle()
    doors.open(ProduceResponse(responses=[]))
    await settle()
    served.transport.read_all()
    await settle()

    assert served.answered() == [1, 2, 3]
    assert stored.is_in(served.answers()[1][1])


async def test_a_request_that_closes_the_connection_is_the_last_one_behind_a_large_answer_too() -> None:
    doors = Doors()
    stored = Stored(2 * PIECE_BYTES)
    verdicts = [Later(doors.wait()), CLOSE, Later(doors.wait())]
    served = Served(fetch=stored.fetch, produce=lambda request, ctx: verdicts.pop(0))
    served.send(produce_of(b""), FETCH, produce_of(b"", acks=0), produce_of(b""))
    await settle()
    served.transport.peer_reads = False
    doors.open(ProduceResponse(responses=[]))
    await settle()
    served.transport.read_all()
    await settle()

    assert served.answered() == [1, 2]
    assert served.connection.closed


async def test_pieces_that_left_the_page_cache_are_read_without_blocking_the_event_loop() -> None:
    stored = Stored(3 * PIECE_BYTES)
    served = Served(fetch=stored.fetch)
    served.transport.peer_reads = False
    served.send(FETCH)
    stored.files.is_cached = False
    served.transport.read_all()
    await settle()

    ((_, fetched),) = served.answers()
    assert stored.is_in(fetched)


async def test_a_disk_that_fails_on_the_way_ends_the_connection_with_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stored = Stored(3 * PIECE_BYTES)
    served = Served(fetch=stored.fetch)
    served.transport.peer_reads = False
    served.send(FETCH)
    stored.files.is_cached = False
    stored.files.fail("pread", errno.EIO)
    with caplog.at_level(logging.WARNING):
        served.transport.read_all()
        await settle()

    assert served.transport.aborted
    (line,) = caplog.records
    assert (line.levelname, line.exc_info) == ("ERROR", None)
    assert "PLAINTEXT-10.0.0.7:50123: a log cannot be read while it is sent" in line.getMessage()


async def test_so_does_a_connection_whose_answer_cannot_be_read_for_any_other_reason() -> None:
    stored = Stored(3 * PIECE_BYTES)
    served = Served(fetch=stored.fetch)
    served.transport.peer_reads = False
    served.send(FETCH)
    stored.files.is_cached = False
    stored.files.meanwhile = fail_to_read
    served.transport.read_all()
    await settle()
    assert served.transport.aborted


def fail_to_read(operation: str, path: str) -> None:
    if operation == "pread":
        raise RuntimeError("can't start new thread")


async def test_closing_waits_for_what_is_being_sent() -> None:
    stored = Stored(3 * PIECE_BYTES)
    served = Served(fetch=stored.fetch)
    served.transport.peer_reads = False
    served.send(FETCH)
    served.connection.finish()
    before = served.transport.closing
    served.transport.read_all()
    await settle()

    assert (before, served.transport.closing) == (False, True)
    assert stored.is_in(served.answers()[0][1])


async def test_a_peer_that_closed_its_side_still_gets_what_it_asked_for() -> None:
    stored = Stored(3 * PIECE_BYTES)
    served = Served(fetch=stored.fetch)
    served.transport.peer_reads = False
    served.send(FETCH)
    assert served.connection.eof_received(), "the transport stays open"
    served.transport.read_all()
    await settle()

    assert served.transport.closing
    assert stored.is_in(served.answers()[0][1])


async def test_a_peer_that_goes_away_is_sent_nothing_more() -> None:
    stored = Stored(3 * PIECE_BYTES)
    served = Served(fetch=stored.fetch)
    served.transport.peer_reads = False
    served.send(FETCH)
    sent_bytes = len(served.transport.written)
    served.transport.disconnect()
    served.connection.resume_writing()
    await settle()

    assert len(served.transport.written) == sent_bytes


async def test_a_peer_that_reads_a_piece_now_and_then_is_neither_stalled_nor_idle() -> None:
    stored = Stored(PIECES_PER_TURN * PIECE_BYTES)
    served = Served(fetch=stored.fetch, limits=ConnectionLimits(stalled_ms=60_000, idle_ms=90_000))
    served.transport.peer_reads = False
    served.send(FETCH)
    for _ in range(PIECES_PER_TURN - 1):
        served.connection.check(served.clock.monotonic_ms())
        served.clock.advance(50_000)
        served.transport.unsent_bytes = 0
        served.connection.resume_writing()
        assert served.transport.unsent_bytes >= PIECE_BYTES, "as much is unsent as before"
    served.connection.check(served.clock.monotonic_ms())
    assert not served.transport.aborted

    served.clock.advance(60_000)
    served.connection.check(served.clock.monotonic_ms())
    assert served.transport.aborted, "now it has read nothing for a minute"
