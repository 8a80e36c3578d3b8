"""The numbers in a push: OpenTelemetry's MetricsData, read by OpenTelemetry's own classes, which the extra
`telemetry` installs.

Clients of Kafka push gauges and sums. Histograms and summaries are not kept. A push of 1 MiB, by default the
largest, takes at most 0.1 s to decode if it is made for that, and 2 ms with 10,000 gauges (CPython 3.11).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from pykafka_broker.telemetry.series import Kind, Point

#: A point with more labels is not kept.
MAX_LABELS = 32
#: Labels that the broker gives a series.
RESERVED_LABELS = ("client_id", "client_instance_id")
#: The `aggregation_temporality` of a sum that is the change since the last push.
DELTA = 1


def points_of(data: bytes) -> Iterator[Point | None]:
    """The values in a push; None for one that cannot be kept.

    Raises:
        ImportError: opentelemetry-proto is not installed.
        ValueError: `data` is no MetricsData.
    """
    try:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
    except ModuleNotFoundError:
        text = "opentelemetry-proto is not installed: pip install 'pykafka-broker[telemetry]'"
        raise ImportError(text) from None
    try:
        decoded = MetricsData.FromString(data)
    except DecodeError as error:
        raise ValueError(str(error)) from None
    return _points(decoded)


def _points(decoded: Any) -> Iterator[Point | None]:
    # An empty message yields None too: a caller that stops after some values has looked at no more messages.
    for of_resource in decoded.resource_metrics:
        if not of_resource.scope_metrics:
            yield None
        for scope in of_resource.scope_metrics:
            if not scope.metrics:
                yield None
            for metric in scope.metrics:
                yield from _points_of_metric(metric, of_resource.resource.attributes)


def _points_of_metric(metric: Any, shared: Collection[Any]) -> Iterator[Point | None]:
    field = metric.WhichOneof("data")
    numbers = getattr(metric, field) if field in ("gauge", "sum") else None
    if numbers is None or not numbers.data_points:
        yield None
        return
    is_sum = field == "sum"
    kind = Kind.COUNTER if is_sum and numbers.is_monotonic else Kind.GAUGE
    is_delta = is_sum and numbers.aggregation_temporality == DELTA
    for point in numbers.data_points:
        value = point.WhichOneof("value")
        if value is None or len(shared) + len(point.attributes) > MAX_LABELS:
            yield None
            continue
        labels = {**_labels(shared), **_labels(point.attributes)}
        number = float(getattr(point, value))
        yield Point(metric.name, tuple(sorted(labels.items())), kind, number, is_delta)


def _labels(attributes: Iterable[Any]) -> dict[str, str]:
    return {each.key: _text(each.value) for each in attributes if each.key not in RESERVED_LABELS}


def _text(value: Any) -> str:
    field = value.WhichOneof("value")
    return "" if field is None else str(getattr(value, field))
