"""The pages of a metrics listener: metrics, and health."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio

from pykafka_broker.config import ConfigError
from pykafka_broker.metrics import process
from pykafka_broker.metrics.http_connection import IDLE_MS, PATIENCE_MS
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.processes import free_port
from tests.metrics.pages import METRICS, Browser, Page, samples_of, value
from tests.support.clusters import Cluster
from tests.support.quorums import Quorum


def measured(**overrides: str) -> Home:
    return Home({"metrics.listeners": METRICS, **overrides})


@pytest_asyncio.fixture
async def home() -> AsyncIterator[Home]:
    home = measured()
    async with home.running():
        yield home


async def test_metrics_are_in_the_text_format_of_prometheus(home: Home) -> None:
    browser = await Browser.of(home.broker)

    page = await browser.get("/metrics")

    assert page.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = samples_of(page.body)
    assert value(found, "process_resident_memory_bytes") == value(found, "jvm_memory_used_bytes", area="heap")
    await browser.close()


async def test_a_connection_serves_one_request_after_the_other(home: Home) -> None:
    browser = await Browser.of(home.broker)
    for path in ("/health/live", "/metrics", "/health/ready", "/metrics"):
        assert (await browser.get(path)).status == 200

    browser.writer.write(
        b"GET /metrics HTTP/1.1\r\n\r\nGET /health/live HTTP/1.1\r\nConnection: close\r\n\r\n"
    )
    metrics, live = await browser.answer(), await browser.answer()

    assert (metrics.status, live.body) == (200, "ok\n")
    assert await browser.closes()
    await browser.close()


async def test_a_client_of_http_1_0_reads_to_the_end(home: Home) -> None:
    browser = await Browser.of(home.broker)

    page = await browser.get("/metrics", version="1.0")

    assert "Transfer-Encoding" not in page.headers
    assert samples_of(page.body)
    await browser.close()


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("HEAD", "/metrics", 200, ""),
        ("HEAD", "/health/ready", 200, ""),
        ("GET", "/", 404, "Served are /metrics, /health/live, /health/ready and /explain\n"),
        ("DELETE", "/metrics", 405, "Served are GET and HEAD\n"),
    ],
)
async def test_other_requests_get_their_status(
    home: Home, method: str, path: str, status: int, body: str
) -> None:
    browser = await Browser.of(home.broker)

    page = await browser.get(path, method=method)

    assert (page.status, page.body) == (status, body)
    assert (await browser.get("/health/live")).status == 200
    await browser.close()


async def test_a_request_that_is_no_http_closes_its_connection(home: Home) -> None:
    browser = await Browser.of(home.broker)

    browser.writer.write(b"\x00\x00\x00\x0c\r\n\r\n")

    assert (await browser.answer()).status == 400
    assert await browser.closes()
    await browser.close()


@pytest.mark.parametrize(("sent", "patience_ms"), [(b"", IDLE_MS), (b"GET /metr", PATIENCE_MS)])
async def test_a_client_that_sends_nothing_more_is_not_kept(
    home: Home, sent: bytes, patience_ms: int
) -> None:
    browser = await Browser.of(home.broker)
    browser.writer.write(sent)
    other = await Browser.of(home.broker)
    assert (await other.get("/health/live")).status == 200
    await other.close()

    await home.pass_time(patience_ms - 2_000)
    assert not browser.reader.at_eof()
    await home.pass_time(4_000)

    assert await browser.closes()
    browser.writer.close()


async def test_a_stop_answers_what_has_begun_and_closes_the_connections() -> None:
    home = measured()
    async with home.running():
        browser = await Browser.of(home.broker)
        assert (await browser.get("/health/ready"))[::2] == (200, "ok\n")
    assert await browser.closes()
    await browser.close()


async def ready(cluster: Cluster, node_id: int) -> Page:
    browser = await Browser.of(cluster.broker(node_id))
    page = await browser.get("/health/ready")
    await browser.close()
    return page


async def test_a_node_that_lost_its_controller_or_has_resigned_is_not_ready() -> None:
    cluster = Cluster(combined=1, brokers=1, overrides={"metrics.listeners": METRICS})
    async with cluster.running():
        assert [(await ready(cluster, node_id)).status for node_id in (1, 2)] == [200, 200]
        await cluster.broker(1).hand_over()
        assert (await ready(cluster, 1))[::2] == (503, "the broker is shutting down\n")
        await cluster.broker(1).kill()
        await until(lambda: not cluster.broker(2).node.raft.was_led)

        page = await ready(cluster, 2)

        assert page[::2] == (503, "the quorum of controllers has no leader that answers this node\n")


async def test_a_node_that_waits_for_a_leader_says_that_it_starts() -> None:
    port = free_port()
    quorum = Quorum(2, {"metrics.listeners": f"http://127.0.0.1:{port}"})
    broker = quorum.homes[1].new_broker()
    start = asyncio.ensure_future(broker.start())
    page = None
    while page is None:
        assert not start.done()
        with suppress(ConnectionRefusedError):
            browser = await Browser.at("127.0.0.1", port)
            live, page = await browser.get("/health/live"), await browser.get("/health/ready")
            early = samples_of((await browser.get("/metrics")).body)
            await browser.close()
        await asyncio.sleep(0)

    assert (live.status, page.status, page.body) == (200, 503, "the node is still starting\n")
    assert value(early, "kafka_server_raftmetrics_current_leader") == -1
    assert value(early, "kafka_server_replicamanager_partitioncount") is None
    start.cancel()
    await asyncio.gather(start, return_exceptions=True)
    await broker.stop()


def test_an_address_that_is_no_url_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"metrics\.listeners: .*: write http://host:port"):
        measured(**{"metrics.listeners": "127.0.0.1:9644"}).config()


async def test_a_listener_needs_prometheus_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    process.collectors.cache_clear()

    with pytest.raises(
        ConfigError, match=r"needs prometheus-client: pip install 'pykafka-broker\[metrics\]'"
    ):
        await measured().new_broker().start()
