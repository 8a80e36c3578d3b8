"""GetTelemetrySubscriptions: which of its metrics a client has to push, and how often.

Apache Kafka serves it to those who ask although it has no receiver, and ApiVersions does not list it. The
conversations are held alone, because a change of any subscription lets every client ask again at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interop.conformance.apis.describe_configs import CLIENT_METRICS, alter, setting
from interop.conformance.brokers import uuid_of
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.fields import ZERO_UUID, uuid_text
from pykafka_broker.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest

WORDS = [
    *("acks", "batch", "connection", "delivery", "election", "fetch", "group"),
    *("heartbeat", "join", "lag", "metadata", "node", "offset"),
]


def asking(instance_id: bytes) -> GetTelemetrySubscriptionsRequest:
    return GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)


def ask(talk: Talk, instance_id: bytes, *errors: E, until: Callable[[Any], bool] | None = None) -> Any:
    """Ask, and compare the id of the subscription too, which has the id of the instance in it."""
    answer = talk.ask(asking(instance_id), *errors, until=until)
    talk.note("the subscription", str(answer.subscription_id))
    return answer


def asks_for(*metrics: str) -> Callable[[Any], bool]:
    return lambda answer: sorted(answer.requested_metrics) == sorted(metrics)


def subscribing(talk: Talk, instance_id: bytes, label: str = "metrics", **values: str) -> str:
    """Make a subscription for one instance; its name."""
    name = talk.name(label)
    selected = f"client_instance_id={uuid_text(instance_id)}"
    match = ",".join(filter(None, (selected, values.pop("match", ""))))
    setting(talk, CLIENT_METRICS, name, match=match, **values)
    return name


def unsubscribing(talk: Talk, name: str) -> None:
    alter(talk, CLIENT_METRICS, name, dict.fromkeys(("metrics", "interval.ms", "match")))


@conversation("0+", alone=True)
def nothing_is_asked_of_a_client_that_no_subscription_selects(talk: Talk) -> None:
    instance_id = uuid_of(talk, "client")
    ask(talk, instance_id)
    ask(talk, instance_id, E.THROTTLING_QUOTA_EXCEEDED)


@conversation("0+", alone=True)
def a_client_without_an_id_gets_one(talk: Talk) -> None:
    given = talk.ask(asking(ZERO_UUID)).client_instance_id
    ask(talk, given, E.THROTTLING_QUOTA_EXCEEDED)


@conversation("0+", alone=True)
def an_id_that_is_reserved_may_ask(talk: Talk) -> None:
    ask(talk, bytes(15) + b"\1")


@conversation("0+", alone=True)
def metrics_and_interval_of_a_subscription(talk: Talk) -> None:
    instance_id = uuid_of(talk, "client")
    subscribing(talk, instance_id, metrics="org.apache.kafka.", interval_ms="5000")
    ask(talk, instance_id, until=asks_for("org.apache.kafka."))
    ask(talk, instance_id, E.THROTTLING_QUOTA_EXCEEDED)


@conversation("0+", alone=True)
def a_changed_subscription_is_told_at_once(talk: Talk) -> None:
    instance_id = uuid_of(talk, "client")
    for metrics in (["a"], ["a", "b"], ["*", "a"]):
        name = subscribing(talk, instance_id, metrics=",".join(metrics))
        ask(talk, instance_id, until=asks_for(*(["*"] if "*" in metrics else metrics)))
    unsubscribing(talk, name)
    ask(talk, instance_id, until=asks_for())


@conversation("0+", alone=True)
def the_metrics_of_several_subscriptions_in_the_order_of_a_set(talk: Talk) -> None:
    for count in (3, 5, 13):
        instance_id = uuid_of(talk, f"client{count}")
        for label, metrics in (("one", WORDS[:count]), ("two", [*WORDS[count - 2 :: -2], "topic", "wait"])):
            subscribing(talk, instance_id, f"{label}-{count}", metrics=",".join(metrics))
        ask(talk, instance_id, until=asks_for(*WORDS[:count], "topic", "wait"))


@conversation("0+", alone=True)
def the_shortest_interval_of_several_subscriptions(talk: Talk) -> None:
    instance_id = uuid_of(talk, "client")
    subscribing(talk, instance_id, "long", metrics="a", interval_ms="3600000")
    ask(talk, instance_id, until=asks_for("a"))
    subscribing(talk, instance_id, "short", metrics="b", interval_ms="20000")
    ask(talk, instance_id, until=asks_for("a", "b"))
    subscribing(talk, instance_id, "middle", metrics="c", interval_ms="40000")
    ask(talk, instance_id, until=asks_for("a", "b", "c"))


@conversation("0+", alone=True)
def a_client_is_selected_by_what_is_known_of_it(talk: Talk) -> None:
    instance_id = uuid_of(talk, "client")
    matches = {
        "id": "client_id=conf.*",
        "ids": "client_id=conform",
        "address": "client_source_address=127[.].*,client_source_port=[0-9]+",
        "host": "client_source_address=localhost",
        "software": "client_software_name=unknown,client_software_version=un.*",
        "other": "client_software_name=apache-kafka-java",
        "around": "client_id=(?!x).*",
        "spaces": " client_id = conformance",
        "twice": "client_id=x, client_id=conformance",
    }
    for label, match in matches.items():
        subscribing(talk, instance_id, label, metrics=label, match=match)
    ask(talk, instance_id, until=asks_for("id", "address", "software", "around", "spaces", "twice"))


@conversation("0+", alone=True)
def a_client_without_a_client_id_has_an_empty_one(talk: Talk) -> None:
    instance_id = uuid_of(talk, "client")
    subscribing(talk, instance_id, "some", metrics="a", match="client_id=.+")
    subscribing(talk, instance_id, "any", metrics="b", match="client_id=.*")
    ask(talk.another(client_id=None), instance_id, until=asks_for("b"))


@conversation("0+", alone=True)
def a_client_is_forgotten_with_its_connection(talk: Talk) -> None:
    instance_id = uuid_of(talk, "client")
    other = talk.another()
    ask(other, instance_id)
    ask(talk, instance_id, E.THROTTLING_QUOTA_EXCEEDED)
    other.close()
    ask(talk, instance_id, until=lambda answer: answer.error_code == E.NONE)
