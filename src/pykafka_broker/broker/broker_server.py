"""The broker of a node (Kafka's BrokerServer): all its parts, built in the order of their dependencies.

`start_broker` does, in this order: open the partition logs, let clients queue up, register the broker, make
the logs of the metadata, unfence the broker, load the coordinators, and accept connections. So the broker can
answer every request of a connected client. Each function returns its parts complete, and adds to `undo` how a
stop undoes them (`stop_order.py`).
"""

from __future__ import annotations

import asyncio
from functools import partial

from pykafka_broker.apis.api import BROKER_LISTENER
from pykafka_broker.apis.fetching.sessions import FetchSessionCache
from pykafka_broker.apis.ports.fetching import Fetching
from pykafka_broker.apis.ports.node import NodePorts
from pykafka_broker.broker.config_changes import ConfigChanges
from pykafka_broker.broker.describable_topics import describable_topics
from pykafka_broker.broker.foundation import Foundation
from pykafka_broker.broker.metadata_follower import MetadataFollower
from pykafka_broker.broker.node_ports import NodeMetadata, TopicsOnDemand
from pykafka_broker.broker.other_brokers import other_brokers
from pykafka_broker.broker.replica_fetching import replica_fetchers, replication_rate
from pykafka_broker.broker.settings import telemetry_settings
from pykafka_broker.broker.share_groups import ShareGroups
from pykafka_broker.broker.share_states import PersistedStates
from pykafka_broker.broker.shared_server import STOP_GRACE_MS, SharedServer
from pykafka_broker.broker.stop_order import StopStep, Undo
from pykafka_broker.cluster.image import ClusterImage, ResourceType
from pykafka_broker.config import BrokerConfig, log_config_for
from pykafka_broker.config.settings import RACK_AWARE_SELECTOR
from pykafka_broker.controller.forwarding import ForwardingConnection, NoForwarding
from pykafka_broker.coordinator.coordinators import Coordinators
from pykafka_broker.coordinator.ports import CoordinatorPorts
from pykafka_broker.coordinator.topic_creation import TopicCreation
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.files import random_id
from pykafka_broker.log.manager.cold_reads import ColdReads
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.machine.periodic_work import PeriodicWork
from pykafka_broker.membership.isr_changes import QueuedIsrChanges
from pykafka_broker.membership.lifecycle import BrokerIdentity, BrokerLifecycle, LifePorts, life_settings
from pykafka_broker.membership.producer_ids import ProducerIds
from pykafka_broker.membership.replica_places import ReplicaPlaces
from pykafka_broker.network.listeners import Listeners
from pykafka_broker.network.purgatory import Purgatory
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.raft.format import random_uuid
from pykafka_broker.raft.quorum_description import QuorumDescription
from pykafka_broker.replication.awaited_followers import AwaitedFollowers
from pykafka_broker.replication.leading_replica import PartitionPorts
from pykafka_broker.replication.log_dir_moves import LogDirMoves
from pykafka_broker.replication.replica_fetchers import ReplicaFetchers
from pykafka_broker.replication.replica_manager import ReplicaManager
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.telemetry.client_metrics import ClientMetrics

#: The interval at which periodic work checks whether it is due.
TICK_MS = 1_000


class BrokerServer(NamedTuple):
    """The parts of a broker that serves."""

    replicas: ReplicaManager
    fetchers: ReplicaFetchers
    coordinators: Coordinators
    shares: ShareGroups
    lifecycle: BrokerLifecycle
    places: ReplicaPlaces
    log_dir_moves: LogDirMoves
    purgatory: Purgatory
    periodic_work: PeriodicWork
    telemetry: ClientMetrics
    ports: NodePorts


class _Replication(NamedTuple):
    """The replicas of a broker, and the parts that fetch for them or report them to the controller."""

    replicas: ReplicaManager
    fetchers: ReplicaFetchers
    awaited: AwaitedFollowers
    places: ReplicaPlaces
    log_dir_moves: LogDirMoves


class _Coordination(NamedTuple):
    """The coordinators of a broker, and the parts that they share with its handlers."""

    coordinators: Coordinators
    shares: ShareGroups
    creation: TopicCreation
    producer_ids: ProducerIds
    cold_reads: ColdReads


async def start_broker(shared: SharedServer, undo: Undo) -> BrokerServer:
    """Build all parts and serve; the metadata is published already.

    Raises:
        LogDirError: the data directories cannot be used; the text says what to do.
        OSError: an address cannot be listened on.
        KafkaError: the disk failed, or the controller refuses this broker.
    """
    f, listeners = shared.foundation, shared.served_listeners
    await shared.logs.open_all(partial(_log_config, f, shared.image))
    lifecycle = _build_lifecycle(shared)
    replication = _build_replication(shared, lifecycle, undo)
    coordination = _build_coordination(shared, replication.replicas, lifecycle, undo)
    replicas, (coordinators, shares, *_) = replication.replicas, coordination
    fetching = _fetching(f.config, replication.awaited)
    await listeners.listen(BROKER_LISTENER)
    changes = ConfigChanges(
        fetching, coordinators, shares, replicas, lifecycle, listeners, replication.fetchers
    )
    f.configs.subscribe(changes.apply)
    shut_down = partial(lifecycle.shut_down, is_controlled=f.config["controlled.shutdown.enable"])
    undo.add(StopStep.LIFECYCLE, shut_down)
    await lifecycle.register(
        listeners.registered(),
        rack=f.config["broker.rack"],
        previous_broker_epoch=shared.logs.previous_broker_epoch,
    )
    shared.closing.broker_epoch = lifecycle.broker_epoch
    await _take_up_metadata(shared, lifecycle, replication, coordination, undo)
    await lifecycle.unfence(f.config.cordoned_log_dirs)
    # The controller's answer may be ahead of the metadata here. A client whose first Metadata response has no
    # broker may not ask again for minutes: librdkafka does so while it waits for a controller.
    await shared.metadata.shows(lambda image: _is_unfenced(image, f.node_id, lifecycle.broker_epoch))
    await f.threads.run_blocking(shared.reserve.take_back)
    replication.places.report_places()
    if f.config.standalone:  # no other broker serves clients meanwhile, so they can wait
        await coordinators.loaded()

    purgatory = Purgatory(f.clock)
    telemetry = _client_metrics(shared)
    ports = _ports(shared, lifecycle, replication, coordination, fetching, purgatory, telemetry)
    shared.ports.broker.give(ports)
    connections = shared.listeners.shared
    connections.knowledge = connections.knowledge._replace(
        rebalance_timeout_ms=coordinators.groups.rebalance_timeout_ms
    )
    undo.add(StopStep.CLIENTS, partial(_hang_up, shared.listeners, purgatory, coordinators, shares))
    shared.listeners.start(BROKER_LISTENER)
    work = PeriodicWork(f.clock, TICK_MS, partial(_periodic_round, shared, replicas, lifecycle))
    undo.add(StopStep.PERIODIC_WORK, work.stop)
    work.start()
    if not f.config.standalone:
        undo.add(StopStep.HAND_OVER, shut_down)
    return BrokerServer(
        replicas=replicas,
        fetchers=replication.fetchers,
        coordinators=coordinators,
        shares=shares,
        lifecycle=lifecycle,
        places=replication.places,
        log_dir_moves=replication.log_dir_moves,
        purgatory=purgatory,
        periodic_work=work,
        telemetry=telemetry,
        ports=ports,
    )


def _build_lifecycle(shared: SharedServer) -> BrokerLifecycle:
    """The lifecycle of the broker, which begins with its registration."""
    f, metadata = shared.foundation, shared.metadata
    lifecycle = BrokerLifecycle(
        BrokerIdentity(f.node_id, metadata.image.cluster_id),
        shared.quorum.controller,
        shared.logs.dirs,
        LifePorts(
            f.clock,
            lambda: metadata.published_offset,
            f.failure.set,
            partial(_raise_if_final, shared),
            lambda: shared.quorum.replica.host.is_majority_gone,
        ),
        life_settings(f.config),
    )
    shared.failures.subscribe(lifecycle.report_failed)
    return lifecycle


def _build_replication(shared: SharedServer, lifecycle: BrokerLifecycle, undo: Undo) -> _Replication:
    """The replicas, without their logs yet."""
    f, logs, metadata = shared.foundation, shared.logs, shared.metadata
    controller = shared.quorum.controller

    def broker_epoch() -> int:
        return lifecycle.broker_epoch

    isr_changes = QueuedIsrChanges(controller, f.node_id, broker_epoch, f.clock)
    undo.add(StopStep.ISR_CHANGES, isr_changes.close)
    replicas = ReplicaManager(
        logs,
        lambda overrides: log_config_for(overrides, f.config),
        PartitionPorts(
            f.node_id,
            f.threads.sync,
            logs.deferred_files,
            f.clock,
            isr_changes,
            registration_of=lambda broker_id: metadata.image.brokers.get(broker_id),
            follower_rate=replication_rate(f.config, "leader.replication.throttled.rate"),
            lag_time_max_ms=f.config["replica.lag.time.max.ms"],
            tell=f.history.tell,
        ),
    )
    places = ReplicaPlaces(controller, f.node_id, broker_epoch, logs.dirs, replicas.misplaced, f.clock)
    undo.add(StopStep.REPLICA_PLACES, places.stop)
    # Report again: logs that are moving into a failed directory stay where they were.
    shared.failures.subscribe(lambda _: places.report_places())
    logs.full_disks.subscribe(partial(asyncio.get_running_loop().call_soon_threadsafe, places.report_places))
    undo.add(StopStep.REPLICA_PLACES, partial(logs.full_disks.subscribe, lambda: None))
    fetchers = replica_fetchers(f, logs, metadata, broker_epoch, undo)
    awaited = AwaitedFollowers(f.clock)
    for roles in (fetchers, awaited):
        replicas.subscribe(roles)
    log_dir_moves = LogDirMoves(
        logs,
        replicas,
        places,
        f.clock,
        threads=f.config["num.replica.alter.log.dirs.threads"] or len(f.config.log_dirs),
        bytes_per_second=lambda: f.config["replica.alter.log.dirs.io.max.bytes.per.second"],
    )
    return _Replication(replicas, fetchers, awaited, places, log_dir_moves)


def _build_coordination(
    shared: SharedServer, replicas: ReplicaManager, lifecycle: BrokerLifecycle, undo: Undo
) -> _Coordination:
    """The coordinators; they load when the metadata makes this node the leader of their partitions."""
    f, metadata = shared.foundation, shared.metadata
    producer_ids = ProducerIds(lifecycle.allocate_producer_ids, lambda: lifecycle.broker_epoch, f.clock)
    cold_reads = ColdReads(f.threads.read, f.clock)
    creation = TopicCreation(shared.quorum.controller, metadata, f.configs, f.clock)
    coordinators = Coordinators(
        CoordinatorPorts(
            node_id=f.node_id,
            clock=f.clock,
            configs=f.configs,
            metadata=metadata,
            partitions=replicas,
            threads=f.threads,
            cold_reads=cold_reads,
            producer_ids=producer_ids,
            others=other_brokers(f, metadata, undo),
            describable_topics=partial(describable_topics, shared.authorizer),
            tell=f.history.tell,
        ),
        creation,
    )
    shares = ShareGroups(f.config, PersistedStates(coordinators.persister), cold_reads, f.clock)
    for followers in (shares.partitions, coordinators):
        replicas.subscribe(followers)
    return _Coordination(coordinators, shares, creation, producer_ids, cold_reads)


async def _take_up_metadata(
    shared: SharedServer,
    lifecycle: BrokerLifecycle,
    replication: _Replication,
    coordination: _Coordination,
    undo: Undo,
) -> None:
    """Make the logs of the metadata, take their roles, and follow the metadata."""
    f, logs, metadata = shared.foundation, shared.logs, shared.metadata
    replicas, log_dir_moves = replication.replicas, replication.log_dir_moves
    coordinators, shares, creation, *_ = coordination
    logs.set_strays_aside(lambda log: _is_placed_here(f.node_id, metadata.image, log))
    undo.add(StopStep.COORDINATORS, coordinators.close)
    if (preparation := replicas.prepare(metadata.image)) is not None:
        await preparation
    undo.add(StopStep.SHARE_PARTITIONS, shares.partitions.close)
    follower = MetadataFollower(
        shared.config_follower, replicas, creation, coordinators, shares, lifecycle, replication.places
    )
    follower.published(ClusterImage(), metadata.image)
    metadata.prepare_with(replicas.prepare)
    metadata.subscribe(follower.published)
    undo.add(StopStep.LOG_DIR_MOVES, log_dir_moves.stop)
    log_dir_moves.resume()


def _ports(
    shared: SharedServer,
    lifecycle: BrokerLifecycle,
    replication: _Replication,
    coordination: _Coordination,
    fetching: Fetching,
    purgatory: Purgatory,
    telemetry: ClientMetrics,
) -> NodePorts:
    """The ports of the handlers on broker listeners."""
    f, quorum, connections = shared.foundation, shared.quorum, shared.quorum.connections
    coordinators, shares = coordination.coordinators, coordination.shares
    return NodePorts(
        clock=f.clock,
        configs=f.configs,
        metadata=NodeMetadata(f.node_id, quorum.replica, shared.listeners),
        controller=quorum.own_controller,
        forwarding=NoForwarding()
        if connections is None
        else ForwardingConnection(
            quorum.role, connections.forwarding, partial(_lost_quorum, shared, lifecycle)
        ),
        topic_creation=TopicsOnDemand(
            coordination.creation,
            coordinators.offsets_topic,
            coordinators.transactions_topic,
            coordinators.share_state_topic,
        ),
        partitions=replication.replicas,
        logs=shared.logs,
        log_dir_moves=replication.log_dir_moves,
        groups=coordinators.groups,
        transactions=coordinators.transactions,
        participation=coordinators.participation,
        markers=coordinators.markers,
        shares=coordinators.shares,
        share_partitions=shares.partitions,
        share_sessions=shares.sessions,
        producer_ids=coordination.producer_ids,
        fetching=fetching,
        purgatory=purgatory,
        cold_reads=coordination.cold_reads,
        threads=f.threads,
        authorizer=shared.authorizer,
        quotas=shared.quotas,
        telemetry=telemetry,
        tell=f.history.tell,
    )


def _client_metrics(shared: SharedServer) -> ClientMetrics:
    """The metrics that clients push, which follow the subscriptions in the metadata."""
    f = shared.foundation
    telemetry = ClientMetrics(telemetry_settings(f.config), f.clock, random_uuid)
    telemetry.published(ClusterImage(), shared.image)
    shared.metadata.subscribe(telemetry.published)
    return telemetry


def _raise_if_final(shared: SharedServer, error: KafkaError) -> None:
    """Raise if the error is final: this node's own disk has failed, so no other controller can help."""
    shared.foundation.failure.raise_if_happened()
    if shared.quorum.own_controller.is_active and error.code is ErrorCode.KAFKA_STORAGE_ERROR:
        raise error


def _lost_quorum(shared: SharedServer, lifecycle: BrokerLifecycle) -> QuorumDescription | None:
    """The quorum as this node knows it, once the controller counts as lost; otherwise None."""
    host = shared.quorum.replica.host
    if not host.is_majority_gone and lifecycle.silent_for_ms is None:
        return None
    return host.describe_leaderless(lifecycle.silence_ms)


def _log_config(f: Foundation, image: ClusterImage, topic: str) -> LogConfig:
    return log_config_for(image.config(ResourceType.TOPIC, topic), f.config)


def _fetching(config: BrokerConfig, awaited: AwaitedFollowers) -> Fetching:
    sessions = FetchSessionCache(
        lambda: 1 + int(random_id(), 16) % (2**31 - 1),
        config["max.incremental.fetch.session.cache.slots"],
    )
    selects_by_rack = config["replica.selector.class"] == RACK_AWARE_SELECTOR
    # A follower whose fetch is held for a quarter of the shorter time is not given up.
    quiet_ms = min(config["replica.lag.time.max.ms"], config["broker.session.timeout.ms"]) // 4
    return Fetching(
        sessions, awaited, config["fetch.max.bytes"], quiet_ms=quiet_ms, selects_by_rack=selects_by_rack
    )


def _is_unfenced(image: ClusterImage, node_id: int, broker_epoch: int) -> bool:
    """Whether the registration with this epoch is unfenced in the image."""
    broker = image.brokers.get(node_id)
    return broker is not None and broker.epoch == broker_epoch and not broker.fenced


def _is_placed_here(node_id: int, image: ClusterImage, log: PartitionLog) -> bool:
    """Whether the metadata places this log here; a log that has lost its topic id is matched by name."""
    topic = image.topics.get(log.topic)
    if topic is None or log.topic_id not in (topic.topic_id, ZERO_UUID):
        return False
    registration = topic.partitions.get(log.partition)
    return registration is not None and node_id in registration.replicas


async def _hang_up(
    listeners: Listeners, purgatory: Purgatory, coordinators: Coordinators, shares: ShareGroups
) -> None:
    """Stop accepting clients, answer waiting requests, and close the connections of clients."""
    listeners.stop_accepting(BROKER_LISTENER)
    purgatory.close()
    await shares.partitions.close()
    coordinators.refuse()
    await listeners.hang_up(BROKER_LISTENER, STOP_GRACE_MS)


async def _periodic_round(shared: SharedServer, replicas: ReplicaManager, lifecycle: BrokerLifecycle) -> None:
    """One round of periodic work."""
    f, reserve = shared.foundation, shared.reserve
    replicas.check_lag()
    replicas.check_controller(lifecycle.silent_for_ms)
    await replicas.create_missing()
    if reserve.is_short:
        await f.threads.run_blocking(reserve.take_back)
    await shared.logs.tick()
