"""The rows of the bench in the order in which they run: each measures a few figures of one running broker.

A row returns its figures by the part of their key behind the dot (`bench/figures.py`). Sizes are those of
scale 1.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka.admin import AdminClient, NewTopic

from bench import (
    archive_job,
    groups,
    jvm,
    kafka_log_job,
    load,
    micro_batch,
    pinger,
    quorum,
    readers,
    replay_job,
    spark_lane,
)
from bench import compaction as compacting
from bench import storm as storming
from bench import transactions as transacting
from bench.process import cpu_seconds, resident_megabytes, touch_memory
from pykafka_broker.testing.processes import BrokerProcess

KB, GB = 1_000, 1_000_000_000
PARTITIONS = 4
SETTLE_S = 3.0
IDLE_WINDOW_S = 10.0
IDLE_QUERIES, PARKED_FETCHES = 20, 2_000


@dataclass
class Run:
    """One broker on its way through the rows."""

    broker: BrokerProcess
    scale: float
    repeat: int
    moved_bytes: float = 0
    stored: dict[str, int] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return self.broker.address

    def scaled(self, count: int, least: int = 1_000) -> int:
        return max(least, int(count * self.scale))

    def topic(self, name: str) -> str:
        """The topic of this name, created at its first use."""
        if name not in self.stored:
            admin = AdminClient(
                {"bootstrap.servers": self.address, "enable.metrics.push": False, "log_level": 0}
            )
            for created in admin.create_topics([NewTopic(name, PARTITIONS, 1)]).values():
                created.result(30)
            self.stored[name] = 0
        return name

    def loaded(self, what: str, topic: str, records: int, size: int, **options: object) -> dict[str, float]:
        """Run the load generator; its result with the broker's processor seconds per GB of payload."""
        if what == "produce":
            touch_memory(self.broker.folder, int(records * size * 1.2))
        before = cpu_seconds(self.broker.pid)
        result = load.run(what, self.address, topic, records, size=size, **options)
        used = cpu_seconds(self.broker.pid) - before
        payload = records * size
        self.moved_bytes += payload
        if what == "produce":
            self.stored[topic] += records
        return {
            "per_s": records / result["seconds"],
            "mb_s": payload / result["seconds"] / 1e6,
            "cpu": used / (payload / GB),
        }

    def filled(self, topic: str, records: int, size: int) -> str:
        """The topic with at least so many records in it."""
        missing = records - self.stored[self.topic(topic)]
        if missing > 0:
            self.loaded("produce", topic, missing, size)
        return topic


def start(run: Run) -> dict[str, float]:
    """Restarts of a formatted data folder: formatting is a separate step with Apache Kafka."""
    took = []
    for _ in range(max(3, run.repeat)):
        run.broker.stop()
        took.append(run.broker.start())
    return {"seconds": statistics.median(took)}


def idle(run: Run) -> dict[str, float]:
    time.sleep(SETTLE_S)
    before, started = cpu_seconds(run.broker.pid), time.perf_counter()
    time.sleep(IDLE_WINDOW_S)
    used = (cpu_seconds(run.broker.pid) - before) / (time.perf_counter() - started)
    return {"memory": resident_megabytes(run.broker.pid), "cpu": used * 100}


def produce_100(run: Run) -> dict[str, float]:
    return run.loaded("produce", run.topic("bench-100"), run.scaled(10_000_000), 100)


def produce_1k(run: Run) -> dict[str, float]:
    return run.loaded("produce", run.topic("bench-1k"), run.scaled(2_000_000), KB)


def produce_acks1(run: Run) -> dict[str, float]:
    return run.loaded("produce", run.topic("bench-acks1"), run.scaled(2_000_000), KB, acks="1")


def consume_100(run: Run) -> dict[str, float]:
    records = run.scaled(10_000_000)
    return run.loaded("consume", run.filled("bench-100", records, 100), records, 100)


def consume_1k(run: Run) -> dict[str, float]:
    records = run.scaled(2_000_000)
    return run.loaded("consume", run.filled("bench-1k", records, KB), records, KB)


def python_readers(run: Run) -> dict[str, float]:
    """A million records of 100 B, of all that the topic has."""
    records = run.scaled(1_000_000)
    topic = run.filled("bench-readers", records, 100)
    stored = run.stored[topic]

    def measured(reader: str) -> dict[str, float]:
        return readers.measured(reader, run.address, topic, stored, str(run.broker.data_dir))

    found = {name: measured(name) for name in ("arrow", "confluent", "aiokafka", "kafka_python")}
    figures = {f"{name}_per_core": each["per_core"] for name, each in found.items()}
    others = [each["per_core"] for name, each in found.items() if name != "arrow"]
    figures["arrow_ratio"] = found["arrow"]["per_core"] / max(others)
    figures["arrow_per_s"] = found["arrow"]["per_s"]
    if list(run.broker.data_dir.glob(f"{topic}-*")):
        figures["folder_per_core"] = measured("arrow_folder")["per_core"]
        figures["dump_log_per_core"] = measured("dump_log")["per_core"]
    return figures


def kafka_log(run: Run) -> dict[str, float]:
    """Five million records of 100 B, through Spark: a query costs a second before its first record."""
    records = run.scaled(5_000_000)
    topic = run.filled("bench-kafka-log", records, 100)
    figures = kafka_log_job.measured(run.address, str(run.broker.data_dir), topic, run.stored[topic])
    figures["ratio"] = figures["kafka_log_per_core"] / figures["connector_per_core"]
    return figures


def replay(run: Run) -> dict[str, float]:
    return replay_job.measured(run.address, run.scaled(2_000_000, least=20_000))


def archive(run: Run) -> dict[str, float]:
    """Two million records of 100 B, to tables of Delta and Iceberg."""
    topic = run.filled("bench-readers", run.scaled(2_000_000), 100)
    return archive_job.measured(run.address, topic, run.stored[topic])


def ping(run: Run) -> dict[str, float]:
    return pinger.one_at_a_time(run.address, run.topic("bench-ping"), run.scaled(20_000))


def ping16(run: Run) -> dict[str, float]:
    return pinger.many_connections(run.address, run.topic("bench-ping"), run.scaled(100_000))


def echo(run: Run) -> dict[str, float]:
    return load.run("echo", run.address, run.topic("bench-echo"), run.scaled(10_000), size=100)


def perf_produce(run: Run) -> dict[str, float]:
    records = run.scaled(2_000_000)
    result = jvm.producer_performance(run.address, run.topic("bench-perf"), records)
    run.stored["bench-perf"] += records
    return result


def perf_consume(run: Run) -> dict[str, float]:
    records = run.scaled(2_000_000)
    return jvm.consumer_performance(run.address, run.filled("bench-perf", records, 100), records)


def perf_echo(run: Run) -> dict[str, float]:
    return jvm.end_to_end_latency(run.address, run.topic("bench-perf-echo"), run.scaled(5_000))


def spark(run: Run) -> dict[str, float]:
    return spark_lane.run(run.address, run.scaled(2_000_000, least=20_000))


def spark_plans(run: Run) -> dict[str, float]:
    """The requests of a plan, and queries that find nothing new."""
    figures = {}
    for partitions, rounds in ((10, 2_000), (1_000, 50)):
        topic = topic_of(run, partitions)
        micro_batch.fill(run.address, topic, partitions)
        costs = micro_batch.plans(
            run.address, run.broker.pid, topic, partitions, max(10, int(rounds * run.scale))
        )
        by_time = costs.pop("by_time"), costs.pop("by_time_in_vain")
        figures[f"us_{partitions}"] = sum(cost.us_per_partition for cost in costs.values())
        figures[f"by_time_us_{partitions}"] = max(cost.us_per_partition for cost in by_time)
    found = micro_batch.idle_queries(
        run.address, run.broker.pid, topic_of(run, 10), 10, IDLE_QUERIES, IDLE_WINDOW_S
    )
    return figures | {"idle_per_s": found.plans_per_s, "idle_cpu": found.cpu_percent}


def parked(run: Run) -> dict[str, float]:
    """Two thousand fetches that wait, two on each partition."""
    topic = topic_of(run, 1_000)
    found = micro_batch.parked(run.address, run.broker.pid, topic, 1_000, PARKED_FETCHES, IDLE_WINDOW_S)
    return {
        "kilobytes": found.kilobytes,
        "cpu": found.cpu_percent,
        "wake_ms": found.wake_ms,
        "wake_all_us": found.wake_all_us,
    }


def memory(run: Run) -> dict[str, float]:
    """After 10 GB of payload at scale 1, in and out counted together; what is missing is produced here."""
    while (missing := 10 * GB * run.scale - run.moved_bytes) > 0:
        run.loaded("produce", run.topic("bench-memory"), min(int(missing / KB) + 1, 2_000_000), KB)
    return {"used": resident_megabytes(run.broker.pid)}


def compaction(run: Run) -> dict[str, float]:
    """A gigabyte at scale 1."""
    topic = run.topic("bench-ping")
    return compacting.run(run.address, run.broker.data_dir, topic, run.scaled(1_000_000, least=300_000))


def topic_of(run: Run, partitions: int) -> str:
    """A topic with that many partitions."""
    name = f"bench-groups-{partitions}"
    if name not in run.stored:
        admin = AdminClient({"bootstrap.servers": run.address, "enable.metrics.push": False, "log_level": 0})
        for created in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            created.result(60)
        run.stored[name] = 0
    return name


def rebalance(run: Run) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for count in (1, 100, 1_000):
        topic, group = topic_of(run, count), f"bench-{count}-{time.time_ns()}"
        seconds[f"consumer_{count}"] = asyncio.run(
            groups.gather_consumers(run.address, f"{group}-consumer", topic, count, count)
        )
        seconds[f"classic_{count}"] = asyncio.run(
            groups.gather_classic(run.address, f"{group}-classic", topic, count)
        )
    return seconds


def storm(run: Run) -> dict[str, float]:
    figures = asyncio.run(storming.storm(run.address, topic_of(run, 100)))
    return {"seconds": figures.seconds, "slowest_beat_ms": figures.slowest_beat_ms, "lost": figures.lost}


def heartbeats(run: Run) -> dict[str, float]:
    return groups.heartbeats(run.address, run.broker.pid, topic_of(run, 100), run.scaled(10_000))


def commits(run: Run) -> dict[str, float]:
    return groups.commits(run.address, run.broker.pid, topic_of(run, 100), run.scaled(100_000))


def commits_load(run: Run) -> dict[str, float]:
    topic = topic_of(run, 1_000)
    asyncio.run(groups.store_commits(run.address, topic, 1_000, run.scaled(1_000_000, least=100_000)))
    run.broker.stop()
    begun = time.perf_counter()
    run.broker.start()
    asyncio.run(groups.served(run.address))
    return {"seconds": time.perf_counter() - begun}


def transactions(run: Run) -> dict[str, float]:
    return transacting.run(run.address, run.topic("bench-transactions"), run.scaled(40_000))


def stop(run: Run) -> dict[str, float]:
    seconds = run.broker.stop()
    run.broker.start()
    return {"seconds": seconds}


def quorum_elections(run: Run) -> dict[str, float]:
    return of_quorum(run, lambda nodes: quorum.elections(nodes, run.scaled(25, least=3)))


def quorum_commits(run: Run) -> dict[str, float]:
    return of_quorum(run, lambda nodes: quorum.commits(nodes, run.scaled(20_000)))


def quorum_idle(run: Run) -> dict[str, float]:
    return of_quorum(run, quorum.idle)


def quorum_start(run: Run) -> dict[str, float]:
    records = run.scaled(100_000)
    return of_quorum(run, lambda nodes: quorum.start(nodes, records, max(3, run.repeat)))


def of_quorum(run: Run, measure: quorum.Measure) -> dict[str, float]:
    """Measure a quorum of this broker's kind, while the broker itself is stopped."""
    run.broker.stop()
    try:
        return quorum.measured(run.broker.name, measure)
    finally:
        run.broker.start()


Row = Callable[[Run], dict[str, float]]

#: The cost of groups and transactions: `--rows coordination` runs these alone.
COORDINATION: tuple[Row, ...] = (rebalance, storm, heartbeats, commits, commits_load, transactions)

#: Three controllers without brokers: `--rows quorum` runs these alone.
QUORUM: tuple[Row, ...] = (quorum_elections, quorum_commits, quorum_idle, quorum_start)

ROWS: dict[str, Row] = {
    row.__name__: row
    for row in (
        *(start, idle, produce_100, produce_1k, produce_acks1, consume_100, consume_1k),
        *(python_readers, kafka_log, archive, replay),
        *(ping, ping16, echo, perf_produce, perf_consume, perf_echo, spark, memory, compaction),
        *(spark_plans, parked),
        *COORDINATION,
        *QUORUM,
        stop,
    )
}

#: Rows that hold their own repetitions, or that only make sense once.
ONCE = {
    *("start", "idle", "kafka_log", "archive", "replay", "spark", "memory", "compaction", "commits_load"),
    *("quorum_elections", "quorum_idle", "quorum_start", "stop"),
}

#: Apache Kafka's clients and Spark ask kfake for nothing it lacks, but it was measured with these rows only.
NOT_FOR_KFAKE = {
    "spark",
    "spark_plans",
    "parked",
    "python_readers",
    "kafka_log",
    "replay",
    "archive",
    *(row.__name__ for row in COORDINATION + QUORUM),
}
