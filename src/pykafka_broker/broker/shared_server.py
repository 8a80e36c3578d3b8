"""The parts of a node that its broker and its controller share (Kafka's SharedServer): log directories,
listeners, and the replica of the metadata log.

They are built in this order: reserve the addresses to listen on, lock the log directories and format new
ones, open the metadata log, let controllers queue up, build the replica. `start_replica` starts the replica.
The handlers on controller listeners must have their ports before that, because voters send their requests
for votes to these listeners. Each function adds to `undo` how a stop undoes it (`stop_order.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from pykafka_broker.apis.api import CONTROLLER_LISTENER
from pykafka_broker.apis.ports.authorizer import ALLOW_ALL, Authorizer
from pykafka_broker.apis.ports.quotas import Quotas
from pykafka_broker.broker.formatting import prepare_directories
from pykafka_broker.broker.foundation import Foundation
from pykafka_broker.broker.listener_kinds import HandlerPorts, listener_kinds
from pykafka_broker.broker.metadata_follower import ConfigFollower
from pykafka_broker.broker.metadata_log import UNREADABLE_METADATA, unusable_metadata
from pykafka_broker.broker.node_logs import build_logs, reconfigure_logs
from pykafka_broker.broker.node_quorum import QuorumParts, build_quorum, open_metadata
from pykafka_broker.broker.quota_following import QuotaFollower
from pykafka_broker.broker.security.protocols import security_protocols
from pykafka_broker.broker.served_listeners import ServedListeners
from pykafka_broker.broker.settings import (
    client_quotas,
    connection_limits,
    listener_limits,
    quota_window,
    unlisted_apis,
)
from pykafka_broker.broker.stop_order import StopStep, Undo
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.config.keys import ConfigError
from pykafka_broker.log.disk.descriptor_care import DescriptorCare
from pykafka_broker.log.disk.directories import LogDirs
from pykafka_broker.log.disk.failed_directories import FailedDirectories
from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.log.disk.start_reserve import StartReserve
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.network.endpoint import METRICS_LISTENER
from pykafka_broker.network.host_names import limits_by_address
from pykafka_broker.network.listeners import Listeners
from pykafka_broker.network.memory import RequestMemory
from pykafka_broker.network.request_times import Answered, RequestTimes
from pykafka_broker.network.shared import Shared
from pykafka_broker.network.unanswered import Knowledge
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC, METADATA_TOPIC_ID
from pykafka_broker.raft.format import is_formatted
from pykafka_broker.raft.storage import RaftStorage
from pykafka_broker.system.event_loop import raise_open_file_limit
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("kafka.server.SharedServer")

#: The longest time that a stop waits for requests being served.
STOP_GRACE_MS = 5_000


class Closing:
    """Closes all logs of a node, the metadata log first: the clean shutdown marker, written with the other
    logs, says that the metadata log was closed cleanly too.
    """

    def __init__(self, f: Foundation, metadata_log: PartitionLog, logs: LogManager) -> None:
        self._threads = f.threads
        self._metadata_log = metadata_log
        self._logs = logs
        #: The broker epoch for the marker; -1 until the broker is registered.
        self.broker_epoch = -1
        #: Whether to write the marker.
        self.is_clean = True

    async def close(self) -> None:
        """Return when everything is on disk, or cannot be."""
        is_clean = await self._threads.run_blocking(self._metadata_log.close)
        await self._logs.close(self.broker_epoch, clean=is_clean and self.is_clean)


class SharedServer(NamedTuple):
    """The shared parts of a node."""

    foundation: Foundation
    failures: FailedDirectories
    logs: LogManager
    reserve: StartReserve
    listeners: Listeners
    served_listeners: ServedListeners
    ports: HandlerPorts
    closing: Closing
    storage: RaftStorage
    quorum: QuorumParts
    config_follower: ConfigFollower
    authorizer: Authorizer
    quotas: Quotas

    @property
    def metadata(self) -> MetadataPublisher:
        """The publisher of the metadata's images."""
        return self.quorum.publisher

    @property
    def image(self) -> ClusterImage:
        """The newest committed metadata."""
        return self.metadata.image


async def build_shared(f: Foundation, undo: Undo) -> SharedServer:
    """Build the shared parts of a node; nothing is served yet.

    Raises:
        LogDirError, StorageFormatError: the data directories cannot be used; the text says what to do.
        OSError: an address cannot be listened on.
    """
    undo.add(StopStep.THREADS, f.threads.shutdown)
    failures, logs = _logs(f)
    listeners = await _unbound_listeners(f, logs, undo)
    publisher, ports = MetadataPublisher(), HandlerPorts()
    listeners.shared.knowledge = Knowledge(topic_name=partial(_topic_name, publisher))
    authorizer, quotas = _authorizer(f, publisher), _client_quotas(f, publisher, listeners, undo)
    kinds = listener_kinds(
        listeners.shared,
        security_protocols(listeners.shared, lambda: f.config, lambda: publisher.image),
        authorizer,
        quotas,
        ports,
        unlisted_apis(f.config),
    )
    served_listeners = ServedListeners(listeners, kinds, lambda: f.config, f.threads)
    if not is_formatted(f.files, f.config.metadata_log_dir):
        served_listeners.reserve_addresses()
    publisher.begin(_prepare_directories(f, logs, undo))
    reserve = StartReserve(f.files, f.config.metadata_log_dir)
    reserve.give_if_needed()

    storage = open_metadata(f, logs)
    closing = Closing(f, storage.log, logs)
    undo.add(StopStep.LOGS, closing.close)
    await served_listeners.listen(CONTROLLER_LISTENER)
    await served_listeners.listen(METRICS_LISTENER)
    undo.add(StopStep.LISTENERS, partial(listeners.stop, STOP_GRACE_MS))
    undo.add(StopStep.LISTENERS, served_listeners.stop)
    own_endpoints = {
        name: (endpoint.host, endpoint.port)
        for name, endpoint in served_listeners.registered(CONTROLLER_LISTENER).items()
    }
    return SharedServer(
        foundation=f,
        failures=failures,
        logs=logs,
        reserve=reserve,
        listeners=listeners,
        served_listeners=served_listeners,
        ports=ports,
        closing=closing,
        storage=storage,
        quorum=build_quorum(f, storage, logs, publisher, own_endpoints),
        config_follower=ConfigFollower(f.configs),
        authorizer=authorizer,
        quotas=quotas,
    )


async def start_replica(shared: SharedServer, undo: Undo) -> None:
    """Start the replica of the metadata log. When this returns, the newest metadata is published and its
    configuration in force. That needs a leader; a voter may have to wait for other voters to elect one.

    Raises:
        LogDirError: the log cannot be used by this node; the text says what to do.
    """
    replica = shared.quorum.replica
    undo.add(StopStep.METADATA_REPLICA, replica.close)
    if shared.quorum.connections is not None:
        undo.add(StopStep.OTHER_CONTROLLERS, shared.quorum.connections.close)
    try:
        await replica.start()
    except UNREADABLE_METADATA as error:
        raise unusable_metadata(shared.foundation.config, error) from error
    shared.config_follower.apply(shared.image)


def _topic_name(publisher: MetadataPublisher, topic_id: bytes) -> str | None:
    if topic_id == METADATA_TOPIC_ID:
        return METADATA_TOPIC
    topic = publisher.image.topic_by_id(topic_id)
    return None if topic is None else topic.name


def _logs(f: Foundation) -> tuple[FailedDirectories, LogManager]:
    """The logs, not opened yet, and the handler of failed directories."""
    dirs = LogDirs(f.files, list(f.config.log_dirs), f.config.metadata_log_dir)
    failures = FailedDirectories(dirs, f.failure.set)
    logs = build_logs(f, dirs, failures.failed)
    f.configs.subscribe(lambda _, new: reconfigure_logs(logs, new))
    return failures, logs


def _authorizer(f: Foundation, publisher: MetadataPublisher) -> Authorizer:
    """The authorizer; its modules are imported only if one is configured."""
    rules = f.config.authorizer
    if rules is None:
        return ALLOW_ALL
    from pykafka_broker.broker.security.acl_authorizer import StandardAuthorizer

    acls = StandardAuthorizer(rules, f.clock.now_ms, f.history.tell)
    publisher.subscribe(acls.published)
    return acls


def _client_quotas(f: Foundation, publisher: MetadataPublisher, listeners: Listeners, undo: Undo) -> Quotas:
    """The quotas of clients and of addresses, which follow the metadata."""
    quotas = client_quotas(f.config, f.clock, f.history.tell)
    follower = QuotaFollower(quotas, listeners.acceptor.address_rates)
    publisher.subscribe(follower.published)
    undo.add(StopStep.QUOTAS, follower.stop)
    return quotas


def _watch(f: Foundation, undo: Undo) -> Callable[[Answered], None] | None:
    """What is told of each answered request; its modules are imported only if it is configured."""
    watches: list[Callable[[Answered], None]] = []
    limit_ms = f.config["log.slow.requests.ms"]
    if limit_ms >= 0:
        from pykafka_broker.network.slow_requests import SlowRequests

        watches.append(SlowRequests(limit_ms, f.clock.monotonic_ms).answered)
    if f.config["otel.traces.enable"]:
        from pykafka_broker.broker.tracing import Spans, exporting_provider

        try:
            spans = Spans(exporting_provider(f.node_id))
        except ImportError as error:
            raise ConfigError(
                f"otel.traces.enable needs OpenTelemetry: pip install 'pykafka-broker[otel]' ({error})"
            ) from None
        # At this step the thread that exports ends before those of the node.
        undo.add(StopStep.THREADS, partial(f.threads.run_blocking, spans.close))
        watches.append(spans.answered)
    if len(watches) < 2:
        return watches[0] if watches else None

    def tell_all(request: Answered) -> None:
        for watch in watches:
            watch(request)

    return tell_all


async def _unbound_listeners(f: Foundation, logs: LogManager, undo: Undo) -> Listeners:
    """The listeners, not bound yet. The reserve of file descriptors is filled here, because listeners accept
    new clients only while it is full.
    """
    config = f.config
    watch = _watch(f, undo)
    shared = Shared(
        f.clock,
        connection_limits(config),
        RequestMemory(config["queued.max.request.bytes"]),
        times=None if watch is None and not config.metrics_listeners else RequestTimes(watch),
    )
    # An unknown host prevents a start only if the static configuration names it.
    by_address = await limits_by_address(config.connections_per_ip_overrides)
    open_file_limit = raise_open_file_limit()
    listeners = Listeners(
        shared,
        listener_limits(config, by_address),
        open_file_limit,
        f.descriptors,
        quota_window(config),
    )
    if open_file_limit is not None and isinstance(f.files, OsFileSystem):
        care = DescriptorCare(
            f.descriptors, logs, f.clock, on_short=listeners.acceptor.complain_of_descriptors
        )
        undo.add(StopStep.DESCRIPTORS, care.end)
        care.begin(f.files, open_file_limit)
    undo.add(StopStep.ADDRESSES, listeners.stop_accepting)
    return listeners


def _prepare_directories(f: Foundation, logs: LogManager, undo: Undo) -> str:
    """Lock the directories and format new ones; return the cluster id. Blocking."""
    undo.add(StopStep.LOG_DIRS, logs.dirs.unlock)
    cluster_id, formatted = prepare_directories(f.files, logs, f.config, now_ms=f.clock.now_ms())
    if formatted is not None:
        for directory in formatted.directory_ids:
            logger.info("Formatted %s for cluster %s", directory, cluster_id)
    return cluster_id
