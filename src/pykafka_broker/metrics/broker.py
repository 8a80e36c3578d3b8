"""Families of a broker as a whole: its state, requests that wait, fetch sessions, what it cannot clean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from pykafka_broker.membership.core.heartbeats import Phase
from pykafka_broker.metrics.family import Family, Sample, labelled
from pykafka_broker.metrics.node_parts import BrokerParts, NodeParts, Scrape
from pykafka_broker.network.purgatory import Delayed, Purgatory

#: Kafka's numbers of the states of a broker.
_STATES = {
    Phase.STARTING: 1,
    Phase.RECOVERY: 2,
    Phase.RUNNING: 3,
    Phase.PENDING_CONTROLLED_SHUTDOWN: 6,
    Phase.SHUTTING_DOWN: 7,
}


def _gauge(name: str, meaning: str, bean: str, value: Callable[[BrokerParts], int]) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        if scrape.node.broker is not None:
            yield "", value(scrape.node.broker)

    return Family(name, "gauge", "", meaning, bean, read)


def _purgatory(
    name: str, meaning: str, parked: Callable[[Purgatory], int], delayed: Callable[[Delayed], int]
) -> Family:
    """`parked` are fetches and share fetches."""

    def read(scrape: Scrape) -> Iterable[Sample]:
        if scrape.node.broker is not None:
            purgatory = scrape.node.broker.purgatory
            share_fetches = delayed(purgatory.share_fetches)
            yield labelled(delayedOperation="Fetch"), parked(purgatory) - share_fetches
            yield labelled(delayedOperation="ShareFetch"), share_fetches
            yield labelled(delayedOperation="Produce"), delayed(purgatory.produces)
            yield labelled(delayedOperation="DeleteRecords"), delayed(purgatory.deletions)

    return Family(
        f"kafka_server_delayedoperationpurgatory_{name.lower()}",
        "gauge",
        "delayedOperation",
        meaning,
        f"kafka.server:type=DelayedOperationPurgatory,name={name},delayedOperation=*",
        read,
    )


def _expired_fetches(scrape: Scrape) -> Iterable[Sample]:
    if scrape.node.broker is not None:
        purgatory = scrape.node.broker.purgatory
        yield labelled(fetcherType="consumer"), purgatory.expired_consumers
        yield labelled(fetcherType="follower"), purgatory.expired_followers


def _expired_produces(scrape: Scrape) -> Iterable[Sample]:
    if scrape.node.broker is not None:
        yield "", scrape.node.broker.purgatory.produces.expired


def _uncleanable(scrape: Scrape) -> Iterable[Sample]:
    logs = scrape.node.logs
    counts = Counter(logs.dir_of(log).path for log in logs.cleaner.uncleanable)
    for log_dir in logs.dirs.all:
        yield labelled(logDirectory=log_dir.path), counts[log_dir.path]


def _cleaner(bean: str, name: str, meaning: str, value: Callable[[NodeParts], int]) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        yield "", value(scrape.node)

    return Family(
        f"kafka_log_{bean.lower()}_{name.replace('-', '_')}",
        "gauge",
        "",
        meaning,
        f"kafka.log:type={bean},name={name}",
        read,
    )


def _version(scrape: Scrape) -> Iterable[Sample]:
    yield "", scrape.node.metadata.image.metadata_version


def _controller_id(scrape: Scrape) -> Iterable[Sample]:
    yield "", scrape.node.raft.leader_id


def _dead(scrape: Scrape) -> Iterable[Sample]:
    """The cleaner has no threads that die: a failed round is begun again."""
    yield "", 0


FAMILIES = (
    _gauge(
        "kafka_server_kafkaserver_brokerstate",
        "1 starting, 2 catching up, 3 running, 6 handing over, 7 stopping.",
        "kafka.server:type=KafkaServer,name=BrokerState",
        lambda broker: _STATES[broker.lifecycle.phase],
    ),
    _purgatory(
        "NumDelayedOperations",
        "Requests that wait: fetches for records, Produce and DeleteRecords for followers or syncs.",
        lambda purgatory: purgatory.parked,
        lambda delayed: delayed.operations,
    ),
    _purgatory(
        "PurgatorySize",
        "Partitions that these requests wait for; two requests for one partition count twice.",
        lambda purgatory: purgatory.watches,
        lambda delayed: delayed.places,
    ),
    Family(
        "kafka_server_delayedfetchmetrics_expires_total",
        "counter",
        "fetcherType",
        "Fetches whose time was up before there were enough records.",
        "kafka.server:type=DelayedFetchMetrics,name=ExpiresPerSec,fetcherType=*, Count",
        _expired_fetches,
    ),
    Family(
        "kafka_server_delayedproducemetrics_expires_total",
        "counter",
        "",
        "Partitions of Produce requests that followers did not get in time.",
        "kafka.server:type=DelayedProduceMetrics,name=ExpiresPerSec, Count",
        _expired_produces,
    ),
    _gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "Fetch sessions.",
        "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions",
        lambda broker: len(broker.sessions),
    ),
    _gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
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
    _cleaner(
        "LogCleanerManager",
        "time-since-last-run-ms",
        "Milliseconds since the cleaner last looked for a log to compact.",
        lambda node: node.clock.monotonic_ms() - node.logs.cleaner.looked_ms,
    ),
    _cleaner(
        "LogCleanerManager",
        "max-dirty-percent",
        "Per cent of the dirtiest log that could then be compacted.",
        lambda node: int(100 * node.logs.cleaner.dirtiest),
    ),
    _cleaner(
        "LogCleaner",
        "max-clean-time-secs",
        "Seconds that the last compaction of a log took.",
        lambda node: node.logs.cleaner.last_cleaning_ms // 1000,
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
