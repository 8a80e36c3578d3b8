"""What a scrape of metrics takes from a broker with many partitions, and from its clients meanwhile."""

from __future__ import annotations

import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import Manager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from bench import pinger
from bench.process import cpu_seconds
from pykafka_broker.testing.apache.nodes import Software
from pykafka_broker.testing.processes import PykafkaBroker, free_port

TOPICS, PARTITIONS_OF_A_TOPIC = 20, 500
#: Those before them fill what quantiles and rates are made of.
WARM_UP, SCRAPES = 3, 30
PINGS = 20_000
PATIENCE_S = 120


class Scraped(NamedTuple):
    """A broker that serves its metrics at this address."""

    broker: PykafkaBroker
    page: str


@contextmanager
def many_partitions(partitions: int) -> Iterator[Scraped]:
    """A broker with so many partitions in each of its topics."""
    with tempfile.TemporaryDirectory(prefix="bench-scrapes-") as folder:
        listener = f"http://127.0.0.1:{free_port()}"
        broker = PykafkaBroker({"metrics.listeners": listener}, Path(folder))
        with broker:
            admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
            for number in range(TOPICS):
                # One by one: a request may create 10,000 records of metadata at most.
                topic = NewTopic(f"bench-scrapes-{number:02d}", partitions, 1)
                [created] = admin.create_topics([topic]).values()
                created.result(PATIENCE_S)
            yield Scraped(broker, f"{listener}/metrics")


def scrape(page: str) -> int:
    """The lines of a page."""
    with urllib.request.urlopen(page) as answer:
        text: bytes = answer.read()
    return text.count(b"\n")


def scrape_until(page: str, is_over: threading.Event) -> None:
    while not is_over.is_set():
        scrape(page)


def metrics(software: Software, scale: float) -> dict[str, float]:
    """Scrapes of 10,000 partitions at scale 1: each alone, and one after the other while a client writes one
    record at a time. Apache Kafka has no such page, and no figures.
    """
    if software == "apache":
        return {}
    with many_partitions(max(10, int(PARTITIONS_OF_A_TOPIC * scale))) as scraped:
        broker, page = scraped
        for _ in range(WARM_UP):
            lines = scrape(page)
        before, begun = cpu_seconds(broker.pid), time.perf_counter()
        for _ in range(SCRAPES):
            scrape(page)
        took, used = time.perf_counter() - begun, cpu_seconds(broker.pid) - before

        def ping() -> float:
            pings = max(1_000, int(PINGS * scale))
            return pinger.one_at_a_time(broker.address, "bench-scrapes-00", pings)["p99_us"]

        quiet_us = ping()
        return {
            "lines": lines,
            "cpu_ms": used / SCRAPES * 1000,
            "ms": took / SCRAPES * 1000,
            "quiet_p99_us": quiet_us,
            "p99_us": beside_scrapes(page, ping),
        }


def beside_scrapes(page: str, measure: Callable[[], float]) -> float:
    """A measurement while another process scrapes."""
    with Manager() as manager, ProcessPoolExecutor(1) as processes:
        is_over = manager.Event()
        scraping = processes.submit(scrape_until, page, is_over)
        try:
            return measure()
        finally:
            is_over.set()
            scraping.result()


#: The row by its name in the table.
ROWS = {"metrics": metrics}
