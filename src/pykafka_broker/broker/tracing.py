"""Spans of requests for OpenTelemetry, where `otel.traces.enable` is set; they take the extra `otel`.

Each request is a span of its own, made when its answer has been sent, from the times that the connection has
taken. The headers of records are not read, so a span has no parent. Names follow OpenTelemetry's semantic
conventions for messaging and RPC; what they have no name for begins with `kafka.`.

OpenTelemetry's own thread exports the spans over OTLP (HTTP with protobuf), as the variables `OTEL_*` say.
"""

from __future__ import annotations

from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING

from pykafka_broker.network.request_times import Answered
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import API_NAMES

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

#: The `service.name` of a node, unless the environment has another one.
SERVICE_NAME = "pykafka-broker"


def exporting_provider(node_id: int) -> TracerProvider:
    """A provider that exports what the environment's sampler chooses.

    Raises:
        ImportError: the extra `otel` is not installed.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({"service.instance.id": str(node_id)})
    if str(resource.attributes["service.name"]).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": SERVICE_NAME}))
    # The node closes the provider, so that it needs no function that runs when the process ends.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class Spans:
    """Makes a span of each answered request."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, StatusCode

        self._provider = provider
        self._tracer = provider.get_tracer(SERVICE_NAME)
        #: Without a span: the loop may belong to a program that has spans of its own.
        self._no_parent = Context()
        self._kind = SpanKind.SERVER
        self._error = StatusCode.ERROR

    def answered(self, request: Answered) -> None:
        """A request has just been answered."""
        context = request.context
        name = API_NAMES[context.api_key]
        ended_ns = time_ns() - (perf_counter_ns() - request.sent_ns)
        span = self._tracer.start_span(
            name,
            self._no_parent,
            self._kind,
            start_time=ended_ns - (request.sent_ns - request.began_ns),
        )
        if span.is_recording():
            span.set_attributes(
                {
                    "messaging.system": "kafka",
                    "rpc.system": "kafka",
                    "rpc.method": name,
                    "network.peer.address": context.client_host.removeprefix("/"),
                    "network.peer.port": context.connection.peer_port,
                    "enduser.id": context.principal,
                    "kafka.api.version": context.version,
                    "kafka.correlation_id": context.correlation_id,
                    "kafka.listener": context.connection.listener_name,
                    **{f"kafka.{stage}": value for stage, value in request.stages_ms.items()},
                }
            )
            if context.client_id is not None:
                span.set_attribute("messaging.client.id", context.client_id)
            if request.error_code:
                span.set_attribute("error.type", ErrorCode(request.error_code).name)
                span.set_status(self._error)
        span.end(ended_ns)

    def close(self) -> None:
        """Export what is left. Blocking."""
        self._provider.shutdown()
