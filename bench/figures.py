"""The figures that the bench measures: one line per figure, with its floor and its aim.

A bound is a ratio to another broker's figure of the same run: Apache Kafka's unless it says kfake's. A few
are plain values in the unit of their figure. The floor must be met; the aim is to be ahead of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Values = dict[str, dict[str, float]]

#: In the place of another broker: the bound is a value.
ALONE = "alone"


@dataclass(frozen=True)
class Bound:
    ratio: float
    of: str = "apache"

    def __str__(self) -> str:
        if self.of == ALONE:
            return f"{self.ratio:g}"
        return f"{self.ratio:g}x" + ("" if self.of == "apache" else f" {self.of}")


@dataclass(frozen=True)
class Figure:
    key: str
    title: str
    unit: str
    better: Literal["lower", "higher"]
    floor: Bound | None = None
    aim: Bound | None = None

    def meets(self, bound: Bound | None, values: Values) -> bool | None:
        """Whether our figure keeps the bound; None where one of the two was not measured."""
        if bound is None:
            return None
        mine = values.get("ours", {}).get(self.key)
        theirs = 1.0 if bound.of == ALONE else values.get(bound.of, {}).get(self.key)
        if mine is None or theirs is None:
            return None
        return mine <= theirs * bound.ratio if self.better == "lower" else mine >= theirs * bound.ratio

    def ratio(self, values: Values) -> float | None:
        """Ours as a multiple of Apache Kafka's."""
        mine, theirs = values.get("ours", {}).get(self.key), values.get("apache", {}).get(self.key)
        return mine / theirs if mine is not None and theirs else None


def lower(key: str, title: str, unit: str, floor: Bound | None = None, aim: Bound | None = None) -> Figure:
    return Figure(key, title, unit, "lower", floor, aim)


def higher(key: str, title: str, unit: str, floor: Bound | None = None, aim: Bound | None = None) -> Figure:
    return Figure(key, title, unit, "higher", floor, aim)


X = Bound
ONE_SECOND = Bound(1.0, ALONE)
KFAKE = Bound(1.0, "kfake")

FIGURES = (
    lower("start.seconds", "start: process start to first answered request", "s", X(0.25), X(0.1)),
    lower("idle.memory", "memory, idle", "MB", X(0.15), X(0.1)),
    lower("idle.cpu", "processor, idle", "% of a core", X(0.3), X(0.05)),
    higher("produce_100.per_s", "produce 100 B records", "records/s", X(1.0), KFAKE),
    higher("produce_100.mb_s", "  the same in bytes", "MB/s"),
    lower("produce_100.cpu", "  broker's processor time", "s/GB", X(0.6), X(0.3)),
    higher("produce_1k.mb_s", "produce 1 KB records", "MB/s", X(1.0), X(1.5)),
    lower("produce_1k.cpu", "  broker's processor time", "s/GB", X(0.5), X(0.2)),
    higher("produce_acks1.mb_s", "produce 1 KB records, acks=1", "MB/s", X(1.0), X(1.3)),
    higher("consume_100.per_s", "consume 100 B records from page cache", "records/s", X(0.9), X(1.0)),
    lower("consume_100.cpu", "  broker's processor time", "s/GB", None, X(1.0)),
    higher("consume_1k.mb_s", "consume 1 KB records from page cache", "MB/s", X(0.8), X(1.0)),
    lower("consume_1k.cpu", "  broker's processor time", "s/GB", None, X(1.0)),
    higher("python_readers.arrow_per_core", "read 100 B records in Python: read_topic", "records/core s"),
    higher("python_readers.confluent_per_core", "  confluent-kafka", "records/core s"),
    higher("python_readers.aiokafka_per_core", "  aiokafka", "records/core s"),
    higher("python_readers.kafka_python_per_core", "  kafka-python", "records/core s"),
    higher("python_readers.arrow_ratio", "  read_topic, as a multiple of the fastest of them", "x"),
    higher("python_readers.arrow_per_s", "  read_topic, by the clock", "records/s"),
    higher("python_readers.folder_per_core", "read them from the folder: read_folder", "records/core s"),
    higher("python_readers.dump_log_per_core", "  kafka-dump-log", "records/core s"),
    higher("kafka_log.connector_per_core", "Spark reads 100 B records: its connector", "records/core s"),
    higher(
        "kafka_log.kafka_log_per_core", "  kafka_log, of the folder, the column it needs", "records/core s"
    ),
    higher("kafka_log.all_columns_per_core", "  kafka_log, all columns", "records/core s"),
    higher("kafka_log.ratio", "  kafka_log, as a multiple of the connector", "x"),
    higher("kafka_log.connector_per_s", "  the connector, by the clock", "records/s"),
    higher("kafka_log.kafka_log_per_s", "  kafka_log, by the clock", "records/s"),
    higher("replay.per_s", "replay of rows of 100 B from Parquet, exactly once", "records/s"),
    higher("archive.delta_per_s", "Spark archives 100 B records: to Delta", "records/s"),
    higher("archive.delta_mb_per_s", "  in bytes", "MB/s"),
    higher("archive.iceberg_per_s", "  to Iceberg", "records/s"),
    higher("archive.iceberg_mb_per_s", "  in bytes", "MB/s"),
    lower("ping.p50_us", "one record, wait for its ack: p50", "us", X(0.6), KFAKE),
    lower("ping.p99_us", "  p99", "us", X(0.2), KFAKE),
    higher(
        "ping16.per_s", "16 connections, one record each at a time", "acks/s", X(1.5), Bound(0.8, "kfake")
    ),
    lower("ping16.p99_ms", "  p99", "ms", X(0.5)),
    lower("echo.p50_us", "produce to consumer, end to end: p50", "us", X(0.6), KFAKE),
    lower("echo.p99_us", "  p99", "us", X(0.2), KFAKE),
    higher("perf_produce.per_s", "ProducerPerformance, 100 B", "records/s", X(1.0), KFAKE),
    higher("perf_consume.per_s", "ConsumerPerformance, 100 B", "records/s", X(0.9), X(1.0)),
    lower("perf_echo.mean_us", "EndToEndLatency, mean", "us", X(1.0), KFAKE),
    lower("spark.write_s", "Spark, rows of 100 B: write", "s", X(1.1), X(0.9)),
    lower("spark.read_s", "  read", "s", X(1.1), X(0.9)),
    lower("spark.copy_s", "  stream copy", "s", X(1.1), X(0.9)),
    lower("spark_plans.us_10", "processor time of a plan of a micro-batch: of 10 partitions, for each", "us"),
    lower("spark_plans.us_1000", "  of 1,000", "us"),
    lower("spark_plans.by_time_us_10", "  by time, of 10", "us"),
    lower("spark_plans.by_time_us_1000", "  by time, of 1,000", "us"),
    higher("spark_plans.idle_per_s", "  20 queries that find nothing new: plans", "1/s"),
    lower("spark_plans.idle_cpu", "  and processor time of the broker", "% of a core"),
    lower("parked.kilobytes", "2,000 fetches that wait: memory of each", "kB"),
    lower("parked.cpu", "  processor time of all", "% of a core"),
    lower("parked.wake_ms", "  from a record to the answer", "ms"),
    lower("parked.wake_all_us", "  where 500 wait for one record: processor time for each", "us"),
    lower("memory.used", "memory after the load", "MB", X(0.1), X(0.06)),
    lower("compaction.ratio", "p99 of one record while 1 GB is compacted", "x quiet"),
    lower("compaction.p99_us", "  the same in time", "us"),
    lower("compaction.seconds", "  how long it takes", "s"),
    lower("rebalance.consumer_1", "consumer group: 1 member from join to its share", "s", X(1.0), X(0.5)),
    lower("rebalance.consumer_100", "  100 members", "s", X(1.0), X(0.5)),
    lower("rebalance.consumer_1000", "  1,000 members", "s", X(1.0), X(0.5)),
    lower("rebalance.classic_1", "classic group: 1 member from join to its assignment", "s", X(1.0), X(0.5)),
    lower("rebalance.classic_100", "  100 members", "s", X(1.0), X(0.5)),
    lower("rebalance.classic_1000", "  1,000 members", "s", X(1.0), X(0.5)),
    lower("storm.seconds", "300 classic groups of 3 rebalance at once", "s", X(1.0)),
    lower("storm.slowest_beat_ms", "  the slowest heartbeat meanwhile", "ms", X(1.0)),
    lower("storm.lost", "  members that lose their place", "members"),
    higher("heartbeats.per_s", "heartbeats of a consumer group", "1/s", X(1.0)),
    higher("heartbeats.per_core", "  per second of the broker's processor time", "1/s", X(1.0)),
    higher("commits.per_s", "commits of one offset, 16 groups at once", "1/s", X(1.0)),
    higher("commits.per_core", "  per second of the broker's processor time", "1/s"),
    lower("commits.p50_us", "  p50", "us", X(1.0)),
    lower("commits.p99_us", "  p99", "us", X(0.5)),
    lower(
        "commits_load.seconds",
        "a million commits: process start until their groups are served",
        "s",
        X(1.0),
        X(0.5),
    ),
    higher("transactions.per_s", "16 producers, transactions of one record", "1/s", X(1.0)),
    lower("transactions.p50_ms", "  p50, from the record sent to the commit answered", "ms", X(1.0)),
    lower("transactions.p99_ms", "  p99", "ms", X(0.5)),
    lower(
        "quorum_elections.kill_p50_ms", "quorum of 3: kill -9 of its leader to a commit", "ms", X(1), X(0.5)
    ),
    lower("quorum_elections.kill_p95_ms", "  p95", "ms", X(1.0), X(0.5)),
    lower("quorum_elections.kill_max_ms", "  longest", "ms", Bound(400, ALONE)),
    lower("quorum_elections.stop_p50_ms", "  clean stop of its leader to a commit", "ms", X(1.0), X(0.5)),
    lower("quorum_elections.stop_p95_ms", "  p95", "ms", X(1.0), X(0.5)),
    higher("quorum_commits.per_s", "metadata commits, 3 voters, 16 connections", "1/s", X(1.0)),
    lower("quorum_commits.p50_ms", "  p50", "ms"),
    lower("quorum_commits.p99_ms", "  p99", "ms"),
    higher("quorum_commits.per_core", "  per second of the voters' processor time", "1/s"),
    lower("quorum_idle.cpu", "quorum of 3, idle: processor", "% of a core", X(0.2)),
    lower("quorum_idle.memory", "  memory", "MB"),
    lower("quorum_start.seconds", "start of a voter with 100,000 metadata records", "s", X(1.0)),
    lower("cluster_leader.seconds", "3 nodes: kill -9 of the leader to an ack", "s", X(0.5), ONE_SECOND),
    lower("cluster_follower.seconds", "  kill -9 of a follower to an ack", "s", X(0.5), ONE_SECOND),
    lower(
        "cluster_controller.seconds", "  kill -9 of the active controller to an ack", "s", X(0.5), ONE_SECOND
    ),
    lower("cluster_move.seconds", "  longest gap of a leader's move", "s", X(0.5), ONE_SECOND),
    lower("cluster_restart.seconds", "  longest gap of a rolling restart", "s", X(0.5), ONE_SECOND),
    # Without an aim: bench/README.md says what of it is librdkafka's own.
    lower("cluster_client.kill_s", "  kill -9 of the leader, as librdkafka sees it", "s", X(0.5)),
    lower("cluster_client.restart_s", "  a rolling restart, as librdkafka sees it", "s", X(0.5), ONE_SECOND),
    higher("cluster_produce.mb_s", "  produce 1 KB records to 3 replicas, acks=all", "MB/s", X(1.0)),
    lower("cluster_produce.cpu", "  processor time of all nodes for it", "s/GB", X(0.6)),
    lower("cluster_produce.bulk_p99_ms", "  p99 of its requests", "ms", X(1.0)),
    higher("cluster_produce.acks_per_s", "  16 connections, one record each at a time", "acks/s", X(1.0)),
    lower("cluster_produce.p99_ms", "  p99", "ms", X(1.0)),
    lower("cluster_produce.memory", "  memory of a node after this", "MB", X(0.15)),
    higher("cluster_catch_up.mb_s", "  catch-up of a follower that was away", "MB/s", X(1.0)),
    lower("cluster_catch_up.seconds", "  the same in time", "s"),
    lower("cluster_first.first_130_s", "  first records to 130 partitions of 100 topics", "s", X(1.0)),
    lower("cluster_first.second_130_s", "  the same again", "s", X(1.0)),
    lower("cluster_first.first_300_s", "  first records to 300 partitions of a topic", "s", X(1.0)),
    lower("cluster_first.second_300_s", "  the same again", "s", X(1.0)),
    lower("cluster_first.first_1000_s", "  first records to 1,000 partitions of a topic", "s", X(1.0)),
    lower("cluster_first.second_1000_s", "  the same again", "s", X(1.0)),
    lower("cluster_first.first_3000_s", "  first records to 3,000 partitions of a topic", "s", X(1.0)),
    lower("cluster_first.second_3000_s", "  the same again", "s", X(1.0)),
    lower("cluster_first.growth", "  first records, time of one of 3,000 by one of 130", "x"),
    lower("cluster_first.death_s", "  kill -9 of that leader to an ack of each", "s", X(1.0)),
    higher("cluster_first.acks_1s", "  acks in the second after the first of them", "acks", X(1.0)),
    lower("cluster_again_at_once.seconds", "  second records to 1,000 at once", "s", X(1.0)),
    higher("tls_produce.mb_s", "TLS: produce 1 KB records", "MB/s", X(1.0)),
    lower("tls_produce.cpu", "  broker's processor time", "s/GB", X(1.0)),
    higher("tls_produce.share", "  of what plain text moves per CPU second", "x"),
    higher("tls_produce.of_possible", "  of what the cipher leaves of that", "x", Bound(0.7, ALONE)),
    higher("tls_consume.mb_s", "TLS: consume 1 KB records from page cache", "MB/s", X(1.0)),
    lower("tls_consume.cpu", "  broker's processor time", "s/GB", X(1.0)),
    higher("tls_consume.share", "  of what plain text moves per CPU second", "x"),
    higher("tls_consume.of_possible", "  of what the cipher leaves of that", "x", Bound(0.7, ALONE)),
    lower("tls_loops.produce_uvloop", "TLS on uvloop: processor time of produce", "s/GB"),
    lower("tls_loops.produce_asyncio", "  on asyncio's own loop", "s/GB"),
    lower("tls_loops.consume_uvloop", "TLS on uvloop: processor time of consume", "s/GB"),
    lower("tls_loops.consume_asyncio", "  on asyncio's own loop", "s/GB"),
    lower("acls.p50_us", "one record, wait for its ack, 100,000 ACLs: p50", "us"),
    lower("acls.p99_us", "  p99", "us"),
    lower("acls.ratio", "  p50, as a multiple of that with one ACL", "x", Bound(1.05, ALONE)),
    higher("share_throughput.per_s_1", "share group: acknowledge records, 1 consumer", "records/s", X(1.0)),
    higher("share_throughput.per_s_10", "  10 consumers", "records/s", X(1.0)),
    higher("share_throughput.per_s_100", "  100 consumers", "records/s", X(1.0)),
    higher("share_throughput.per_core_1", "  per second of the broker's processor time, 1", "records/s"),
    higher("share_throughput.per_core_10", "  10 consumers", "records/s"),
    higher("share_throughput.per_core_100", "  100 consumers", "records/s"),
    lower("share_throughput.client_1", "  processor, 1 consumer itself", "% of a core"),
    lower("share_throughput.client_10", "  10 consumers themselves", "% of a core"),
    lower("share_throughput.client_100", "  100 consumers themselves", "% of a core"),
    lower("share_delivery.p50_ms", "share group: from produce to delivery, 500/s, p50", "ms", X(1.0)),
    lower("share_delivery.p99_ms", "  p99", "ms", X(1.0)),
    lower("share_idle.cpu", "1,000 share groups whose fetches wait: processor", "% of a core", X(0.2)),
    lower("share_idle.cpu_left", "  without consumers", "% of a core", X(0.2)),
    lower("share_idle.cpu_fetching", "  that fetch every 500 ms", "% of a core"),
    lower("share_idle.memory", "  memory", "MB"),
    lower("share_idle.kilobytes", "  memory for each", "kB"),
    lower("streams_rebalance.seconds", "streams group: from 50 members to 100", "s", X(0.5)),
    lower("streams_rebalance.default_seconds", "  with 1 s between two assignments", "s", X(1.0)),
    lower(
        "metrics.cpu_ms", "metrics of 10,000 partitions: processor time of a scrape", "ms", Bound(300, ALONE)
    ),
    lower("metrics.ms", "  a scrape by the clock", "ms"),
    higher("metrics.lines", "  its lines", "lines"),
    lower("metrics.quiet_p99_us", "  p99 of one record and its ack, without scrapes", "us"),
    lower("metrics.p99_us", "  while one scrape follows the other", "us", Bound(10_000, ALONE)),
    lower("stop.seconds", "clean stop", "s", X(0.5), X(0.2)),
)
