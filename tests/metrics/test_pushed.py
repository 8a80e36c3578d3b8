"""What clients push is on the page, under names and with labels that Prometheus takes."""

from __future__ import annotations

from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.metrics.pushed import SERIES_PER_SLICE
from pykafka_broker.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from pykafka_broker.protocol.messages.push_telemetry import PushTelemetryRequest
from pykafka_broker.testing.home import Home
from tests.metrics.pages import METRICS, scrape, value
from tests.support.otlp import DELTA, gauge, metrics_data, total

ID = bytes(range(16))
IDS = {"client_id": "test-client", "client_instance_id": "AAECAwQFBgcICQoLDA0ODw"}
MANY = [gauge(f"many.{number}", number) for number in range(SERIES_PER_SLICE)]


async def test_what_a_client_pushes_is_shown_until_it_ends() -> None:
    home = Home({"metrics.listeners": METRICS, "telemetry.receiver.enable": "true"})
    async with home.running() as user:
        await user.try_to_alter(ResourceType.CLIENT_METRICS, "m", metrics="*", interval_ms="1000")
        asked = await user.send(GetTelemetrySubscriptionsRequest(client_instance_id=ID), 0)

        async def push(*metrics: bytes, terminating: bool = False) -> int:
            request = PushTelemetryRequest(
                client_instance_id=ID,
                subscription_id=asked.subscription_id,
                terminating=terminating,
                compression_type=0,
                metrics=metrics_data(*metrics),
            )
            error: int = (await user.send(request, 0)).error_code
            return error

        lags = (gauge("org.a.lag", 1.5, topic="t"), gauge("org-a-lag", 2.5, topic="t"))
        odd = gauge(
            'kafka_server"\n', 3, **{"1st": "a", "__name__": "b", "client-id": "forged", "x y": '"\n'}
        )
        assert await push(*lags, odd, total("sent", 7, DELTA), *MANY) == 0
        samples = await scrape(home.broker)

        assert value(samples, "client_org_a_lag", topic="t", **IDS) == 1.5
        assert value(samples, "client_sent_total", **IDS) == 7
        assert value(samples, f"client_many_{len(MANY) - 1}", **IDS) == len(MANY) - 1
        names = {"label_1st": "a", "label___name__": "b", "x_y": '"\n'}
        assert value(samples, "client_kafka_server__", **names, **IDS) == 3
        assert value(samples, "kafka_server_client_metrics_series") == 4 + len(MANY)
        assert value(samples, "kafka_server_client_metrics_instances") == 1
        assert value(samples, "kafka_server_client_metrics_dropped_total") == 0

        assert await push(terminating=True) == 0
        assert not any(name.startswith("client_") for name, _ in await scrape(home.broker))
