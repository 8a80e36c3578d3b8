"""Clients that people use push their metrics: librdkafka, and Apache Kafka's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import confluent_kafka

from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.telemetry.series import Kind, Series
from pykafka_broker.testing.apache.tools import run_tool
from pykafka_broker.testing.home import Home, until

#: Some seconds' worth of records, so that the client lives for some intervals.
RECORDS_OF_JAVA = ("--num-records", "60", "--throughput", "20", "--record-size", "10")


@asynccontextmanager
async def receiving() -> AsyncIterator[tuple[str, Callable[[], dict[str, Series]]]]:
    """The address of a broker that asks clients for all metrics, and how to read what they push."""
    home = Home({"telemetry.receiver.enable": "true"}, clock=SystemClock())
    async with home.running() as user:
        await user.create_topic("orders")
        await user.try_to_alter(ResourceType.CLIENT_METRICS, "all", metrics="*", interval_ms="100")
        series = home.broker.node.broker.telemetry.series
        yield (
            home.broker.bootstrap_servers,
            lambda: {each.name: each for each in series.newest(home.clock.monotonic_ms())},
        )


async def test_librdkafka_pushes_until_it_is_closed() -> None:
    async with receiving() as (address, pushed):
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": address, "client.id": "shop", "log_level": 0}
        )
        producer.produce("orders", b"one")
        assert await asyncio.to_thread(producer.flush, 60) == 0
        await until(pushed)

        latency = pushed()["org.apache.kafka.producer.node.request.latency.max"]
        assert (latency.client_id, latency.kind, dict(latency.labels)) == (
            "shop",
            Kind.GAUGE,
            {"node.id": "1"},
        )
        await asyncio.to_thread(producer.close)
        await until(lambda: not pushed())


async def test_a_client_of_apache_kafka_pushes_until_it_is_closed(kafka_jars: Path) -> None:
    async with receiving() as (address, pushed):
        properties = ("--producer-props", f"bootstrap.servers={address}", "client.id=shop")
        tool = ("org.apache.kafka.tools.ProducerPerformance", "--topic", "orders")
        running = asyncio.create_task(asyncio.to_thread(run_tool, *tool, *RECORDS_OF_JAVA, *properties))
        sent = "org.apache.kafka.producer.record.send.total"
        await until(lambda: sent in pushed() and pushed()[sent].value >= 20)

        assert (pushed()[sent].client_id, pushed()[sent].kind) == ("shop", Kind.COUNTER)
        assert pushed()["org.apache.kafka.producer.connection.count"].kind is Kind.GAUGE
        await running
        await until(lambda: not pushed())
