"""A running node: all its parts, built in the one order that works. The composition root.

`start_node` does, in this order: reserve the addresses to listen on, lock the log directories and format new
ones, serve controllers, read the metadata log and lead it, open the partition logs, let clients queue up,
register the controller and the broker, make the logs that the metadata asks for, unfence the broker, load the
coordinators, and accept connections. A client that connects finds a broker that answers every request. Beside
each step stands how a stop, or a start that fails later, undoes it.

Each kind of listener listens and is started by itself, with the ports of its own handlers. Listeners of
brokers are started last, with `NodePorts`. Listeners of controllers, with `ControllerPorts`, are started
before `start_metadata` waits for the quorum to have a leader, because voters elect it over these listeners.
They are stopped after this node's broker has shut down: other brokers say over them that they have learned
who leads instead.

Many nodes can run in one process and event loop; nothing here is global.

Where the next parts go: replica fetchers beside `replicas`, an authorizer and quotas in place of `ALLOW_ALL`
and `UNLIMITED`, a metrics page and a web console in `listener_kinds.py`.
"""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from functools import partial

from pykafka_broker.apis.api import BROKER_LISTENER, CONTROLLER_LISTENER
from pykafka_broker.apis.fetch_sessions import FetchSessionCache
from pykafka_broker.apis.ports.authorizer import ALLOW_ALL
from pykafka_broker.apis.ports.controller import ControllerPorts
from pykafka_broker.apis.ports.fetching import Fetching
from pykafka_broker.apis.ports.node import NodePorts
from pykafka_broker.apis.ports.quotas import UNLIMITED
from pykafka_broker.broker.cold_reads import ColdReads
from pykafka_broker.broker.config_changes import ConfigChanges
from pykafka_broker.broker.descriptor_care import DescriptorCare
from pykafka_broker.broker.failed_directories import FailedDirectories
from pykafka_broker.broker.foundation import Foundation
from pykafka_broker.broker.isr_changes import RefusedIsrChanges
from pykafka_broker.broker.lifecycle import BrokerLifecycle
from pykafka_broker.broker.listener_kinds import listener_kinds
from pykafka_broker.broker.metadata_follower import ConfigFollower, MetadataFollower
from pykafka_broker.broker.node_logs import build_logs, reconfigure_logs
from pykafka_broker.broker.node_ports import NodeMetadata, PublishedMetadata, ReplicaQuorum, TopicsOnDemand
from pykafka_broker.broker.periodic_work import PeriodicWork
from pykafka_broker.broker.producer_ids import ProducerIds
from pykafka_broker.broker.quorum import build_metadata, open_metadata, start_metadata
from pykafka_broker.broker.security_protocols import security_protocols
from pykafka_broker.broker.served_listeners import ServedListeners
from pykafka_broker.broker.settings import connection_limits, listener_limits
from pykafka_broker.broker.start_reserve import StartReserve
from pykafka_broker.broker.storage import prepare_directories
from pykafka_broker.cluster.features import CONTROLLER_REGISTRATIONS_SINCE
from pykafka_broker.cluster.image import ClusterImage, ResourceType
from pykafka_broker.config import BrokerConfig, log_config_for
from pykafka_broker.coordination.coordinators import Coordinators
from pykafka_broker.coordination.ports import CoordinatorPorts
from pykafka_broker.coordination.topic_creation import TopicCreation
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.files import OsFileSystem, random_id
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.recovery.open_directories import UNKNOWN_TOPIC_ID
from pykafka_broker.metadata.controller_channel import ControllerChannel
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.network.host_names import limits_by_address
from pykafka_broker.network.listeners import Listeners
from pykafka_broker.network.memory import RequestMemory
from pykafka_broker.network.purgatory import Purgatory
from pykafka_broker.network.shared import Shared
from pykafka_broker.raft.format import is_formatted, random_uuid
from pykafka_broker.replication.log_dir_moves import LogDirMoves
from pykafka_broker.replication.partition import PartitionPorts
from pykafka_broker.replication.replica_manager import ReplicaManager
from pykafka_broker.system.event_loop import raise_open_file_limit
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("kafka.server.BrokerServer")

#: The interval at which periodic work checks whether it is due.
TICK_MS = 1_000
#: The longest time that a stop waits for requests that are being served.
STOP_GRACE_MS = 5_000


class Node(NamedTuple):
    """The parts of a node that serves."""

    foundation: Foundation
    logs: LogManager
    metadata: MetadataPublisher
    controller: ControllerChannel
    replicas: ReplicaManager
    coordinators: Coordinators
    lifecycle: BrokerLifecycle
    log_dir_moves: LogDirMoves
    listeners: Listeners
    served_listeners: ServedListeners
    purgatory: Purgatory
    periodic_work: PeriodicWork
    ports: NodePorts

    @property
    def image(self) -> ClusterImage:
        """The newest committed metadata."""
        return self.metadata.image


async def start_node(foundation: Foundation, undo: AsyncExitStack) -> Node:
    """Build all parts and serve. The caller closes `undo` at the stop, and also where this raises.

    Raises:
        LogDirError, StorageFormatError: the data directories cannot be used; the text says what to do.
        OSError: an address cannot be listened on.
        KafkaError: the disk failed.
    """
    f = foundation
    undo.callback(f.threads.shutdown)
    failures = FailedDirectories(f.failure)
    logs: LogManager = build_logs(f, lambda log_dir: failures.failed(logs.dirs, log_dir))
    f.configs.subscribe(lambda _, new: reconfigure_logs(logs, new))
    listeners = await _unbound_listeners(f, logs, undo)
    authorizer, quotas = ALLOW_ALL, UNLIMITED
    ports: NodePorts
    controller_ports: ControllerPorts
    kinds = listener_kinds(
        listeners.shared,
        security_protocols(),
        authorizer,
        quotas,
        lambda: ports,
        lambda: controller_ports,
    )
    served_listeners = ServedListeners(listeners, kinds, lambda: f.config, f.threads)
    if not is_formatted(f.files, f.config.metadata_log_dir):
        served_listeners.reserve_addresses()
    undo.callback(logs.dirs.unlock)
    cluster_id = _prepare_directories(f, logs)
    reserve = StartReserve(f.files, f.config.metadata_log_dir)
    reserve.give_if_needed()

    storage = open_metadata(f, logs)
    closing = _Closing(f, storage.log, logs)
    undo.push_async_callback(closing.close)
    metadata, role, controller, replica = build_metadata(f, storage, logs, cluster_id)
    controller_ports = ControllerPorts(
        configs=f.configs,
        metadata=PublishedMetadata(f.node_id, metadata, storage),
        controller=controller,
        active=role,
        quorum=ReplicaQuorum(replica, storage, f.threads.run_blocking),
        authorizer=authorizer,
        quotas=quotas,
    )
    await served_listeners.listen(CONTROLLER_LISTENER)
    undo.push_async_callback(listeners.stop, STOP_GRACE_MS)
    listeners.start(CONTROLLER_LISTENER)
    await start_metadata(f.config, replica, undo)
    config_follower = ConfigFollower(f.configs)
    config_follower.apply(metadata.image)
    await logs.open_all(partial(_log_config, f, metadata.image))

    replicas = ReplicaManager(
        logs,
        lambda overrides: log_config_for(overrides, f.config),
        PartitionPorts(
            f.node_id,
            f.threads.sync,
            f.clock,
            RefusedIsrChanges(),
            registration_of=lambda broker_id: metadata.image.brokers.get(broker_id),
        ),
    )
    lifecycle = BrokerLifecycle(controller, logs.dirs, replicas)
    failures.subscribe(lifecycle.report_failed)
    producer_ids = ProducerIds(lifecycle.allocate_producer_ids)
    cold_reads = ColdReads(f.threads.read, f.clock)
    creation = TopicCreation(controller, metadata, f.configs, f.clock)
    coordinators = Coordinators(
        CoordinatorPorts(
            clock=f.clock,
            configs=f.configs,
            metadata=metadata,
            partitions=replicas,
            logs=logs,
            threads=f.threads,
            cold_reads=cold_reads,
            producer_ids=producer_ids,
        ),
        creation,
    )
    replicas.subscribe(coordinators)
    fetching = _fetching(f.config)
    await served_listeners.listen(BROKER_LISTENER)
    f.configs.subscribe(ConfigChanges(fetching, coordinators, replicas, lifecycle, served_listeners).apply)
    if served_listeners.has_controllers:
        await _register_controller(controller, metadata.image, served_listeners)
    await lifecycle.register(
        served_listeners.registered(),
        rack=f.config["broker.rack"],
        previous_broker_epoch=logs.previous_broker_epoch,
    )
    closing.broker_epoch = lifecycle.broker_epoch
    undo.push_async_callback(lifecycle.shut_down)

    logs.set_strays_aside(lambda log: _is_placed_here(f.node_id, metadata.image, log))
    undo.push_async_callback(coordinators.close)
    if (preparation := replicas.prepare(metadata.image)) is not None:
        await preparation
    follower = MetadataFollower(config_follower, replicas, creation, coordinators, lifecycle)
    follower.published(ClusterImage(), metadata.image)
    metadata.prepare_with(replicas.prepare)
    metadata.subscribe(follower.published)
    log_dir_moves = _log_dir_moves(f, logs, replicas, lifecycle)
    undo.push_async_callback(log_dir_moves.stop)
    log_dir_moves.resume()
    await lifecycle.unfence(f.config.cordoned_log_dirs)
    await f.threads.run_blocking(reserve.take_back)
    lifecycle.report_places()
    await coordinators.loaded()

    purgatory = Purgatory(f.clock)
    ports = NodePorts(
        clock=f.clock,
        configs=f.configs,
        metadata=NodeMetadata(f.node_id, metadata, storage, listeners),
        controller=controller,
        topic_creation=TopicsOnDemand(creation, coordinators.offsets_topic, coordinators.transactions_topic),
        partitions=replicas,
        logs=logs,
        log_dir_moves=log_dir_moves,
        groups=coordinators.groups,
        transactions=coordinators.transactions,
        participation=coordinators.participation,
        markers=coordinators.markers,
        producer_ids=producer_ids,
        fetching=fetching,
        purgatory=purgatory,
        cold_reads=cold_reads,
        threads=f.threads,
        authorizer=authorizer,
        quotas=quotas,
    )
    undo.push_async_callback(_hang_up, listeners, purgatory, coordinators)
    listeners.start(BROKER_LISTENER)
    periodic_work = PeriodicWork(f.clock, TICK_MS, partial(_work_on_logs, f, replicas, reserve, logs))
    undo.push_async_callback(periodic_work.stop)
    periodic_work.start()
    return Node(
        foundation=f,
        logs=logs,
        metadata=metadata,
        controller=controller,
        replicas=replicas,
        coordinators=coordinators,
        lifecycle=lifecycle,
        log_dir_moves=log_dir_moves,
        listeners=listeners,
        served_listeners=served_listeners,
        purgatory=purgatory,
        periodic_work=periodic_work,
        ports=ports,
    )


async def _unbound_listeners(f: Foundation, logs: LogManager, undo: AsyncExitStack) -> Listeners:
    """Listeners without an address yet, and the care for descriptors, which new clients take."""
    config = f.config
    shared = Shared(f.clock, connection_limits(config), RequestMemory(config["queued.max.request.bytes"]))
    # A host that is unknown keeps a broker from starting only where the process was given it.
    by_address = await limits_by_address(config.connections_per_ip_overrides)
    open_file_limit = raise_open_file_limit()
    listeners = Listeners(shared, listener_limits(config, by_address), open_file_limit, f.descriptors)
    if open_file_limit is not None and isinstance(f.files, OsFileSystem):
        care = DescriptorCare(
            f.descriptors, logs, f.clock, on_short=listeners.acceptor.complain_of_descriptors
        )
        undo.callback(care.end)
        care.begin(f.files, open_file_limit)
    undo.callback(listeners.stop_accepting)
    return listeners


async def _register_controller(
    controller: ControllerChannel, image: ClusterImage, served: ServedListeners
) -> None:
    """Tell the cluster how this node's controller is reached, where records of its level can say it."""
    if image.metadata_version >= CONTROLLER_REGISTRATIONS_SINCE:
        await controller.register_controller(random_uuid(), served.registered(CONTROLLER_LISTENER))


def _prepare_directories(f: Foundation, logs: LogManager) -> str:
    """Lock the directories and format new ones; the cluster's id. Blocking."""
    cluster_id, formatted = prepare_directories(f.files, logs, f.config, now_ms=f.clock.now_ms())
    if formatted is not None:
        for directory in formatted.directory_ids:
            logger.info("Formatted %s for cluster %s", directory, cluster_id)
    return cluster_id


def _log_config(f: Foundation, image: ClusterImage, topic: str) -> LogConfig:
    return log_config_for(image.config(ResourceType.TOPIC, topic), f.config)


def _fetching(config: BrokerConfig) -> Fetching:
    sessions = FetchSessionCache(
        lambda: 1 + int(random_id(), 16) % (2**31 - 1),
        config["max.incremental.fetch.session.cache.slots"],
    )
    return Fetching(sessions, config["fetch.max.bytes"])


def _log_dir_moves(
    f: Foundation, logs: LogManager, replicas: ReplicaManager, lifecycle: BrokerLifecycle
) -> LogDirMoves:
    config = f.config
    return LogDirMoves(
        logs,
        replicas,
        lifecycle,
        f.clock,
        threads=config["num.replica.alter.log.dirs.threads"] or len(config.log_dirs),
        bytes_per_second=lambda: f.config["replica.alter.log.dirs.io.max.bytes.per.second"],
    )


def _is_placed_here(node_id: int, image: ClusterImage, log: PartitionLog) -> bool:
    """Whether the metadata knows this log; one that has lost its topic id is known by its name."""
    topic = image.topics.get(log.topic)
    if topic is None or log.topic_id not in (topic.topic_id, UNKNOWN_TOPIC_ID):
        return False
    registration = topic.partitions.get(log.partition)
    return registration is not None and node_id in registration.replicas


class _Closing:
    """Closes all logs of a node. The metadata log is first: the clean shutdown marker, written with the other
    logs, says that it was closed cleanly too.
    """

    def __init__(self, f: Foundation, metadata_log: PartitionLog, logs: LogManager) -> None:
        self._threads = f.threads
        self._metadata_log = metadata_log
        self._logs = logs
        #: For the marker; -1 until the broker is registered.
        self.broker_epoch = -1

    async def close(self) -> None:
        is_clean = await self._threads.run_blocking(self._metadata_log.close)
        await self._logs.close(self.broker_epoch, clean=is_clean)


async def _hang_up(listeners: Listeners, purgatory: Purgatory, coordinators: Coordinators) -> None:
    """Let no more clients in, answer the requests that wait, and close the connections of clients."""
    listeners.stop_accepting(BROKER_LISTENER)
    purgatory.close()
    coordinators.refuse()
    await listeners.hang_up(BROKER_LISTENER, STOP_GRACE_MS)


async def _work_on_logs(
    f: Foundation, replicas: ReplicaManager, reserve: StartReserve, logs: LogManager
) -> None:
    """One round of periodic work."""
    replicas.check_lag()
    await replicas.create_missing()
    if reserve.is_short:
        await f.threads.run_blocking(reserve.take_back)
    await logs.tick(f.clock.now_ms())
