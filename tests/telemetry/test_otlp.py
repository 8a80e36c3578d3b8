"""What is in a push."""

from __future__ import annotations

import sys

import pytest

from pykafka_broker.telemetry.otlp import MAX_LABELS, points_of
from pykafka_broker.telemetry.series import Kind, Point
from tests.support.otlp import CUMULATIVE, DELTA, METRICS_PB2, field, gauge, histogram, metrics_data, total


def test_gauges_and_sums_are_values_with_labels() -> None:
    data = metrics_data(
        gauge("rate", 0.5, node="2", topic="t"),
        gauge("count", -3),
        total("sent", 4, DELTA),
        total("all", 5.0, CUMULATIVE),
        total("level", 6.0, CUMULATIVE, is_monotonic=False),
        resource={"group_id": "g"},
    )
    group = ("group_id", "g")

    assert list(points_of(data)) == [
        Point("rate", (group, ("node", "2"), ("topic", "t")), Kind.GAUGE, 0.5),
        Point("count", (group,), Kind.GAUGE, -3.0),
        Point("sent", (group,), Kind.COUNTER, 4.0, is_delta=True),
        Point("all", (group,), Kind.COUNTER, 5.0),
        Point("level", (group,), Kind.GAUGE, 6.0),
    ]


def test_a_label_of_the_client_hides_that_of_its_resource_and_none_hides_the_ids() -> None:
    data = metrics_data(
        gauge("a", 1.0, client_id="forged", topic="t"),
        resource={"topic": "of the resource", "client_instance_id": "forged"},
    )

    assert list(points_of(data)) == [Point("a", (("topic", "t"),), Kind.GAUGE, 1.0)]


def test_labels_that_are_no_text_are_written_as_text() -> None:
    integer, nothing = field(7, field(1, b"id") + field(2, b"\x18\x07")), field(7, field(1, b"none"))
    point = field(5, field(1, b"\x21" + bytes(8) + integer + nothing))

    assert list(points_of(metrics_data(field(1, b"a") + point))) == [
        Point("a", (("id", "7"), ("none", "")), Kind.GAUGE, 0.0)
    ]


def test_what_is_no_number_or_has_too_many_labels_cannot_be_kept() -> None:
    labels = {f"l{number}": "v" for number in range(MAX_LABELS)}
    without_a_value = field(1, b"a") + field(5, field(1, b""))
    data = metrics_data(
        histogram("h"), without_a_value, gauge("few", 1.0, **labels), gauge("many", 1.0, more="v", **labels)
    )

    assert [point and point.name for point in points_of(data)] == [None, None, "few", None]


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\x00" * 1_000,
        field(1, b"\x12\x00" * 1_000),
        metrics_data(*[b""] * 1_000),
        metrics_data(*[field(1, b"a") + field(5, b"")] * 1_000),
        metrics_data(field(1, b"a") + field(5, b"\x0a\x00" * 1_000)),
    ],
    ids=["resources", "scopes", "metrics", "gauges", "points"],
)
def test_an_empty_message_counts_as_a_value(data: bytes) -> None:
    assert list(points_of(data)) == [None] * 1_000


def test_nothing_is_a_push_without_values() -> None:
    assert list(points_of(b"")) == []


@pytest.mark.parametrize("data", [b"\xff", b"no MetricsData", metrics_data(gauge("a", 1.0))[:-1]])
def test_what_is_no_metrics_data_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        points_of(data)


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, METRICS_PB2, None)

    with pytest.raises(ImportError, match=r"pip install 'pykafka-broker\[telemetry\]'"):
        points_of(b"")
