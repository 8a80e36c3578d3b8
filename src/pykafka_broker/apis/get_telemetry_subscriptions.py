"""GetTelemetrySubscriptions (API key 71): which of its metrics a client should push, and how often (KIP-714).

v0 is the only version. ApiVersions lists this API only where `telemetry.receiver.enable` is set; it is served
all the same, as in Apache Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from pykafka_broker.protocol.records.compression import Codec

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.protocol.errors import KafkaError

#: The best first: a client takes the first one that it has.
ACCEPTED_COMPRESSION_TYPES = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)


def failed(
    _request: GetTelemetrySubscriptionsRequest, error: KafkaError
) -> GetTelemetrySubscriptionsResponse:
    """The answer to a request that was refused."""
    return GetTelemetrySubscriptionsResponse(
        error_code=int(error.code),
        client_instance_id=ZERO_UUID,
        subscription_id=0,
        accepted_compression_types=[],
        push_interval_ms=0,
        telemetry_max_bytes=0,
        delta_temporality=False,
        requested_metrics=[],
    )


@handles(GetTelemetrySubscriptionsRequest, versions="0", needs=[], error_response=failed)
def get_telemetry_subscriptions(
    request: GetTelemetrySubscriptionsRequest, ctx: RequestContext
) -> GetTelemetrySubscriptionsResponse:
    """Say what the client has to push; a client without an id gets one."""
    subscribed = ctx.node.telemetry.subscribe(request.client_instance_id, ctx.client_id or "", ctx.connection)
    return GetTelemetrySubscriptionsResponse(
        error_code=0,
        client_instance_id=subscribed.client_instance_id,
        subscription_id=subscribed.subscription_id,
        accepted_compression_types=list(map(int, ACCEPTED_COMPRESSION_TYPES)),
        push_interval_ms=subscribed.push_interval_ms,
        telemetry_max_bytes=subscribed.max_bytes,
        delta_temporality=True,
        requested_metrics=list(subscribed.metrics),
    )
