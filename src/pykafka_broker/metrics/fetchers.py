"""Families of ReplicaFetcherManager and FetcherLagMetrics: how far replicas here are behind their leaders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pykafka_broker.metrics.family import Family, Pausing, Sample, labelled
from pykafka_broker.metrics.node_parts import BrokerParts, Scrape
from pykafka_broker.replication.following_replica import FollowingReplica

#: Replicas that are looked at before the event loop runs other work.
REPLICAS_PER_SLICE = 200
_MANAGER = labelled(clientId="Replica")


def _followers(broker: BrokerParts) -> Iterator[tuple[str, FollowingReplica]]:
    """Each replica that has had an answer of its leader, with the name of its fetcher in Apache Kafka."""
    for (leader, fetcher_id), fetcher in list(broker.fetchers.running.items()):
        for follower in list(fetcher.followers):
            if follower.lag is not None:
                yield f"ReplicaFetcherThread-{fetcher_id}-{leader}", follower


def _lags(scrape: Scrape) -> Iterable[Sample]:
    if scrape.node.broker is not None:
        for name, follower in _followers(scrape.node.broker):
            partition = follower.partition
            labels = labelled(clientId=name, topic=partition.topic, partition=partition.partition)
            yield labels, follower.lag or 0


def _max_lag(scrape: Scrape) -> Pausing:
    if scrape.node.broker is not None:
        greatest = 0
        for index, (_, follower) in enumerate(_followers(scrape.node.broker), 1):
            greatest = max(greatest, follower.lag or 0)
            if index % REPLICAS_PER_SLICE == 0:
                yield None
        yield _MANAGER, greatest


def _failed(scrape: Scrape) -> Pausing:
    if scrape.node.broker is not None:
        failed = 0
        for fetcher in list(scrape.node.broker.fetchers.running.values()):
            failed += sum([follower.has_stopped for follower in fetcher.followers])
            yield None
        yield _MANAGER, failed


def _least_rate(scrape: Scrape) -> Iterable[Sample]:
    if scrape.node.broker is not None:
        rates = [
            scrape.node.rates.of(f"fetches {leader} {fetcher_id}", fetcher.fetches)
            for (leader, fetcher_id), fetcher in scrape.node.broker.fetchers.running.items()
        ]
        yield _MANAGER, max(0.0, min(rates, default=0.0))  # a fetcher that is made again begins at 0


def _dead(scrape: Scrape) -> Iterable[Sample]:
    if scrape.node.broker is not None:
        yield _MANAGER, 0


FAMILIES = (
    Family(
        "kafka_server_fetcherlagmetrics_consumerlag",
        "gauge",
        "clientId topic partition",
        "Records between a replica here and the high watermark, as its leader told last; on followers.",
        "kafka.server:type=FetcherLagMetrics,name=ConsumerLag,clientId=*,topic=*,partition=*",
        _lags,
    ),
    Family(
        "kafka_server_replicafetchermanager_maxlag",
        "gauge",
        "clientId",
        "The greatest of these lags.",
        "kafka.server:type=ReplicaFetcherManager,name=MaxLag,clientId=Replica",
        _max_lag,
    ),
    Family(
        "kafka_server_replicafetchermanager_failedpartitionscount",
        "gauge",
        "clientId",
        "Replicas here that are not fetched until the next leader epoch, because of a failure.",
        "kafka.server:type=ReplicaFetcherManager,name=FailedPartitionsCount,clientId=Replica",
        _failed,
    ),
    Family(
        "kafka_server_replicafetchermanager_minfetchrate",
        "gauge",
        "clientId",
        "Fetches a second of the slowest fetcher since the last scrape; 0 without a fetcher.",
        "kafka.server:type=ReplicaFetcherManager,name=MinFetchRate,clientId=Replica",
        _least_rate,
    ),
    Family(
        "kafka_server_replicafetchermanager_deadthreadcount",
        "gauge",
        "clientId",
        "Always 0: a fetcher that fails begins again.",
        "kafka.server:type=ReplicaFetcherManager,name=DeadThreadCount,clientId=Replica",
        _dead,
    ),
)
