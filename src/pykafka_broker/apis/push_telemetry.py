"""PushTelemetry (API key 72): a client's metrics, as GetTelemetrySubscriptions asked for them (KIP-714).

v0 is the only version. ApiVersions lists this API only where `telemetry.receiver.enable` is set; it is served
all the same, as in Apache Kafka, and then nothing is kept of the metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


@handles(
    PushTelemetryRequest,
    versions="0",
    needs=[],
    error_response=lambda request, error: PushTelemetryResponse(error_code=int(error.code)),
)
def push_telemetry(request: PushTelemetryRequest, ctx: RequestContext) -> PushTelemetryResponse:
    """Take what the client pushes."""
    ctx.node.telemetry.push(request, ctx.client_id or "", ctx.connection)
    return PushTelemetryResponse(error_code=0)
