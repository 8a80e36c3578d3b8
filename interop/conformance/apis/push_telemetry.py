"""PushTelemetry: what a broker takes of a client's metrics, and when.

Apache Kafka has no receiver for them here, and checks them all the same.
"""

from __future__ import annotations

from typing import Any

from interop.conformance.apis.get_telemetry_subscriptions import ask, asking, asks_for, subscribing
from interop.conformance.brokers import uuid_of
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.push_telemetry import PushTelemetryRequest
from pykafka_broker.protocol.records.compression import Codec, compress

METRICS = b"metrics" * 100
#: The largest push, by default.
MAX_BYTES = 1_048_576


class Client:
    """An instance of a client that has asked what to push."""

    def __init__(self, talk: Talk, label: str = "client", interval_ms: str = "300000") -> None:
        self.talk = talk
        self.id = uuid_of(talk, label)
        subscribing(talk, self.id, f"of-{label}", metrics="*", interval_ms=interval_ms)
        told = ask(talk, self.id, until=asks_for("*"))
        self.subscription_id: int = told.subscription_id

    def pushing(self, metrics: bytes = METRICS, **details: Any) -> PushTelemetryRequest:
        values: dict[str, Any] = {
            "client_instance_id": self.id,
            "subscription_id": self.subscription_id,
            "terminating": False,
            "compression_type": 0,
            **details,
        }
        return PushTelemetryRequest(metrics=metrics, **values)

    def push(self, *errors: E, metrics: bytes = METRICS, **details: Any) -> None:
        self.talk.ask(self.pushing(metrics, **details), *errors)


@conversation("0+", alone=True)
def a_client_pushes_once_in_an_interval(talk: Talk) -> None:
    client = Client(talk)
    client.push()
    client.push(E.THROTTLING_QUOTA_EXCEEDED)
    ask(talk, client.id, E.THROTTLING_QUOTA_EXCEEDED)


@conversation("0+", alone=True)
def a_client_pushes_again_after_the_interval(talk: Talk) -> None:
    client = Client(talk, interval_ms="1000")
    client.push()
    client.push(E.THROTTLING_QUOTA_EXCEEDED)
    talk.ask(client.pushing(), until=lambda answer: answer.error_code == E.NONE)
    ask(talk, client.id, until=lambda answer: answer.error_code == E.NONE)
    client.push()


@conversation("0+", alone=True)
def a_client_that_has_not_asked_may_push(talk: Talk) -> None:
    client = Client(talk)
    other = talk.another()
    again = talk.do(asking(uuid_of(talk, "unasked")), version=0)
    other.ask(client.pushing(client_instance_id=uuid_of(talk, "stranger")), E.UNKNOWN_SUBSCRIPTION_ID)
    details = {"client_instance_id": uuid_of(talk, "unasked"), "subscription_id": again.subscription_id}
    other.ask(client.pushing(**details))


@conversation("0+", alone=True)
def ids_that_are_reserved_push_nothing(talk: Talk) -> None:
    client = Client(talk)
    for reserved in (ZERO_UUID, bytes(15) + b"\1"):
        client.push(E.INVALID_REQUEST, client_instance_id=reserved)
    client.push()


@conversation("0+", alone=True)
def after_an_unknown_subscription_a_client_asks_at_once(talk: Talk) -> None:
    client = Client(talk)
    client.push(E.UNKNOWN_SUBSCRIPTION_ID, subscription_id=client.subscription_id + 1)
    ask(talk, client.id)
    ask(talk, client.id, E.THROTTLING_QUOTA_EXCEEDED)
    client.push(E.THROTTLING_QUOTA_EXCEEDED)


@conversation("0+", alone=True)
def after_an_unknown_compression_a_client_asks_at_once(talk: Talk) -> None:
    for number in (5, 127, -1):
        client = Client(talk, f"c{number}")
        client.push(E.UNSUPPORTED_COMPRESSION_TYPE, compression_type=number)
        ask(talk, client.id)
        client.push(E.THROTTLING_QUOTA_EXCEEDED)


@conversation("0+", alone=True)
def the_subscription_is_checked_before_compression_and_size(talk: Talk) -> None:
    client = Client(talk, "one")
    wrong = client.subscription_id + 1
    client.push(
        E.UNKNOWN_SUBSCRIPTION_ID, metrics=bytes(MAX_BYTES + 1), subscription_id=wrong, compression_type=9
    )
    client = Client(talk, "two")
    client.push(E.UNSUPPORTED_COMPRESSION_TYPE, metrics=bytes(MAX_BYTES + 1), compression_type=9)


@conversation("0+", alone=True)
def metrics_are_pushed_in_every_compression(talk: Talk) -> None:
    for codec in Codec:
        Client(talk, codec.name).push(metrics=compress(codec, METRICS), compression_type=int(codec))


@conversation("0+", alone=True)
def a_push_without_metrics(talk: Talk) -> None:
    for codec in Codec:
        Client(talk, codec.name).push(metrics=b"", compression_type=int(codec))


@conversation("0+", alone=True)
def metrics_that_cannot_be_decompressed(talk: Talk) -> None:
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        client = Client(talk, codec.name)
        client.push(E.INVALID_RECORD, compression_type=int(codec))
        client.push(E.THROTTLING_QUOTA_EXCEEDED)


@conversation("0+", alone=True)
def a_push_that_is_too_large(talk: Talk) -> None:
    client = Client(talk)
    client.push(E.TELEMETRY_TOO_LARGE, metrics=bytes(MAX_BYTES + 1))
    client.push(E.THROTTLING_QUOTA_EXCEEDED)
    Client(talk, "largest").push(metrics=bytes(MAX_BYTES))


@conversation("0+", alone=True)
def a_push_that_is_too_large_when_it_is_decompressed(talk: Talk) -> None:
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        Client(talk, f"{codec.name}+").push(
            E.INVALID_RECORD, metrics=compress(codec, bytes(MAX_BYTES + 1)), compression_type=int(codec)
        )
        Client(talk, codec.name).push(metrics=compress(codec, bytes(MAX_BYTES)), compression_type=int(codec))


@conversation("0+", alone=True)
def after_the_last_push_one_is_refused(talk: Talk) -> None:
    client = Client(talk)
    client.push()
    client.push(terminating=True)
    client.push(E.INVALID_REQUEST)
    client.push(E.THROTTLING_QUOTA_EXCEEDED)
    client.push(terminating=True)
    client.push(E.INVALID_REQUEST, terminating=True)
    client.push(E.INVALID_REQUEST, terminating=True)


@conversation("0+", alone=True)
def a_last_push_that_is_refused(talk: Talk) -> None:
    client = Client(talk)
    client.push(E.UNKNOWN_SUBSCRIPTION_ID, terminating=True, subscription_id=client.subscription_id + 1)
    client.push(E.INVALID_REQUEST)
