"""Prometheus itself takes our page and the files of packaging/, and each panel of the dashboard has data.

Needs `prometheus` and `promtool` on the path (Debian: apt-get install prometheus).
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pykafka_broker.testing.home import Home
from pykafka_broker.testing.processes import PykafkaBroker, free_port
from tests.metrics.pages import METRICS, Browser
from tests.support.pages import REPOSITORY
from tests.support.waiting import until

pytestmark = pytest.mark.slow

FILES = REPOSITORY / "packaging" / "prometheus"
DASHBOARD = json.loads((REPOSITORY / "packaging" / "grafana" / "kafka.json").read_text())
#: What a healthy broker without ACLs and TLS has no data for.
WITHOUT_DATA = {"Alerts", "Denied by ACLs", "Days left of certificates"}
#: What promtool finds unusual about the names of Kafka's metrics, and of their labels.
OF_KAFKA = re.compile(
    r"(kafka|jvm)_\S+ (counter metrics should have|non-histogram and non-summary|metric names should not)"
    r"|\S+ label names should be written in 'snake_case' not 'camelCase'"
    r"|kafka_\S+ (no|use base unit|metric name should not)"
)


def tool(name: str) -> str:
    found = shutil.which(name)
    assert found is not None, f"no {name} on the path (Debian: apt-get install prometheus)"
    return found


def promtool(*arguments: str, page: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tool("promtool"), *arguments], cwd=FILES, input=page, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "lag.yml", "alerts.yml"),
        ("test", "rules", "alerts_test.yml"),
    ],
    ids=" ".join,
)
def test_promtool_accepts_the_files(arguments: tuple[str, ...]) -> None:
    result = promtool(*arguments)
    assert result.returncode == 0, result.stdout + result.stderr


def test_promtool_accepts_a_page() -> None:
    async def page() -> str:
        home = Home({"metrics.listeners": METRICS})
        async with home.running() as user:
            await user.create_topic("orders", partitions=2)
            await user.produce("orders", b"one")
            await user.commit("readers", "orders", 1)
            browser = await Browser.of(home.broker)
            text = (await browser.get("/metrics")).body
            await browser.close()
            return text

    result = promtool("check", "metrics", page=asyncio.run(page()))
    # 3: it can be read, and names are unusual.
    assert result.returncode in (0, 3), result.stderr
    assert [line for line in result.stderr.splitlines() if not OF_KAFKA.match(line)] == []


class Prometheus:
    """A running Prometheus."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def get(self, path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}") as answer:
            return json.load(answer)["data"]

    def is_up(self) -> bool:
        try:
            return len(self.get("query", query="min_over_time(up[10s]) == 1")["result"]) == 1
        except OSError:
            return False

    def had(self, expression: str) -> bool:
        """Whether an expression has had a value: some have one only while something happens."""
        return bool(self.get("query", query=f"last_over_time(({expression})[5m:1s])")["result"])


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[Prometheus]:
    """Prometheus with the files of packaging/, one node, and less time between two scrapes."""
    for name in ("lag.yml", "alerts.yml"):
        shutil.copy(FILES / name, folder)
    text = (FILES / "prometheus.yml").read_text()
    text = re.sub(r"targets: \[\"node-1.*\]", f'targets: ["{target}"]', text)
    file = folder / "prometheus.yml"
    file.write_text(re.sub(r"_interval: 15s", "_interval: 1s", text))
    port = free_port()
    command = [
        *(tool("prometheus"), f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"),
        *(f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"),
    ]
    with subprocess.Popen(command) as process:
        try:
            yield Prometheus(port)
        finally:
            process.terminate()


def test_each_panel_of_the_dashboard_shows_data_of_a_broker(tmp_path: Path) -> None:
    target = f"127.0.0.1:{free_port()}"
    broker = PykafkaBroker({"metrics.listeners": f"http://{target}"}, tmp_path / "broker")
    with broker, prometheus(tmp_path, target) as asked:
        until(asked.is_up, "Prometheus has scraped the broker")
        use(broker.address)
        panels = {
            panel["title"]: [expression(target["expr"]) for target in panel["targets"]]
            for panel in DASHBOARD["panels"]
            if panel["type"] != "row"
        }
        for title, expressions in panels.items():
            for text in expressions if title not in WITHOUT_DATA else ():
                until(partial(asked.had, text), f"{title} has data: {text}")
        assert [title for title in WITHOUT_DATA if any(map(asked.had, panels[title]))] == []
        rules = [rule for group in asked.get("rules")["groups"] for rule in group["rules"]]

    assert {rule["health"] for rule in rules} == {"ok"}
    assert [rule["name"] for rule in rules if rule.get("state") == "firing"] == []


def expression(text: str) -> str:
    """An expression of the dashboard with values in the place of its variables."""
    values = {"job": "kafka", "instance": ".+", "topic": ".+", "__rate_interval": "1m"}
    return re.sub(r"\$(\w+)", lambda found: values[found[1]], text)


def use(address: str) -> None:
    """Write records, read them in a group with members, and commit."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": "writer"})
    producer.init_transactions()
    producer.begin_transaction()
    for number in range(10):
        producer.produce("orders", b"%d" % number)
    producer.commit_transaction()
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    message = consumer.poll(60)
    assert message is not None and message.error() is None
    consumer.commit(offsets=[TopicPartition("orders", message.partition() or 0, 1)], asynchronous=False)
    consumer.close()
