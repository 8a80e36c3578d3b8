"""PushTelemetry (72): what clients push, and what is refused."""

from __future__ import annotations

from typing import Any

from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from pykafka_broker.protocol.messages.push_telemetry import PushTelemetryRequest
from pykafka_broker.protocol.records.compression import Codec, compress
from pykafka_broker.telemetry.series import Kind, Series
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.support.otlp import DELTA, gauge, metrics_data, total

ID = bytes(range(16))
PUSHED = metrics_data(gauge("lag", 1.5, topic="t"), total("sent", 3, DELTA))
RECEIVES = {"telemetry.receiver.enable": "true"}


async def subscribe(user: User) -> int:
    await user.try_to_alter(ResourceType.CLIENT_METRICS, "m", metrics="*", interval_ms="1000")
    request = GetTelemetrySubscriptionsRequest(client_instance_id=ID)
    subscription_id: int = (await user.send(request, 0)).subscription_id
    return subscription_id


async def push(user: User, subscription_id: int, data: bytes = PUSHED, **details: Any) -> ErrorCode:
    values = {"client_instance_id": ID, "terminating": False, "compression_type": 0, **details}
    request = PushTelemetryRequest(subscription_id=subscription_id, metrics=data, **values)
    return ErrorCode((await user.send(request, 0)).error_code)


def series(home: Home) -> list[Series]:
    return list(home.broker.node.broker.telemetry.series.newest(home.clock.monotonic_ms()))


async def test_what_is_pushed_is_kept_with_the_ids_of_the_client_until_it_ends(home: Home) -> None:
    home.overrides.update(RECEIVES)
    async with home.running() as user:
        subscription_id = await subscribe(user)
        for _ in range(2):
            zipped = compress(Codec.ZSTD, PUSHED)
            assert await push(user, subscription_id, zipped, compression_type=4) == ErrorCode.NONE
            await home.clock.pass_time(1_000)

        ids = ("AAECAwQFBgcICQoLDA0ODw", "test-client")
        pushed_ms = home.clock.monotonic_ms() - 1_000
        assert series(home) == [
            Series("lag", *ids, (("topic", "t"),), Kind.GAUGE, 1.5, pushed_ms),
            Series("sent", *ids, (), Kind.COUNTER, 6.0, pushed_ms),
        ]
        assert await push(user, subscription_id, terminating=True) == ErrorCode.NONE
        assert series(home) == []


async def test_by_default_nothing_is_kept(home: Home, user: User) -> None:
    assert await push(user, await subscribe(user)) == ErrorCode.NONE
    assert series(home) == []


async def test_a_push_for_an_old_subscription_is_refused_and_the_client_asks_at_once(user: User) -> None:
    subscription_id = await subscribe(user)
    await user.try_to_alter(ResourceType.CLIENT_METRICS, "m", metrics="org.a")

    assert await push(user, subscription_id) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert await push(user, await subscribe(user)) == ErrorCode.NONE
    assert await push(user, await subscribe(user)) == ErrorCode.THROTTLING_QUOTA_EXCEEDED


async def test_the_limit_of_a_push_is_configured(home: Home) -> None:
    home.overrides["telemetry.max.bytes"] = str(len(PUSHED))
    async with home.running() as user:
        subscription_id = await subscribe(user)
        assert await push(user, subscription_id, PUSHED + b"x") == ErrorCode.TELEMETRY_TOO_LARGE
        await home.clock.pass_time(1_000)
        assert await push(user, subscription_id) == ErrorCode.NONE


async def test_an_instance_is_forgotten_with_its_connection(user: User, another: User) -> None:
    assert await push(user, await subscribe(user)) == ErrorCode.NONE
    await user.close()

    assert (await another.send(GetTelemetrySubscriptionsRequest(client_instance_id=ID), 0)).error_code == 0
