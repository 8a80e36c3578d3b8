"""Spans of requests for OpenTelemetry."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from pykafka_broker.apis.api import Later
from pykafka_broker.broker.tracing import Spans
from pykafka_broker.config import ConfigError
from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.network import measured_answers
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.request_times import RequestTimes
from pykafka_broker.network.shared import Shared
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.heartbeat import HeartbeatResponse
from pykafka_broker.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from pykafka_broker.testing.clock import VirtualClock, settle
from pykafka_broker.testing.home import Home
from tests.support.serving import HEARTBEAT, Doors, Served, apis, produce_of

STAGES = ("requestQueueTimeMs", "localTimeMs", "throttleTimeMs", "responseQueueTimeMs", "sendTimeMs")


async def test_a_request_is_a_span_with_its_client_its_stages_and_its_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    clock, doors = VirtualClock(), Doors()
    monkeypatch.setattr(measured_answers, "perf_counter_ns", lambda: (1 + clock.monotonic_ms()) * 1_000_000)
    shared = Shared(clock, times=RequestTimes(Spans(provider).answered))
    handlers = apis(
        produce=lambda request, ctx: Later(doors.wait()),
        heartbeat=lambda request, ctx: HeartbeatResponse(error_code=int(ErrorCode.UNKNOWN_MEMBER_ID)),
    )
    served = Served(clock, shared=shared, dispatch=Dispatch(handlers, times=shared.times))

    served.send(HEARTBEAT)
    served.send(produce_of(b"x"))
    await clock.pass_time(1_500)
    doors.open(ProduceResponse(responses=[]))
    await settle()

    heartbeat, produce = exporter.get_finished_spans()
    assert attributes(produce) == {
        "messaging.system": "kafka",
        "messaging.client.id": "tester",
        "rpc.system": "kafka",
        "rpc.method": "Produce",
        "network.peer.address": "10.0.0.7",
        "network.peer.port": 50123,
        "enduser.id": "User:ANONYMOUS",
        "kafka.api.version": 7,
        "kafka.correlation_id": 2,
        "kafka.listener": "PLAINTEXT",
        "kafka.totalTimeMs": 1500.0,
        "kafka.remoteTimeMs": 1500.0,
        **{f"kafka.{stage}": 0 for stage in STAGES},
    }
    assert (produce.name, produce.kind, produce.parent) == ("Produce", SpanKind.SERVER, None)
    assert produce.end_time is not None and produce.start_time is not None
    assert produce.end_time - produce.start_time == 1_500_000_000
    assert (produce.status.status_code, heartbeat.status.status_code) == (StatusCode.UNSET, StatusCode.ERROR)
    assert attributes(heartbeat)["error.type"] == "UNKNOWN_MEMBER_ID"


async def test_the_error_of_a_span_is_the_first_in_the_answer() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    clock, doors = VirtualClock(), Doors()
    shared = Shared(clock, times=RequestTimes(Spans(provider).answered))
    partitions = [
        PartitionProduceResponse(index=index, error_code=int(error), base_offset=-1)
        for index, error in enumerate(
            (ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE)
        )
    ]
    answer = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=partitions)])
    answers = [answer, Later(doors.wait())]
    handlers = apis(produce=lambda request, ctx: answers.pop(0))
    served = Served(clock, shared=shared, dispatch=Dispatch(handlers, times=shared.times))

    served.send(produce_of(b"x"))
    served.send(produce_of(b"x"))
    await settle()
    doors.open(answer)
    await settle()

    spans = exporter.get_finished_spans()
    assert [attributes(span)["error.type"] for span in spans] == ["NOT_ENOUGH_REPLICAS"] * 2


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@contextmanager
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """The URL of a collector, and what it is sent."""
    received: list[ExportTraceServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_a_broker_sends_its_spans_where_the_environment_says_before_it_has_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with collector() as (url, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        async with Home({"otel.traces.enable": "true"}, clock=SystemClock()).running() as user:
            await user.create_topic("orders")
            await user.produce("orders", b"one")

    resources = [one for request in received for one in request.resource_spans]
    named = {one.key: one.value.string_value for one in resources[0].resource.attributes}
    assert (named["service.name"], named["service.instance.id"]) == ("pykafka-broker", "1")
    spans = [span for one in resources for scope in one.scope_spans for span in scope.spans]
    assert {"CreateTopics", "Produce"} <= {span.name for span in spans}
    assert len({span.trace_id for span in spans}) == len(spans)


async def test_spans_need_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigError, match=r"needs OpenTelemetry: pip install 'pykafka-broker\[otel\]'"):
        await Home({"otel.traces.enable": "true"}).new_broker().start()


async def test_without_them_no_request_is_timed() -> None:
    home = Home()
    async with home.running():
        assert home.broker.node.listeners.shared.times is None
