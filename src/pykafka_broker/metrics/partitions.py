"""Families of ReplicaManager, Partition, Log, LogManager and LogFlushStats, and those of the Kafka exporter
for partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Union

from pykafka_broker.cluster.image import PartitionRegistration
from pykafka_broker.log.disk.environment import FlushTimes
from pykafka_broker.log.partition.state import LogState
from pykafka_broker.metrics.copies import Copies, quantiles
from pykafka_broker.metrics.family import Family, Pausing, Sample, labelled
from pykafka_broker.metrics.node_parts import NodeParts, Scrape
from pykafka_broker.replication.core.in_sync import is_at_min_isr, is_under_min_isr
from pykafka_broker.replication.core.state import Leadership
from pykafka_broker.replication.partition import Partition
from pykafka_broker.system.histogram import NS_PER_UNIT

#: Partitions that are looked at before the event loop runs other work.
PARTITIONS_PER_SLICE = 200

_Value = Union[int, float]


class _Held:
    """The partitions of the node as the scrape began, and their labels, which the first family makes."""

    def __init__(self, node: NodeParts) -> None:
        self.partitions = [] if node.broker is None else list(node.broker.replicas.partitions)
        self.labels: list[str] = []

    def each(self) -> Iterator[tuple[str, Partition]]:
        labels = self.labels
        for index, partition in enumerate(self.partitions):
            if index == len(labels):
                labels.append(f'{{topic="{partition.topic}",partition="{partition.partition}"}}')
            yield labels[index], partition


class _Tally:
    """Sums over all partitions of the node."""

    def __init__(self, node: NodeParts) -> None:
        self._image = node.metadata.image
        self._now_ms = node.clock.now_ms()
        self._max_timeout_ms = node.config["transaction.max.timeout.ms"]
        self.is_complete = False
        self.leaders = self.partitions = self.offline = self.producers = 0
        self.under_replicated = self.under_min_isr = self.at_min_isr = self.reassigning = self.late = 0

    def count(self, partition: Partition) -> None:
        self.partitions += 1
        state = partition.log.state
        self.producers += len(state.producers.producers)
        if state.offline is not None:
            self.offline += 1
        leadership = _leadership(partition)
        if leadership is None:
            return
        self.leaders += 1
        self.under_replicated += _is_under_replicated(leadership)
        self.under_min_isr += is_under_min_isr(leadership)
        self.at_min_isr += is_at_min_isr(leadership)
        self.late += state.producers.has_late_transaction(self._now_ms, self._max_timeout_ms)
        registration = self._image.partition(partition.topic, partition.partition)
        self.reassigning += registration is not None and bool(registration.adding or registration.removing)


def _leadership(partition: Partition) -> Leadership | None:
    return None if partition.leading is None else partition.leading.leadership


def _is_under_replicated(leadership: Leadership) -> bool:
    return len(leadership.isr.committed) <= len(leadership.followers)


def _tallied(scrape: Scrape) -> Pausing:
    tally = scrape.once(_Tally)
    if not tally.is_complete:
        for index, (_, partition) in enumerate(scrape.once(_Held).each(), 1):
            tally.count(partition)
            if index % PARTITIONS_PER_SLICE == 0:
                yield None
        tally.is_complete = True


def _manager(name: str, meaning: str, value: Callable[[_Tally], int]) -> Family:
    def read(scrape: Scrape) -> Pausing:
        if scrape.node.broker is not None:
            yield from _tallied(scrape)
            yield "", value(scrape.once(_Tally))

    bean = f"kafka.server:type=ReplicaManager,name={name}"
    return Family(f"kafka_server_replicamanager_{name.lower()}", "gauge", "", meaning, bean, read)


def _isr_changes(name: str, meaning: str, attribute: str) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        if scrape.node.broker is not None:
            yield "", getattr(scrape.node.broker.replicas.counts.total(), attribute)

    return Family(
        f"kafka_server_replicamanager_{name.lower()}_total",
        "counter",
        "",
        meaning,
        f"kafka.server:type=ReplicaManager,name={name}PerSec, Count",
        read,
    )


def _each(name: str, bean: str, meaning: str, value: Callable[[Partition], _Value]) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        for labels, partition in scrape.once(_Held).each():
            yield labels, value(partition)

    return Family(name, "gauge", "topic partition", meaning, bean, read)


def _partition(name: str, meaning: str, value: Callable[[Leadership], _Value]) -> Family:
    def of_leader(partition: Partition) -> _Value:
        leadership = _leadership(partition)
        return 0 if leadership is None else int(value(leadership))

    return _each(
        f"kafka_cluster_partition_{name.lower()}",
        f"kafka.cluster:type=Partition,name={name},topic=*,partition=*",
        f"{meaning}; 0 where this broker does not lead.",
        of_leader,
    )


def _log(name: str, meaning: str, value: Callable[[LogState], _Value]) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        log = scrape.node.raft.log
        yield labelled(topic=log.topic, partition=log.partition), value(log.state)
        for labels, partition in scrape.once(_Held).each():
            yield labels, value(partition.log.state)

    bean = f"kafka.log:type=Log,name={name},topic=*,partition=*"
    return Family(f"kafka_log_log_{name.lower()}", "gauge", "topic partition", meaning, bean, read)


def _stable_lag(partition: Partition) -> int:
    state = partition.log.state
    return state.high_watermark - state.last_stable_offset


def _led(name: str, meaning: str, value: Callable[[Partition, PartitionRegistration], int]) -> Family:
    def read(scrape: Scrape) -> Pausing:
        image = scrape.node.metadata.image
        for index, (labels, partition) in enumerate(scrape.once(_Held).each(), 1):
            if index % PARTITIONS_PER_SLICE == 0:
                yield None
            if partition.leading is None:
                continue
            registration = image.partition(partition.topic, partition.partition)
            if registration is not None:
                yield labels, value(partition, registration)

    return Family(f"kafka_topic_partition_{name}", "gauge", "topic partition", meaning, "", read)


def _topic_partitions(scrape: Scrape) -> Pausing:
    node_id = scrape.node.config.node_id
    if scrape.node.broker is None:
        return
    for index, topic in enumerate(list(scrape.node.metadata.image.topics.values()), 1):
        if index % PARTITIONS_PER_SLICE == 0:
            yield None
        first = topic.partitions.get(0)
        if first is not None and first.leader == node_id:
            yield labelled(topic=topic.name), len(topic.partitions)


def _directories(scrape: Scrape) -> Iterable[Sample]:
    for log_dir in scrape.node.logs.dirs.all:
        yield labelled(logDirectory=log_dir.path), int(not log_dir.is_online)


def _offline_directories(scrape: Scrape) -> Iterable[Sample]:
    yield "", sum(not log_dir.is_online for log_dir in scrape.node.logs.dirs.all)


def _unopened(scrape: Scrape) -> Iterable[Sample]:
    for log_dir in scrape.node.logs.dirs.all:
        yield labelled(dir=log_dir.path), len(log_dir.unopened)


def _flush_times(node: NodeParts) -> list[FlushTimes]:
    environments = [log_dir.environment for log_dir in node.logs.dirs.all]
    times = [node.raft.log.flusher.times, *(one.flushes for one in environments if one is not None)]
    return list(dict.fromkeys(times))


def _flush_count(scrape: Scrape) -> Iterable[Sample]:
    yield "", sum(times.count for times in _flush_times(scrape.node))


def _flush_quantiles(scrape: Scrape) -> Iterable[Sample]:
    all_times = _flush_times(scrape.node)
    histogram = [sum(counts) for counts in zip(*(times.histogram for times in all_times), strict=True)]
    kept = scrape.node.copies.setdefault(("flush", ""), Copies())
    recent = kept.since(scrape.node.clock.monotonic_ms(), sum(histogram), histogram)
    for quantile, value in quantiles(*recent):
        yield labelled(quantile=quantile), round(value * NS_PER_UNIT / 1e6, 6)


def _room(name: str, meaning: str, place: int) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        for path, space in scrape.once(_spaces).items():
            yield labelled(logDirectory=path), space[place]

    return Family(f"pykafka_broker_log_directory_{name}", "gauge", "logDirectory", meaning, "", read)


def _spaces(node: NodeParts) -> dict[str, tuple[int, int]]:
    """What the volumes have said; those of a slow disk may answer when the scrape is over."""
    logs = node.logs
    found = {log_dir.path: logs.spaces.of(log_dir) for log_dir in logs.dirs.all}
    for log_dir in logs.dirs.all:
        logs.spaces.ask(log_dir)
    return {path: space for path, space in found.items() if space is not None}


def _offline(scrape: Scrape) -> Pausing:
    if scrape.node.broker is not None:
        yield from _tallied(scrape)
        yield "", scrape.once(_Tally).offline + scrape.node.broker.replicas.missing


FAMILIES = (
    _partition("UnderReplicated", "1 if a replica is not in sync", _is_under_replicated),
    _partition("InSyncReplicasCount", "Replicas in sync", lambda found: len(found.isr.committed)),
    _partition("ReplicasCount", "Replicas", lambda found: len(found.followers) + 1),
    _partition("UnderMinIsr", "1 if fewer replicas are in sync than acks=all needs", is_under_min_isr),
    _partition("AtMinIsr", "1 if just as many are in sync as acks=all needs", is_at_min_isr),
    _each(
        "kafka_cluster_partition_laststableoffsetlag",
        "kafka.cluster:type=Partition,name=LastStableOffsetLag,topic=*,partition=*",
        "Offsets between the last stable offset and the high watermark.",
        _stable_lag,
    ),
    _log("Size", "Bytes of the log's segments.", lambda state: state.size_bytes),
    _log("NumLogSegments", "Segments.", lambda state: len(state.segments)),
    _log("LogStartOffset", "The first offset.", lambda state: state.log_start_offset),
    _log("LogEndOffset", "The next offset to be written.", lambda state: state.log_end_offset),
    _led(
        "current_offset",
        "The high watermark, on the leader.",
        lambda found, _: found.log.state.high_watermark,
    ),
    _led(
        "oldest_offset", "The first offset, on the leader.", lambda found, _: found.log.state.log_start_offset
    ),
    _led("replicas", "Replicas, on the leader.", lambda _, found: len(found.replicas)),
    _led("in_sync_replica", "Replicas in sync, on the leader.", lambda _, found: len(found.isr)),
    _led("leader", "The id of the leader, on the leader.", lambda _, found: found.leader),
    _led(
        "leader_is_preferred",
        "1 if the leader is the first replica, on the leader.",
        lambda _, found: int(found.replicas[:1] == (found.leader,)),
    ),
    _led(
        "under_replicated_partition",
        "1 if a replica is not in sync, on the leader.",
        lambda _, found: int(len(found.isr) < len(found.replicas)),
    ),
    Family(
        "kafka_topic_partitions",
        "gauge",
        "topic",
        "Partitions of a topic, on the leader of its partition 0.",
        "",
        _topic_partitions,
    ),
    _manager("PartitionCount", "Partitions held here.", lambda tally: tally.partitions),
    _manager("LeaderCount", "Partitions led here.", lambda tally: tally.leaders),
    _manager(
        "UnderReplicatedPartitions",
        "Partitions led here with a replica that is not in sync.",
        lambda tally: tally.under_replicated,
    ),
    _manager(
        "UnderMinIsrPartitionCount",
        "Partitions led here in which too few replicas are in sync for acks=all.",
        lambda tally: tally.under_min_isr,
    ),
    _manager(
        "AtMinIsrPartitionCount",
        "Partitions led here in which just enough replicas are in sync.",
        lambda tally: tally.at_min_isr,
    ),
    _manager(
        "ReassigningPartitions",
        "Partitions led here that get other replicas.",
        lambda tally: tally.reassigning,
    ),
    _manager("ProducerIdCount", "Producers that the logs here know.", lambda tally: tally.producers),
    _manager(
        "PartitionsWithLateTransactionsCount",
        "Partitions led here with a transaction that outlives `transaction.max.timeout.ms` by five minutes.",
        lambda tally: tally.late,
    ),
    Family(
        "kafka_server_replicamanager_offlinereplicacount",
        "gauge",
        "",
        "Partitions here whose disk has failed.",
        "kafka.server:type=ReplicaManager,name=OfflineReplicaCount",
        _offline,
    ),
    _isr_changes("IsrShrinks", "Smaller sets of replicas in sync that were asked for.", "isr_shrinks"),
    _isr_changes("IsrExpands", "Larger sets of replicas in sync that were asked for.", "isr_expands"),
    _isr_changes("FailedIsrUpdates", "Those of them that the controller refused.", "failed_isr_updates"),
    Family(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "gauge",
        "",
        "Log directories out of service.",
        "kafka.log:type=LogManager,name=OfflineLogDirectoryCount",
        _offline_directories,
    ),
    Family(
        "kafka_log_logmanager_logdirectoryoffline",
        "gauge",
        "logDirectory",
        "1 if the directory is out of service.",
        "kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory=*",
        _directories,
    ),
    Family(
        "kafka_log_logmanager_remaininglogstorecover",
        "gauge",
        "dir",
        "Logs that the start has still to open.",
        "kafka.log:type=LogManager,name=remainingLogsToRecover,dir=*",
        _unopened,
    ),
    Family(
        "kafka_log_logflushstats_logflushrateandtimems",
        "gauge",
        "quantile",
        "Quantiles of the flushes of the last minutes: milliseconds until the disk has a segment.",
        "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs, *Percentile",
        _flush_quantiles,
    ),
    Family(
        "kafka_log_logflushstats_logflushrateandtimems_count",
        "untyped",
        "",
        "Flushes of segments.",
        "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs, Count",
        _flush_count,
    ),
    _room("bytes", "Bytes of the volume of a log directory that is in service.", 0),
    _room(
        "usable_bytes",
        "Bytes that may still be written there, as of the scrape before; 0 while the disk refuses writes.",
        1,
    ),
)
