"""One connection: order of answers, holds, back-pressure, and what bad peers and bad handlers get."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import struct
from typing import Any

import pytest

from pykafka_broker.apis.api import CLOSE, NO_RESPONSE, Later
from pykafka_broker.cli.logging_setup import JsonFormatter
from pykafka_broker.network.limits import ConnectionLimits
from pykafka_broker.network.memory import RequestMemory, UnsentAnswers
from pykafka_broker.network.purgatory import Disconnected
from pykafka_broker.protocol.compile import decode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.messages.api_versions import ApiVersionsResponse
from pykafka_broker.protocol.messages.fetch import FetchResponse
from pykafka_broker.protocol.messages.heartbeat import HeartbeatResponse
from pykafka_broker.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from pykafka_broker.protocol.messages.produce import ProduceResponse
from pykafka_broker.testing.clock import settle
from tests.support.serving import (
    API_VERSIONS,
    FETCH,
    HEARTBEAT,
    LIST_GROUPS,
    Doors,
    Peer,
    Served,
    frame,
    produce_of,
)

BEATEN = HeartbeatResponse(error_code=0)
LISTED = ListGroupsResponse(error_code=0, groups=[])
PRODUCED = ProduceResponse(responses=[])


def listing_of(size_bytes: int) -> ListGroupsResponse:
    """An answer of about so many bytes."""
    group = ListedGroup(group_id="g" * 1000, protocol_type="consumer")
    return ListGroupsResponse(error_code=0, groups=[group] * (size_bytes // 1000))


def beat(request: Any, ctx: Any) -> HeartbeatResponse:
    return BEATEN


# Answers and their order.


async def test_a_request_is_answered_with_its_correlation_id() -> None:
    served = Served()
    served.send(API_VERSIONS)
    assert served.answers() == [(1, ApiVersionsResponse(error_code=0, api_keys=[], throttle_time_ms=0))]


async def test_requests_that_arrive_together_are_answered_in_one_write() -> None:
    served = Served(heartbeat=beat)
    served.send(API_VERSIONS, HEARTBEAT, API_VERSIONS, HEARTBEAT)
    assert served.answered() == [1, 2, 3, 4]
    assert served.transport.writes == 1


async def test_a_stream_cut_at_every_byte_is_answered_alike() -> None:
    stream = Peer().requests(API_VERSIONS, HEARTBEAT, LIST_GROUPS)
    whole = Served(heartbeat=beat, list_groups=lambda request, ctx: LISTED)
    whole.transport.feed(stream)
    for cut in range(1, len(stream)):
        served = Served(heartbeat=beat, list_groups=lambda request, ctx: LISTED)
        served.transport.feed(stream[:cut])
        served.transport.feed(stream[cut:])
        assert served.transport.written == whole.transport.written


async def test_the_context_says_who_asks_what() -> None:
    seen: list[tuple[Any, ...]] = []

    def handler(request: Any, ctx: Any) -> HeartbeatResponse:
        seen.append((ctx.api_key, ctx.version, ctx.correlation_id, ctx.client_id, ctx.principal))
        seen.append((ctx.connection.client_host, ctx.connection.listener_name, ctx.connection.local_address))
        return BEATEN

    served = Served(heartbeat=handler)
    served.send(HEARTBEAT)
    assert seen == [(12, 4, 1, "tester", "User:ANONYMOUS"), ("/10.0.0.7", "PLAINTEXT", ("127.0.0.1", 9092))]


@pytest.mark.parametrize(
    ("name", "client_id"),
    [
        (None, None),
        (b"", ""),
        (b"b\xc3\xa4r", "bär"),
        (b"\xff\x00", "\ufffd\x00"),
        (b"x" * 32767, "x" * 32767),
    ],
)
async def test_any_client_id_is_accepted(name: bytes | None, client_id: str | None) -> None:
    seen = []

    def handler(request: Any, ctx: Any) -> HeartbeatResponse:
        seen.append(ctx.client_id)
        return BEATEN

    served = Served(heartbeat=handler)
    length = struct.pack(">h", -1) if name is None else struct.pack(">h", len(name)) + name
    body = b"\x02g\0\0\0\x01\x02m\0\0"
    for _ in range(2):
        served.transport.feed(frame(struct.pack(">hhi", 12, 4, -1) + length + b"\0" + body))
    assert seen == [client_id, client_id]


async def test_tags_in_the_request_header_are_skipped() -> None:
    served = Served(heartbeat=beat)
    header = struct.pack(">hhih", 12, 4, 1, 0)
    tags = b"\x02" + b"\x07\x03abc" + b"\x01\x00"
    served.transport.feed(frame(header + tags + b"\x02g\0\0\0\x01\x02m\0\0"))
    assert served.connection.outstanding_answers == 0
    assert bytes(served.transport.written[4:8]) == struct.pack(">i", 1)


async def test_a_later_answer_lets_the_next_request_start_and_keeps_its_place() -> None:
    doors = Doors()
    served = Served(produce=lambda request, ctx: Later(doors.wait()), heartbeat=beat)
    served.send(produce_of(b"1"), HEARTBEAT, produce_of(b"2"), API_VERSIONS)
    await settle()
    assert (len(doors.waiting), served.answered()) == (2, [])

    doors.open(PRODUCED, index=1)
    await settle()
    assert served.answered() == []

    doors.open(PRODUCED)
    await settle()
    assert served.answered() == [1, 2, 3, 4]


async def test_a_handler_that_takes_time_holds_the_next_request_back() -> None:
    doors = Doors()
    started = []

    async def slow(request: Any, ctx: Any) -> HeartbeatResponse:
        started.append(ctx.correlation_id)
        await doors.wait()
        return BEATEN

    served = Served(heartbeat=slow)
    served.send(HEARTBEAT, HEARTBEAT, API_VERSIONS)
    await settle()
    assert started == [1]

    doors.open()
    await settle()
    assert (started, served.answered()) == ([1, 2], [1])

    doors.open()
    await settle()
    assert served.answered() == [1, 2, 3]


async def test_a_plain_handler_may_return_a_coroutine_when_it_has_to_wait() -> None:
    doors = Doors()

    async def parked() -> HeartbeatResponse:
        await doors.wait()
        return BEATEN

    served = Served(heartbeat=lambda request, ctx: parked())
    served.send(HEARTBEAT, API_VERSIONS)
    await settle()
    assert served.answered() == []
    doors.open()
    await settle()
    assert served.answered() == [1, 2]


async def test_coroutines_that_never_wait_are_answered_in_the_turn_of_their_requests() -> None:
    async def quick(request: Any, ctx: Any) -> HeartbeatResponse:
        return BEATEN

    served = Served(heartbeat=quick)
    served.send(HEARTBEAT, API_VERSIONS, HEARTBEAT)
    assert (served.answered(), served.transport.writes) == ([1, 2, 3], 1)


async def test_a_coroutine_that_waits_for_what_fails_can_catch_it_and_wait_again() -> None:
    doors = Doors()

    async def stubborn(request: Any, ctx: Any) -> HeartbeatResponse:
        for _ in range(2):
            try:
                await doors.wait()
            except KafkaError:
                await asyncio.sleep(0)
        return BEATEN

    served = Served(heartbeat=stubborn)
    served.send(HEARTBEAT)
    for _ in range(2):
        assert served.answered() == []
        doors.waiting.pop().set_exception(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        await settle()
    assert served.answered() == [1]


async def test_a_coroutine_whose_first_wait_fails_may_answer_at_once() -> None:
    doors = Doors()

    async def forgiving(request: Any, ctx: Any) -> HeartbeatResponse:
        try:
            await doors.wait()
        except KafkaError:
            return BEATEN
        raise AssertionError("nothing failed")

    served = Served(heartbeat=forgiving)
    served.send(HEARTBEAT, API_VERSIONS)
    doors.waiting.pop().set_exception(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    await settle()
    assert served.answered() == [1, 2]


async def test_others_have_their_turn_between_the_coroutines_of_one_connection() -> None:
    async def quick(request: Any, ctx: Any) -> HeartbeatResponse:
        return BEATEN

    served = Served(limits=ConnectionLimits(requests_per_round=30), heartbeat=quick)
    served.send(*[HEARTBEAT] * 8)
    assert served.answered() == [1, 2, 3]
    await settle()
    assert served.answered() == list(range(1, 9))


async def test_no_more_requests_start_than_answers_may_be_outstanding() -> None:
    doors = Doors()
    served = Served(
        limits=ConnectionLimits(outstanding_answers=2), produce=lambda request, ctx: Later(doors.wait())
    )
    served.send(*[produce_of(b"x")] * 5)
    await settle()
    assert len(doors.waiting) == 2

    doors.open(PRODUCED)
    await settle()
    assert (len(doors.waiting), served.answered()) == (2, [1])

    while doors.waiting:
        doors.open(PRODUCED)
        await settle()
    assert served.answered() == [1, 2, 3, 4, 5]


async def test_acks_0_gets_no_answer_and_an_error_closes_after_the_answers_before_it() -> None:
    doors = Doors()
    verdicts = [NO_RESPONSE, Later(doors.wait()), CLOSE]
    served = Served(produce=lambda request, ctx: verdicts.pop(0))
    served.send(produce_of(b"1", acks=0), produce_of(b"2"), produce_of(b"3", acks=0), API_VERSIONS)
    await settle()
    assert (served.answered(), served.transport.closing) == ([], False)

    doors.open(PRODUCED)
    await settle()
    assert served.answered() == [2]
    assert served.connection.closed


async def test_closing_on_an_acks_0_error_sends_what_was_answered_before() -> None:
    served = Served(produce=lambda request, ctx: CLOSE)
    served.send(API_VERSIONS, produce_of(b"x", acks=0), API_VERSIONS)
    assert served.answered() == [1]
    assert served.transport.closing


async def test_ten_thousand_pipelined_requests_are_answered_in_order_and_in_turns() -> None:
    served = Served()
    requests = served.peer.requests(*[API_VERSIONS] * 10_000)
    taken = served.transport.offer(requests)
    assert 0 < len(served.answered()) < 1_000
    while taken < len(requests):
        await settle(1)
        taken += served.transport.offer(requests[taken:])
    await settle(50)
    assert served.answered() == list(range(1, 10_001))


async def test_a_flood_of_small_requests_is_not_read_faster_than_it_is_served() -> None:
    served = Served()
    flood = served.peer.requests(*[API_VERSIONS] * 40_000)
    taken = 0
    while taken < len(flood):
        taken += served.transport.offer(flood[taken:])
        assert served.shared.request_memory.used_bytes <= 2 * len(served.shared.landing.view)
        await settle(1)
    await settle(50)
    assert served.answered() == list(range(1, 40_001))


async def test_random_kinds_of_handlers_answer_in_order() -> None:
    dice = random.Random(7)
    doors = Doors()

    async def slow(request: Any, ctx: Any) -> ListGroupsResponse:
        await doors.wait()
        return LISTED

    served = Served(heartbeat=beat, list_groups=slow, produce=lambda request, ctx: Later(doors.wait()))
    kinds = [dice.choice([API_VERSIONS, HEARTBEAT, LIST_GROUPS, produce_of(b"x")]) for _ in range(300)]
    served.transport.feed(served.peer.requests(*kinds), step=100)
    await settle()
    while doors.waiting:
        doors.open(PRODUCED, index=dice.randrange(len(doors.waiting)))
        await settle(3)
    assert served.answered() == list(range(1, 301))


# Records are not copied.


async def test_records_are_a_view_of_the_receive_buffer() -> None:
    seen = []

    def append(request: Any, ctx: Any) -> ProduceResponse:
        records = request.topic_data[0].partition_data[0].records
        assert isinstance(records, memoryview)
        seen.append((bytes(records), records.readonly, records.obj))
        return PRODUCED

    served = Served(produce=append)
    landing = served.shared.landing.view.obj
    served.send(produce_of(b"small records"))
    assert seen.pop() == (b"small records", False, landing)

    large = bytes(1_000_000)
    served.send(produce_of(large))
    data, readonly, _ = seen.pop()
    assert (data, readonly) == (large, False)


async def test_a_coroutine_sees_the_same_view_until_it_waits() -> None:
    seen = []

    async def append(request: Any, ctx: Any) -> ProduceResponse:
        records = request.topic_data[0].partition_data[0].records
        seen.append((bytes(records), records.obj))
        return PRODUCED

    served = Served(produce=append)
    served.send(produce_of(b"mine"))
    assert seen == [(b"mine", served.shared.landing.view.obj)]


# Versions and bad peers.


@pytest.mark.parametrize("version", [5, 99, 32767, -1, -32768])
async def test_an_unserved_api_versions_gets_the_v0_body_and_its_own_row_alone(version: int) -> None:
    served = Served()
    unparseable = b"\x00\x01?" + b"\xff" * 20
    served.transport.feed(frame(struct.pack(">hhi", 18, version, 77) + unparseable))

    answer = bytes(served.transport.written)
    assert struct.unpack_from(">ii", answer) == (len(answer) - 4, 77)
    message, end = decode(ApiVersionsResponse, 0, answer, 8)
    assert end == len(answer)
    assert message.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(row.api_key, row.min_version, row.max_version) for row in message.api_keys] == [(18, 0, 4)]

    served.transport.written.clear()
    served.send(API_VERSIONS)
    assert served.answered() == [1]


@pytest.mark.parametrize(
    ("key", "version"),
    [(0, 2), (0, 14), (12, 5), (12, -1), (17, 0), (93, 0), (-1, 0), (32767, 0), (-32768, -32768)],
)
async def test_any_other_unserved_api_or_version_closes_the_connection(
    key: int, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    served = Served(heartbeat=beat, produce=lambda request, ctx: PRODUCED)
    served.transport.feed(
        served.peer.request(API_VERSIONS) + frame(struct.pack(">hhih", key, version, 2, -1) + bytes(40))
    )
    assert served.answered() == [1]
    assert served.transport.closing
    [line] = caplog.records
    assert line.levelname == "WARNING" and "not served" in line.getMessage() and line.exc_info is None


BAD_BYTES = {
    "zero length": bytes(4),
    "negative length": b"\xff\xff\xff\xff",
    "too long": (100 * 1024 * 1024 + 1).to_bytes(4, "big"),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303"),
    "no header": frame(b"\0"),
    "cut header": frame(struct.pack(">hhi", 12, 4, 1) + b"\0"),
    "client id too long": frame(struct.pack(">hhih", 12, 4, 1, 100) + b"short"),
    "client id and nothing": frame(struct.pack(">hhih", 12, 4, 1, 0)),
    "header v1 where v2 is due": frame(struct.pack(">hhih", 12, 4, 1, -1) + b"\x02g\0\0\0\x01\x02m\0\0"),
    "endless tags": frame(struct.pack(">hhih", 12, 4, 1, -1) + b"\xff" * 50),
    "cut body": frame(struct.pack(">hhih", 12, 4, 1, -1) + b"\0\x02g"),
}


async def test_garbage_after_a_good_request_does_not_take_its_answer_away() -> None:
    doors = Doors()
    served = Served(produce=lambda request, ctx: Later(doors.wait()))
    served.transport.feed(served.peer.request(produce_of(b"x")) + bytes(4))
    await settle()
    doors.open(PRODUCED)
    await settle()
    assert (served.answered(), served.connection.closed) == ([1], True)


@pytest.mark.parametrize("data", BAD_BYTES.values(), ids=BAD_BYTES.keys())
async def test_bytes_that_are_no_request_close_the_connection_with_one_line(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    served = Served(heartbeat=beat)
    served.transport.feed(data)
    await settle()
    assert served.connection.closed
    assert served.transport.written == b""
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("WARNING", None)]


async def test_a_misbehaving_peer_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    first = Served()
    for _ in range(50):
        Served(clock=first.clock, shared=first.shared).transport.feed(bytes(4))
    first.clock.advance(60_000)
    Served(clock=first.clock, shared=first.shared).transport.feed(bytes(4))
    assert len(caplog.records) == 2
    assert "49 more" in caplog.records[1].getMessage()


async def test_random_garbage_closes_or_is_ignored_but_never_raises() -> None:
    dice = random.Random(3)
    valid = Peer().requests(API_VERSIONS, HEARTBEAT)
    for _ in range(2_000):
        served = Served(heartbeat=beat)
        data = bytearray(valid)
        for _ in range(dice.randrange(1, 6)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        served.transport.feed(bytes(data[: dice.randrange(1, len(data) + 1)]))
    await settle()


async def test_bytes_after_the_end_of_a_request_are_ignored() -> None:
    served = Served(heartbeat=beat)
    request = served.peer.request(HEARTBEAT)
    served.transport.feed(frame(request[4:] + b"trailing"))
    assert served.answered() == [1]


# Handlers that fail.


async def test_a_handlers_exception_is_logged_with_its_traceback_and_closes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(request: Any, ctx: Any) -> None:
        raise ZeroDivisionError("our fault")

    served = Served(heartbeat=broken)
    neighbour = Served(shared=served.shared)
    served.send(API_VERSIONS, HEARTBEAT, API_VERSIONS)
    await settle()
    assert (served.answered(), served.connection.closed) == ([1], True)
    [record] = caplog.records
    assert record.levelname == "ERROR" and record.exc_info and record.exc_info[0] is ZeroDivisionError
    told = json.loads(JsonFormatter().format(record))
    assert (told["api"], told["correlation_id"], told["client_id"]) == ("Heartbeat", 2, "tester")
    neighbour.send(API_VERSIONS)
    assert neighbour.answered() == [1]


async def test_a_failure_that_a_client_repeats_is_not_logged_as_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(request: Any, ctx: Any) -> None:
        raise ZeroDivisionError("our fault")

    first = Served(heartbeat=broken)
    for _ in range(20):
        Served(shared=first.shared, heartbeat=broken).send(HEARTBEAT)
    assert len(caplog.records) == 1


async def test_a_coroutines_exception_is_treated_alike(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(request: Any, ctx: Any) -> None:
        raise ZeroDivisionError("our fault")

    served = Served(heartbeat=broken)
    served.send(API_VERSIONS, HEARTBEAT, API_VERSIONS)
    await settle()
    assert (served.answered(), served.connection.closed) == ([1], True)
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_an_error_that_the_api_can_express_is_answered() -> None:
    def refused(request: Any, ctx: Any) -> None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def express(request: Any, error: KafkaError) -> HeartbeatResponse:
        return HeartbeatResponse(error_code=int(error.code))

    served = Served(heartbeat=refused, error_response=express)
    served.send(HEARTBEAT, API_VERSIONS)
    assert served.answers()[0] == (1, HeartbeatResponse(error_code=int(ErrorCode.COORDINATOR_NOT_AVAILABLE)))
    assert served.answered() == [1, 2]


async def test_a_failure_of_ours_is_answered_where_the_api_can_express_it_and_is_loud_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(request: Any, ctx: Any) -> None:
        raise ZeroDivisionError("our fault")

    def express(request: Any, error: KafkaError) -> HeartbeatResponse:
        return HeartbeatResponse(error_code=int(error.code))

    served = Served(heartbeat=broken, error_response=express)
    served.send(HEARTBEAT, API_VERSIONS)
    await settle()
    assert served.answers()[0] == (1, HeartbeatResponse(error_code=int(ErrorCode.UNKNOWN_SERVER_ERROR)))
    assert not served.connection.closed
    assert [(record.levelname, record.exc_info is not None) for record in caplog.records] == [("ERROR", True)]


async def test_a_handler_that_finds_the_request_malformed_closes_without_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def malformed(request: Any, ctx: Any) -> None:
        raise ProtocolError("two batches where one belongs")

    served = Served(heartbeat=malformed)
    served.send(HEARTBEAT)
    assert served.transport.closing
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("WARNING", None)]


async def test_an_answer_that_cannot_be_encoded_closes_and_sends_nothing_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    served = Served(heartbeat=lambda request, ctx: HeartbeatResponse(error_code="no number"))  # type: ignore[arg-type]
    served.send(API_VERSIONS, HEARTBEAT)
    assert (served.answered(), served.transport.closing) == ([1], True)
    assert [record.levelname for record in caplog.records] == ["ERROR"]


# The peer goes away.


async def test_a_lost_connection_calls_its_close_callbacks_once_and_drops_late_answers() -> None:
    doors = Doors()
    told = []
    served = Served(produce=lambda request, ctx: Later(doors.wait()))
    served.connection.on_close(lambda: told.append("closed"))
    served.send(produce_of(b"x"))
    await settle()

    served.transport.disconnect(ConnectionResetError())
    assert (told, served.connection.closed, len(served.shared.connections)) == (["closed"], True, 0)
    doors.open(PRODUCED)
    await settle()
    assert (bytes(served.transport.written), len(served.shared.handlers)) == (b"", 0)


async def test_a_handler_told_of_the_disconnection_ends_quietly(caplog: pytest.LogCaptureFixture) -> None:
    async def parked(request: Any, ctx: Any) -> None:
        raise Disconnected

    served = Served(heartbeat=parked)
    served.send(HEARTBEAT)
    served.transport.disconnect()
    await settle()
    assert caplog.records == []


async def test_a_peer_that_closes_its_side_is_closed() -> None:
    served = Served()
    assert not served.connection.eof_received()


# Back-pressure.


async def test_a_peer_that_does_not_read_is_not_served_until_it_does() -> None:
    large = ListGroupsResponse(
        error_code=0,
        groups=[ListedGroup(group_id="g" * 1000, protocol_type="", group_state="") for _ in range(1000)],
    )
    served = Served(list_groups=lambda request, ctx: large)
    served.transport.peer_reads = False
    served.send(LIST_GROUPS, LIST_GROUPS, API_VERSIONS)
    assert served.shared.unsent.used_bytes == 0 or served.shared.unsent.used_bytes > 256 * 1024
    before = len(served.answered())
    await settle()
    assert len(served.answered()) == before < 3

    served.transport.read_all()
    await settle()
    assert served.answered() == [1, 2, 3]
    assert served.shared.unsent.used_bytes == 0


async def test_bytes_for_a_held_connection_are_kept_up_to_a_bound_and_then_left_to_tcp() -> None:
    doors = Doors()

    async def slow(request: Any, ctx: Any) -> HeartbeatResponse:
        await doors.wait()
        return BEATEN

    served = Served(limits=ConnectionLimits(read_ahead_bytes=10_000), heartbeat=slow)
    served.send(HEARTBEAT)
    more = served.peer.requests(*[API_VERSIONS] * 20_000)
    taken = served.transport.offer(more)
    assert not served.transport.reading
    assert taken <= 10_000 + len(served.shared.landing.view)

    await settle()
    doors.open()
    while taken < len(more):
        await settle(1)
        taken += served.transport.offer(more[taken:])
    await settle(50)
    assert served.answered() == list(range(1, 20_002))


async def test_a_throttled_connection_starts_its_next_request_when_its_time_is_up() -> None:
    def handler(request: Any, ctx: Any) -> HeartbeatResponse:
        ctx.connection.throttle(500)
        return HeartbeatResponse(error_code=0, throttle_time_ms=500)

    served = Served(heartbeat=handler)
    served.send(HEARTBEAT, API_VERSIONS)
    assert served.answered() == [1]
    await served.clock.pass_time(499)
    assert served.answered() == [1]
    await served.clock.pass_time(1)
    assert served.answered() == [1, 2]


# Memory.


async def test_a_thousand_peers_that_announce_100_mb_and_fall_silent_cost_next_to_nothing() -> None:
    first = Served()
    for _ in range(1_000):
        Served(shared=first.shared).transport.feed((100 * 1024 * 1024).to_bytes(4, "big") + b"\0\0\0\x07")
    assert first.shared.request_memory.used_bytes == 8_000


async def test_when_memory_is_short_one_large_request_after_the_other_is_read() -> None:
    payload = bytes(900_000)
    sizes = []

    def append(request: Any, ctx: Any) -> ProduceResponse:
        sizes.append(len(request.topic_data[0].partition_data[0].records))
        return PRODUCED

    memory = RequestMemory(1_000_000)
    first = Served(request_memory=memory, produce=append)
    peers = [first, *(Served(shared=first.shared, produce=append) for _ in range(9))]
    streams = [peer.peer.requests(produce_of(payload)) for peer in peers]
    left = dict(enumerate(streams))
    highest = 0
    for _ in range(1_000):
        for number, stream in list(left.items()):
            taken = peers[number].transport.offer(stream[:50_000])
            left[number] = stream[taken:]
            highest = max(highest, memory.used_bytes)
            if not left[number]:
                del left[number]
    assert (left, sizes) == ({}, [900_000] * 10)
    # The bound, one request beyond it (its buffer doubles), and the little that the others brought.
    assert highest <= 1_000_000 + 2 * 900_000 + 10 * 100_000
    for peer in peers:
        peer.transport.disconnect()
    assert memory.used_bytes == 0


async def test_small_requests_pass_while_memory_is_short() -> None:
    memory = RequestMemory(100_000)
    hog = Served(request_memory=memory)
    hog.transport.feed((10_000_000).to_bytes(4, "big") + bytes(200_000))
    assert memory.full
    small = Served(shared=hog.shared)
    small.send(API_VERSIONS)
    assert small.answered() == [1]


async def test_answers_shrink_when_many_peers_do_not_read() -> None:
    unsent = UnsentAnswers(limit_bytes=160_000_000)
    served = Served(unsent=unsent)
    assert served.connection.answer_budget_bytes == 10_000_000
    unsent.count(200_000_000)
    assert served.connection.answer_budget_bytes == 64 * 1024


async def test_while_too_much_is_unread_fetches_wait_and_everything_else_goes_on() -> None:
    unsent = UnsentAnswers(limit_bytes=1_000)
    empty = FetchResponse(responses=[])
    served = Served(unsent=unsent, fetch=lambda request, ctx: empty)
    unsent.count(5_000)
    served.send(API_VERSIONS, FETCH, API_VERSIONS)
    other = Served(shared=served.shared)
    other.send(API_VERSIONS)
    await settle()
    assert (served.answered(), other.answered()) == ([1], [1])

    unsent.count(-5_000)
    await settle()
    assert served.answered() == [1, 2, 3]


def lists_behind_a_produce(doors: Doors, unsent: UnsentAnswers) -> Served:
    """Produce is answered when the doors open; lists of 40 KB are there at once."""
    listed = listing_of(40_000)
    return Served(
        unsent=unsent,
        produce=lambda request, ctx: Later(doors.wait()),
        list_groups=lambda request, ctx: listed,
    )


async def test_answers_that_wait_for_an_earlier_one_are_bounded_and_counted() -> None:
    doors, unsent = Doors(), UnsentAnswers()
    served = lists_behind_a_produce(doors, unsent)
    served.send(produce_of(b""), *[LIST_GROUPS] * 50)
    await settle()
    assert served.connection.outstanding_answers == 3, "the second list is above the high water mark"
    assert 80_000 < unsent.used_bytes < 100_000

    doors.open(PRODUCED)
    await settle(200)
    assert served.answered() == list(range(1, 52))
    assert unsent.used_bytes == 0


async def test_answers_to_unserved_api_versions_are_bounded_like_all_others() -> None:
    doors = Doors()
    served = Served(produce=lambda request, ctx: Later(doors.wait()))
    served.send(produce_of(b""))
    served.transport.feed(frame(struct.pack(">hhih", 18, 77, 2, -1)) * 200)
    assert served.connection.outstanding_answers == 100


async def test_answers_that_wait_are_forgotten_with_their_connection() -> None:
    doors, unsent = Doors(), UnsentAnswers()
    served = lists_behind_a_produce(doors, unsent)
    served.send(produce_of(b""), LIST_GROUPS)
    assert unsent.used_bytes > 40_000
    served.transport.disconnect()
    assert unsent.used_bytes == 0


async def test_large_answers_leave_turns_to_others() -> None:
    listed = listing_of(250 * 1024)
    served = Served(list_groups=lambda request, ctx: listed)
    served.send(*[LIST_GROUPS] * 5)
    assert served.answered() == [1]
    await settle()
    assert served.answered() == [1, 2, 3, 4, 5]


# Stopping.


async def test_a_finishing_connection_answers_what_has_started_and_starts_nothing_more() -> None:
    doors = Doors()
    served = Served(produce=lambda request, ctx: Later(doors.wait()))
    served.send(produce_of(b"x"))
    await settle()
    served.connection.finish()
    served.send(API_VERSIONS)
    await settle()
    assert not served.transport.closing

    doors.open(PRODUCED)
    await settle()
    assert (served.answered(), served.connection.closed) == ([1], True)


async def test_a_connection_without_requests_finishes_at_once() -> None:
    served = Served()
    served.connection.finish()
    await settle()
    assert served.connection.closed


# The request log.


async def test_requests_and_answers_are_logged_at_debug_and_only_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    served = Served()
    served.send(API_VERSIONS)
    assert caplog.records == []
    with caplog.at_level(logging.DEBUG, logger="kafka.request.logger"):
        served.send(API_VERSIONS)
    assert [record.getMessage().split()[0] for record in caplog.records] == ["<", ">"]
