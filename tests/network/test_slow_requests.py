"""The log of slow requests: what counts as slow, what the lines say, and how many there are."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from pykafka_broker.apis.api import Later
from pykafka_broker.cli.logging_setup import JsonFormatter, KafkaFormatter
from pykafka_broker.network import measured_answers
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.request_times import RequestTimes
from pykafka_broker.network.shared import Shared
from pykafka_broker.network.slow_requests import MOST_LINES, SlowRequests
from pykafka_broker.network.unanswered import asked_wait_ms
from pykafka_broker.protocol.fields import blank
from pykafka_broker.protocol.messages.fetch import FetchRequest, FetchResponse
from pykafka_broker.protocol.messages.heartbeat import HeartbeatResponse
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest
from pykafka_broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from pykafka_broker.protocol.messages.share_fetch import ShareFetchRequest
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest
from pykafka_broker.testing.clock import VirtualClock, settle
from tests.support.serving import HEARTBEAT, Doors, Handler, Served, apis, produce_of

LIMIT_MS = 1_000


class Node:
    """A node whose clock also times its requests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, heartbeat: Handler | None = None) -> None:
        self.clock, self.doors = VirtualClock(), Doors()
        monkeypatch.setattr(measured_answers, "perf_counter_ns", self.now_ns)
        slow = SlowRequests(LIMIT_MS, self.clock.monotonic_ms)
        self.shared = Shared(self.clock, times=RequestTimes(slow.answered))
        handlers = apis(produce=self.wait, fetch=self.wait, heartbeat=heartbeat)
        self.dispatch = Dispatch(handlers, times=self.shared.times)

    def wait(self, request: Any, ctx: Any) -> Any:
        return Later(self.doors.wait())

    def now_ns(self) -> int:
        # Not 0, which no clock of a real machine shows.
        return (1 + self.clock.monotonic_ms()) * 1_000_000

    def client(self) -> Served:
        return Served(self.clock, shared=self.shared, dispatch=self.dispatch)

    async def answer(self, after_ms: int, answer: Any) -> None:
        await self.clock.pass_time(after_ms)
        self.doors.open(answer)
        await settle()


async def test_a_slow_request_has_a_line_with_its_stages(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node(monkeypatch)
    client = node.client()
    client.send(produce_of(b"x"))
    await node.answer(LIMIT_MS, ProduceResponse(responses=[]))
    assert caplog.messages == []

    client.send(produce_of(b"x"))
    await node.answer(LIMIT_MS + 500, ProduceResponse(responses=[], throttle_time_ms=20))
    assert caplog.messages == [
        "Slow request: Produce v7 with correlation id 2 of client 'tester' as 'User:ANONYMOUS' on "
        "PLAINTEXT-10.0.0.7:50123 (totalTimeMs 1500.0, requestQueueTimeMs 0.0, localTimeMs 0.0, remoteTimeMs "
        "1500.0, throttleTimeMs 20, responseQueueTimeMs 0.0, sendTimeMs 0.0)"
    ]
    [record] = caplog.records
    assert (record.levelname, record.name) == ("WARNING", "kafka.request.logger")


async def test_each_stage_counts_where_the_time_was_spent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def beat(request: Any, ctx: Any) -> HeartbeatResponse:
        node.clock.advance(700)
        return HeartbeatResponse(error_code=0)

    node = Node(monkeypatch, heartbeat=beat)
    # They come together: the second heartbeat waits until the first is handled.
    client = node.client()
    client.send(produce_of(b"x"), HEARTBEAT, HEARTBEAT)
    await node.answer(100, ProduceResponse(responses=[]))

    told = [line.partition("(")[2] for line in caplog.messages]
    assert told == [
        "totalTimeMs 1400.0, requestQueueTimeMs 700.0, localTimeMs 700.0, remoteTimeMs 0.0, "
        "throttleTimeMs 0, responseQueueTimeMs 0.0, sendTimeMs 0.0)",
        "totalTimeMs 1500.0, requestQueueTimeMs 0.0, localTimeMs 0.0, remoteTimeMs 1500.0, "
        "throttleTimeMs 0, responseQueueTimeMs 0.0, sendTimeMs 0.0)",
    ]
    assert client.answered() == [1, 2, 3]


@pytest.mark.parametrize(("takes_ms", "is_slow"), [(LIMIT_MS + 500, False), (LIMIT_MS + 501, True)])
async def test_the_waiting_that_a_fetch_asks_for_does_not_count(
    takes_ms: int, is_slow: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node(monkeypatch)
    node.client().send(FetchRequest(max_wait_ms=500, min_bytes=1, topics=[]))
    await node.answer(takes_ms, FetchResponse(responses=[]))
    assert [line.endswith("), of which the client asked to wait 500 ms") for line in caplog.messages] == (
        [True] if is_slow else []
    )


@pytest.mark.parametrize(
    ("request_class", "values", "asked_ms"),
    [
        (FetchRequest, {"max_wait_ms": 500}, 500),
        (ShareFetchRequest, {"max_wait_ms": 500}, 500),
        (JoinGroupRequest, {"rebalance_timeout_ms": 60_000}, 60_000),
        (SyncGroupRequest, {}, 300_000),
        # When a producer gives up is no wish to wait until then.
        (ProduceRequest, {"timeout_ms": 30_000}, 0),
    ],
)
def test_what_a_request_asks_to_wait_for_its_fields_say(
    request_class: type[Any], values: dict[str, int], asked_ms: int
) -> None:
    request = blank(request_class)
    for name, value in values.items():
        setattr(request, name, value)
    assert asked_wait_ms(request) == asked_ms


async def test_a_flood_of_slow_requests_is_some_lines_and_a_count(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node(monkeypatch)
    clients = [node.client() for _ in range(MOST_LINES + 15)]
    for port, client in enumerate(clients, 50_000):
        client.connection.peer_port = port
        client.send(produce_of(b"x"))
    await node.clock.pass_time(2_000)
    while node.doors.waiting:
        node.doors.open(ProduceResponse(responses=[]))
    await settle()
    assert len(caplog.messages) == MOST_LINES

    clients[0].send(produce_of(b"x"))
    await node.answer(2_000, ProduceResponse(responses=[]))
    count, last = caplog.messages[MOST_LINES:]
    assert count == "15 more requests were slow, which are not logged one by one"
    assert "correlation id 2 " in last


async def test_a_client_that_makes_up_its_name_can_forge_no_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    forged = "shop\r\n[2026-01-01 00:00:00,000] INFO Granted everything \x1b[31m(kafka.authorizer.logger)"
    node = Node(monkeypatch)
    client = node.client()
    with caplog.at_level(logging.DEBUG, "kafka.request.logger"):
        client.transport.feed(client.peer.request(produce_of(b"x"), client_id=forged))
        await node.answer(2_000, ProduceResponse(responses=[]))

    assert [line.split()[0] for line in caplog.messages] == ["<", ">", "Slow"]
    for record in caplog.records:
        in_text, in_json = KafkaFormatter().format(record), JsonFormatter().format(record)
        assert in_text.isprintable()
        assert in_json.isprintable()
        told = json.loads(in_json)
        assert (told["client_id"], told["api"], told["correlation_id"]) == (forged, "Produce", 1)


async def test_a_json_line_has_the_request_and_its_stages_as_fields(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node(monkeypatch)
    node.client().send(produce_of(b"a secret"))
    await node.answer(1_500, ProduceResponse(responses=[]))

    [record] = caplog.records
    told = json.loads(JsonFormatter().format(record))
    for name in ("time", "level", "logger", "message"):
        del told[name]
    assert told == {
        "api": "Produce",
        "api_version": 7,
        "correlation_id": 1,
        "client_id": "tester",
        "principal": "User:ANONYMOUS",
        "listener": "PLAINTEXT",
        "connection": "PLAINTEXT-10.0.0.7:50123",
        "client_software_name": "unknown",
        "client_software_version": "unknown",
        "totalTimeMs": 1500.0,
        "requestQueueTimeMs": 0.0,
        "localTimeMs": 0.0,
        "remoteTimeMs": 1500.0,
        "throttleTimeMs": 0,
        "responseQueueTimeMs": 0.0,
        "sendTimeMs": 0.0,
    }
