"""Families of a broker as a whole: its state, requests that wait, fetch sessions, what it cannot clean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from pykafka_broker.membership.core.heartbeats import Phase
from pykafka_broker.metrics.family import Family, Sample, labelled
from pykafka_broker.metrics.node_parts import BrokerParts, Scrape

#: Kafka's numbers of the states of a broker.
_STATES = {
    Phase.STARTING: 1,
    Phase.RECOVERY: 2,
    Phase.RUNNING: 3,
    Phase.PENDING_CONTROLLED_SHUTDOWN: 6,
    Phase.SHUTTING_DOWN: 7,
}


def _gauge(
    name: str, labels: str, meaning: str, bean: str, value: Callable[[BrokerParts], int], text: str = ""
) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        if scrape.node.broker is not None:
            yield text, value(scrape.node.broker)

    return Family(name, "gauge", labels, meaning, bean, read)


def _uncleanable(scrape: Scrape) -> Iterable[Sample]:
    logs = scrape.node.logs
    counts = Counter(logs.dir_of(log).path for log in logs.cleaner.uncleanable)
    for log_dir in logs.dirs.all:
        yield labelled(logDirectory=log_dir.path), counts[log_dir.path]


def _version(scrape: Scrape) -> Iterable[Sample]:
    yield "", scrape.node.metadata.image.metadata_version


def _controller_id(scrape: Scrape) -> Iterable[Sample]:
    yield "", scrape.node.raft.leader_id


def _dead(scrape: Scrape) -> Iterable[Sample]:
    """The cleaner has no threads that die: a failed round is begun again."""
    yield "", 0


_FETCH = labelled(delayedOperation="Fetch")
FAMILIES = (
    _gauge(
        "kafka_server_kafkaserver_brokerstate",
        "",
        "1 starting, 2 catching up, 3 running, 6 handing over, 7 stopping.",
        "kafka.server:type=KafkaServer,name=BrokerState",
        lambda broker: _STATES[broker.lifecycle.phase],
    ),
    _gauge(
        "kafka_server_delayedoperationpurgatory_numdelayedoperations",
        "delayedOperation",
        "Fetches that wait for records.",
        "kafka.server:type=DelayedOperationPurgatory,name=NumDelayedOperations,delayedOperation=Fetch",
        lambda broker: broker.purgatory.parked,
        _FETCH,
    ),
    _gauge(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "delayedOperation",
        "Logs for which they wait, each as often as a fetch waits for it.",
        "kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize,delayedOperation=Fetch",
        lambda broker: broker.purgatory.watches,
        _FETCH,
    ),
    _gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "",
        "Fetch sessions.",
        "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions",
        lambda broker: len(broker.sessions),
    ),
    _gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
        "",
        "Partitions in them.",
        "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchPartitionsCached",
        lambda broker: broker.sessions.partitions,
    ),
    Family(
        "kafka_server_metadataloader_currentmetadataversion",
        "gauge",
        "",
        "The level of `metadata.version`.",
        "kafka.server:type=MetadataLoader,name=CurrentMetadataVersion",
        _version,
    ),
    Family(
        "kafka_server_metadataloader_currentcontrollerid",
        "gauge",
        "",
        "The active controller; -1 if none is known.",
        "kafka.server:type=MetadataLoader,name=CurrentControllerId",
        _controller_id,
    ),
    Family(
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        "gauge",
        "logDirectory",
        "Logs that are not compacted until the next start, because their records are damaged.",
        "kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count,logDirectory=*",
        _uncleanable,
    ),
    Family(
        "kafka_log_logcleaner_deadthreadcount",
        "gauge",
        "",
        "Always 0: a round of compaction that fails begins again.",
        "kafka.log:type=LogCleaner,name=DeadThreadCount",
        _dead,
    ),
)
