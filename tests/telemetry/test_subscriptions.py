"""What a client is asked to push, from all subscriptions."""

from __future__ import annotations

import pytest

from pykafka_broker.telemetry.subscriptions import (
    DEFAULT_INTERVAL_MS,
    Wanted,
    subscription_id,
    subscription_of,
    wanted_of,
)

CLIENT: dict[str, str] = {
    "client_instance_id": "AAECAwQFBgcICQoLDA0ODw",
    "client_id": "orders-1",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.3.1",
    "client_source_address": "127.0.0.1",
    "client_source_port": "40000",
}


def wanted(**subscriptions: dict[str, str]) -> Wanted:
    made = {
        name: subscription_of({key.replace("_", "."): value for key, value in configs.items()})
        for name, configs in subscriptions.items()
    }
    return wanted_of(made, CLIENT)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Wanted((), 300_000), -725132322),
        (Wanted(("*",), 1_000), 848016057),
        (Wanted(("org.a", "org.c", "org.b"), 700), 518709387),
    ],
)
def test_the_id_of_what_is_wanted_is_that_of_apache_kafka(wanted: Wanted, expected: int) -> None:
    assert subscription_id(wanted, bytes(range(16))) == expected


def test_without_a_subscription_nothing_is_wanted() -> None:
    assert wanted() == Wanted((), DEFAULT_INTERVAL_MS) == Wanted((), 300_000)


def test_the_metrics_of_all_subscriptions_are_wanted_at_the_shortest_interval() -> None:
    assert wanted(
        a={"metrics": "org.a,org.b", "interval_ms": "5000"},
        b={"metrics": "org.b,org.c", "interval_ms": "700"},
    ) == Wanted(("org.a", "org.c", "org.b"), 700)


def test_an_interval_above_the_default_does_not_count() -> None:
    assert wanted(a={"metrics": "a", "interval_ms": "3600000"}) == Wanted(("a",), 300_000)


def test_a_star_stands_for_all_metrics() -> None:
    assert wanted(a={"metrics": "org.a"}, b={"metrics": "*,org.b"}) == Wanted(("*",), 300_000)


@pytest.mark.parametrize(
    ("match", "selects"),
    [
        ("", True),
        ("client_id=orders-.*", True),
        ("client_id=orders", False),
        ("client_id = orders-1 , client_software_name=apache-kafka-java", True),
        ("client_id=orders-1,client_software_name=librdkafka", False),
        ("client_id=none,client_id=orders-1", True),
        ("client_software_version=4\\.[34]\\..*", True),
        ("client_source_address=127.0.0.1,client_source_port=4[0-9]{4}", True),
        ("client_instance_id=AAECAwQFBgcICQoLDA0ODw", True),
        ("client_id=(?!payments).*", True),
        ("client_id=(.)rde\\1.*", False),
    ],
)
def test_a_subscription_selects_the_clients_that_it_matches_in_full(match: str, selects: bool) -> None:
    assert wanted(a={"metrics": "a", "match": match}).metrics == (("a",) if selects else ())
