"""The instances of clients that a node remembers, and what becomes of their pushes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from pykafka_broker.apis.ports.connection import UNKNOWN_SOFTWARE, Software
from pykafka_broker.apis.ports.telemetry import Subscribed
from pykafka_broker.cluster.image import ClusterImage, ResourceType
from pykafka_broker.protocol.errors import ErrorCode as E
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.push_telemetry import PushTelemetryRequest
from pykafka_broker.protocol.records.compression import Codec, compress
from pykafka_broker.telemetry.client_metrics import MAX_INSTANCES, ClientMetrics, TelemetrySettings
from pykafka_broker.testing.clock import VirtualClock
from tests.support.otlp import METRICS_PB2, gauge, metrics_data

ONE, TWO, THREE = (bytes(15) + bytes([number]) for number in (11, 12, 13))
PUSHED = metrics_data(gauge("a", 1.0))
MAX_BYTES = 1_000


class Client:
    """A connection of a client, and what it says of itself."""

    client_host = "/127.0.0.1"
    peer_port = 40_000

    def __init__(self, client_id: str = "orders", software: Software = UNKNOWN_SOFTWARE) -> None:
        self.client_id = client_id
        self.software = software
        self.closing: list[Callable[[], None]] = []

    def on_close(self, callback: Callable[[], None]) -> None:
        self.closing.append(callback)

    def close(self) -> None:
        for callback in self.closing:
            callback()


class World:
    """A node with subscriptions, and time."""

    def __init__(self, *, keeps_series: bool = True, max_instances: int = MAX_INSTANCES) -> None:
        self.clock = VirtualClock()
        new_ids = count(100)
        self.telemetry = ClientMetrics(
            TelemetrySettings(MAX_BYTES, keeps_series),
            self.clock,
            lambda: next(new_ids).to_bytes(16),
            max_instances,
        )
        self.client: Any = Client()
        self.image = ClusterImage()
        self.configure(a={"metrics": "*", "interval.ms": "1000"})

    def configure(self, **subscriptions: dict[str, str]) -> None:
        old, configs = (
            self.image,
            {(int(ResourceType.CLIENT_METRICS), name): values for name, values in subscriptions.items()},
        )
        self.image = old._replace(configs={**configs, (int(ResourceType.TOPIC), "t"): {"match": "x"}})
        self.telemetry.published(old, self.image)

    def ask(self, instance_id: bytes, client: Any = None) -> Subscribed | E:
        client = client or self.client
        try:
            return self.telemetry.subscribe(instance_id, client.client_id, client)
        except KafkaError as error:
            return error.code

    def metrics(self, instance_id: bytes, client: Any = None) -> tuple[str, ...]:
        subscribed = self.ask(instance_id, client)
        assert isinstance(subscribed, Subscribed), subscribed
        return subscribed.metrics

    def push(self, instance_id: bytes, data: bytes = PUSHED, codec: int = 0, **details: Any) -> E:
        known, _ = self.telemetry._instances.get(instance_id, (SimpleNamespace(subscription_id=0), 0))
        request = PushTelemetryRequest(
            client_instance_id=instance_id,
            compression_type=codec,
            metrics=data,
            **{"subscription_id": known.subscription_id, "terminating": False, **details},
        )
        try:
            self.telemetry.push(request, self.client.client_id, self.client)
        except KafkaError as error:
            return error.code
        return E.NONE

    def series(self) -> list[str]:
        return [each.name for each in self.telemetry.series.newest(self.clock.monotonic_ms())]


def test_an_instance_is_told_what_to_push_and_a_new_one_gets_an_id() -> None:
    world = World()
    subscribed = world.ask(bytes(16))

    assert isinstance(subscribed, Subscribed)
    assert subscribed[::2] == ((100).to_bytes(16), ("*",), MAX_BYTES)
    assert subscribed.push_interval_ms == 1_000
    assert world.ask((100).to_bytes(16)) == E.THROTTLING_QUOTA_EXCEEDED


@pytest.mark.parametrize("reserved", [bytes(16), bytes(15) + b"\1"])
def test_no_instance_pushes_with_a_reserved_id(reserved: bytes) -> None:
    assert World().push(reserved) == E.INVALID_REQUEST


def test_changed_subscriptions_are_told_at_once_and_make_the_old_id_unknown() -> None:
    world = World()
    assert world.metrics(ONE) == ("*",)
    before = world.telemetry._instances[ONE][0].subscription_id
    world.configure(a={"metrics": "org.a", "interval.ms": "1000"})

    assert world.push(ONE, subscription_id=before) == E.UNKNOWN_SUBSCRIPTION_ID
    assert world.metrics(ONE) == ("org.a",)
    world.configure()
    assert world.metrics(ONE) == ()


def test_other_changes_of_the_metadata_change_no_instance() -> None:
    world = World()
    world.ask(ONE)
    old = world.image
    world.image = old._replace(configs={**old.configs, (int(ResourceType.TOPIC), "t"): {}})
    world.telemetry.published(old, world.image)

    assert world.ask(ONE) == E.THROTTLING_QUOTA_EXCEEDED


def test_a_client_is_selected_by_what_it_says_of_itself() -> None:
    world = World()
    world.configure(a={"metrics": "a", "match": "client_software_name=librdkafka,client_id=orders"})
    software = Software("librdkafka", "2.8.0")

    assert world.metrics(ONE, Client("orders", software)) == ("a",)
    assert world.metrics(TWO, Client("payments", software)) == ()
    assert world.metrics(THREE, Client("orders")) == ()


def test_a_subscription_that_cannot_be_read_selects_no_client(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.configure(a={"metrics": "a"}, b={"metrics": "b", "match": "client_id=("})

    assert world.metrics(ONE) == ("a",)
    assert caplog.messages == [
        "No client pushes for the subscription b: Illegal client matching pattern: client_id=("
    ]


def test_a_lost_connection_takes_the_instance_with_it_that_was_made_last_on_it() -> None:
    world = World()
    client = Client()
    for each in (ONE, TWO):
        world.ask(each, client)
    client.close()

    assert (len(world.telemetry), len(client.closing)) == (1, 1)
    assert world.ask(ONE) == E.THROTTLING_QUOTA_EXCEEDED
    assert world.metrics(TWO) == ("*",)


def test_a_silent_instance_is_forgotten() -> None:
    world = World()
    assert world.push(ONE, terminating=True) == E.UNKNOWN_SUBSCRIPTION_ID
    world.clock.advance(59_999)
    assert world.push(ONE, terminating=True) == E.INVALID_REQUEST
    world.clock.advance(60_000)
    assert world.push(ONE, terminating=True) == E.NONE


def test_of_too_many_instances_the_least_recently_used_is_forgotten() -> None:
    world = World(max_instances=2)
    for each in (ONE, TWO, ONE, THREE):
        world.ask(each)

    assert len(world.telemetry) == 2
    assert world.ask(ONE) == E.THROTTLING_QUOTA_EXCEEDED
    assert world.metrics(TWO) == ("*",)
    assert MAX_INSTANCES == 16_384


@pytest.mark.parametrize("codec", Codec)
def test_a_push_in_any_compression_is_kept(codec: Codec) -> None:
    world = World()
    world.ask(ONE)

    assert world.push(ONE, compress(codec, PUSHED), codec) == E.NONE
    assert world.series() == ["a"]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_push_that_decompresses_to_more_than_the_limit_is_refused_as_in_kafka(codec: Codec) -> None:
    world = World()
    world.ask(ONE)
    data = compress(codec, bytes(MAX_BYTES + 1))

    assert len(data) < MAX_BYTES
    assert world.push(ONE, data, codec) == E.INVALID_RECORD


@pytest.mark.parametrize(("data", "codec"), [(b"no gzip", Codec.GZIP), (b"\xff", Codec.NONE)])
def test_a_push_that_cannot_be_read_is_refused(data: bytes, codec: Codec) -> None:
    world = World()
    world.ask(ONE)

    assert world.push(ONE, data, codec) == E.INVALID_RECORD
    assert world.series() == []


def test_the_last_push_of_an_instance_takes_its_series_away() -> None:
    world = World()
    for each in (ONE, TWO):
        world.ask(each)
        world.push(each)
    assert world.push(ONE, terminating=True) == E.NONE

    [left] = world.telemetry.series.newest(0)
    assert left.client_instance_id == "AAAAAAAAAAAAAAAAAAAADA"


def test_series_outlive_the_connection_and_not_three_intervals_of_silence() -> None:
    world = World()
    world.ask(ONE)
    world.push(ONE)
    world.client.close()
    assert world.series() == ["a"]

    world.clock.advance(3_000)
    assert world.series() == []


def test_without_a_receiver_pushes_are_checked_and_not_kept() -> None:
    world = World(keeps_series=False)
    world.ask(ONE)

    assert world.push(ONE, b"\xff") == E.NONE
    world.clock.advance(1_000)
    assert world.push(ONE, b"no gzip", Codec.GZIP) == E.INVALID_RECORD
    assert world.series() == []


def test_without_the_library_pushes_are_accepted_and_counted_and_that_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, METRICS_PB2, None)
    world = World()
    for _ in range(2):
        assert world.ask(ONE) != E.THROTTLING_QUOTA_EXCEEDED
        assert world.push(ONE) == E.NONE
        world.clock.advance(1_000)

    assert world.telemetry.unread == 2
    assert len(caplog.messages) == 1
