"""When an instance of a client may ask and push, as Apache Kafka's ClientMetricsManager has it."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.protocol.errors import ErrorCode as E
from pykafka_broker.protocol.messages.push_telemetry import PushTelemetryRequest
from pykafka_broker.telemetry.instance import Instance, asked, pushed

NEW = Instance(subscription_id=7, version=1, metrics=("*",), push_interval_ms=1_000)
MAX_BYTES = 10


def a_push(**details: Any) -> PushTelemetryRequest:
    values = {
        "client_instance_id": bytes(range(16)),
        "subscription_id": 7,
        "terminating": False,
        "compression_type": 0,
        "metrics": b"",
        **details,
    }
    return PushTelemetryRequest(**values)


def story(*steps: tuple[int, PushTelemetryRequest | None]) -> list[E]:
    """The errors of requests at these times; None asks."""
    instance, errors = NEW, []
    for now_ms, push in steps:
        if push is None:
            instance, error = asked(instance, now_ms)
        else:
            instance, error = pushed(instance, push, now_ms, MAX_BYTES)
        errors.append(error)
    return errors


def test_it_may_ask_once_in_an_interval() -> None:
    assert story((0, None), (999, None), (1_000, None)) == [E.NONE, E.THROTTLING_QUOTA_EXCEEDED, E.NONE]


def test_after_it_has_asked_its_first_push_may_come_at_any_time() -> None:
    assert story((0, None), (1, a_push()), (1_000, a_push()), (1_001, a_push())) == [
        E.NONE,
        E.NONE,
        E.THROTTLING_QUOTA_EXCEEDED,
        E.NONE,
    ]


def test_a_push_counts_for_the_interval_of_the_next_question() -> None:
    assert story((0, None), (500, a_push()), (1_499, None), (1_500, None)) == [
        E.NONE,
        E.NONE,
        E.THROTTLING_QUOTA_EXCEEDED,
        E.NONE,
    ]


def test_it_may_push_without_having_asked_here() -> None:
    assert story((0, a_push())) == [E.NONE]


@pytest.mark.parametrize(
    ("push", "error"),
    [
        (a_push(subscription_id=8), E.UNKNOWN_SUBSCRIPTION_ID),
        (a_push(compression_type=5), E.UNSUPPORTED_COMPRESSION_TYPE),
        (a_push(compression_type=-1), E.UNSUPPORTED_COMPRESSION_TYPE),
    ],
)
def test_after_some_errors_it_asks_again_at_once_and_waits_before_it_pushes(
    push: PushTelemetryRequest, error: E
) -> None:
    assert story((0, None), (1, push), (2, None), (3, None), (4, a_push()), (1_001, a_push())) == [
        E.NONE,
        error,
        E.NONE,
        E.THROTTLING_QUOTA_EXCEEDED,
        E.THROTTLING_QUOTA_EXCEEDED,
        E.NONE,
    ]


def test_a_push_that_is_too_large_is_refused_and_counts_for_the_interval() -> None:
    assert story(
        (0, a_push(metrics=bytes(11))), (1, None), (2, a_push()), (1_000, a_push(metrics=bytes(10)))
    ) == [E.TELEMETRY_TOO_LARGE, E.THROTTLING_QUOTA_EXCEEDED, E.THROTTLING_QUOTA_EXCEEDED, E.NONE]


def test_the_last_push_comes_at_any_time_and_after_it_one_is_refused() -> None:
    last = a_push(terminating=True)

    assert story((0, a_push()), (1, last), (1_000, last), (2_000, a_push()), (3_000, a_push())) == [
        E.NONE,
        E.NONE,
        E.INVALID_REQUEST,
        E.INVALID_REQUEST,
        E.NONE,
    ]


def test_a_last_push_that_is_refused_is_the_last_one_all_the_same() -> None:
    refused = a_push(terminating=True, subscription_id=8)

    assert story((0, refused), (1_000, a_push())) == [E.UNKNOWN_SUBSCRIPTION_ID, E.INVALID_REQUEST]


@pytest.mark.parametrize(("interval_ms", "expiry_ms"), [(100, 60_000), (20_000, 60_000), (300_000, 900_000)])
def test_it_is_remembered_for_three_intervals_and_at_least_a_minute(interval_ms: int, expiry_ms: int) -> None:
    assert NEW._replace(push_interval_ms=interval_ms).expiry_ms == expiry_ms
