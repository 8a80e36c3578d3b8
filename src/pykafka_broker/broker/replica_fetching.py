"""The fetchers of this node, built from its parts: connections to leaders, and the disks of the logs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from pykafka_broker.broker.foundation import Foundation
from pykafka_broker.broker.security.links import connect_to_broker, security_with_brokers
from pykafka_broker.broker.stop_order import StopStep, Undo
from pykafka_broker.config import BrokerConfig
from pykafka_broker.log.manager.disk_threads import DiskThreads
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.replication.broker_connection import BrokerConnection, address_of
from pykafka_broker.replication.core.throttling import RateLimit
from pykafka_broker.replication.replica_fetcher import FetcherPorts, FetcherSettings
from pykafka_broker.replication.replica_fetchers import ReplicaFetchers

RateKey = Literal["leader.replication.throttled.rate", "follower.replication.throttled.rate"]


def replica_fetchers(
    f: Foundation,
    logs: LogManager,
    metadata: MetadataPublisher,
    broker_epoch: Callable[[], int],
    undo: Undo,
) -> ReplicaFetchers:
    """The fetchers; they start when the metadata names leaders."""
    config = f.config
    security = security_with_brokers(lambda: f.config)

    async def connect(leader_id: int, fetcher_id: int) -> BrokerConnection:
        address = address_of(metadata.image.brokers.get(leader_id), config.inter_broker_listener_name)
        if address is None:
            raise ConnectionError(
                f"Broker {leader_id} is not registered, or not on {config.inter_broker_listener_name}."
            )
        client_id = f"broker-{f.node_id}-fetcher-{fetcher_id}"
        timeout_ms = config["socket.connection.setup.timeout.ms"]
        return await connect_to_broker(client_id, security, f.clock, address, timeout_ms)

    rate = replication_rate(config, "follower.replication.throttled.rate")
    ports = FetcherPorts(f.clock, _Logs(logs, f.threads.sync), connect, broker_epoch, rate)
    fetchers = ReplicaFetchers(ports, _settings(config), config["num.replica.fetchers"])
    undo.add(StopStep.FETCHERS, fetchers.stop)
    return fetchers


def replication_rate(config: BrokerConfig, key: RateKey) -> RateLimit:
    """The rate limit of `key` for throttled replicas, over the samples of replication quotas."""
    sample_ms = config["replication.quota.window.size.seconds"] * 1_000
    return RateLimit(config[key], config["replication.quota.window.num"], sample_ms)


def _settings(config: BrokerConfig) -> FetcherSettings:
    return FetcherSettings(
        config.node_id,
        max_bytes=config["replica.fetch.max.bytes"],
        response_max_bytes=config["replica.fetch.response.max.bytes"],
        min_bytes=config["replica.fetch.min.bytes"],
        wait_max_ms=config["replica.fetch.wait.max.ms"],
        backoff_ms=config["replica.fetch.backoff.ms"],
        socket_timeout_ms=config["replica.socket.timeout.ms"],
    )


class _Logs:
    """The logs of this node, as fetchers use them."""

    def __init__(self, logs: LogManager, threads: DiskThreads) -> None:
        self._logs = logs
        self._threads = threads
        self.deferred_files = logs.deferred_files

    def checkpoint_truncated(self, log: PartitionLog) -> Awaitable[bool]:
        return self._logs.writes.checkpoint_truncated(log)

    def flush(self, log: PartitionLog) -> Awaitable[object]:
        return self._threads.run(log, log.flusher.flush)

    def is_full(self, log: PartitionLog) -> bool:
        return self._logs.dir_of(log).refusal is not None

    def write_failed(self, log: PartitionLog, error: OSError) -> None:
        self._logs.write_failed(log, error)
