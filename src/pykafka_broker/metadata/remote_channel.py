"""The active controller of another node: a `ControllerChannel` over connections to it.

Requests are those of Apache Kafka's brokers, and go over connections of their own as there: a heartbeat must
not wait behind a topic that is being created. A topic that was created is waited for until this node has
published it: its caller goes on with it here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

from pykafka_broker.cluster.events import (
    CreateTopicResult,
    DirectoryAssignment,
    HeartbeatResult,
    InSyncReplicas,
    IsrChange,
    IsrChangeResult,
    NewTopic,
    ProducerIdBlock,
)
from pykafka_broker.cluster.features import NODE_FEATURES, declared_where
from pykafka_broker.cluster.image import (
    ClusterImage,
    FeatureRange,
    LeaderRecoveryState,
    RegisteredEndpoint,
)
from pykafka_broker.machine.clock import Clock
from pykafka_broker.metadata.controller_channel import MAX_ASSIGNMENTS, BrokerStatus
from pykafka_broker.metadata.leader_connection import ConnectionSettings, LeaderConnection, LogLeader
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages import (
    allocate_producer_ids,
    alter_partition,
    assign_replicas_to_dirs,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    create_topics,
)
from pykafka_broker.raft.wire.common import error_of
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.client.connection import Security


#: The patience of Apache Kafka's channels of these names.
FORWARDING_PATIENCE_MS = 60_000
DIRECTORIES_PATIENCE_MS = 60_000
#: Apache Kafka's brokers never give up a request for other in-sync replicas; ours send it anew after this.
IN_SYNC_REPLICAS_PATIENCE_MS = 60_000
REGISTRATION_PATIENCE_MS = 5_000


class PublishedImages(Protocol):
    """The metadata that this node has published."""

    @property
    def image(self) -> ClusterImage:
        """The newest committed metadata."""
        ...

    def subscribe(self, subscriber: Callable[[ClusterImage, ClusterImage], None]) -> Callable[[], None]:
        """Call `subscriber(old, new)` whenever an image is published. Returns how to stop that."""
        ...


class NodeIdentity(NamedTuple):
    """The node that asks."""

    node_id: int
    cluster_id: str


class RemoteSettings(NamedTuple):
    """Time-outs, each of `broker.session.timeout.ms`, `controller.socket.timeout.ms` and
    `socket.connection.setup.timeout.ms`; and the security of the connections.
    """

    session_timeout_ms: int = 9_000
    attempt_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    security: Security | None = None


class LeaderConnections(NamedTuple):
    """The connections of a node to the active controller, one for each of Apache Kafka's channels."""

    forwarding: LeaderConnection
    heartbeats: LeaderConnection
    directories: LeaderConnection
    in_sync_replicas: LeaderConnection
    registration: LeaderConnection

    @classmethod
    def to(
        cls,
        leader: LogLeader,
        clock: Clock,
        node_id: int,
        settings: RemoteSettings,
        *,
        is_led_here: Callable[[], bool] = lambda: False,
    ) -> LeaderConnections:
        """Connections to `leader`, made when they are needed."""

        def connection(name: str, patience_ms: int) -> LeaderConnection:
            timeouts = ConnectionSettings(
                node_id,
                name,
                patience_ms,
                min(settings.attempt_timeout_ms, patience_ms),
                settings.connect_timeout_ms,
                settings.security,
            )
            return LeaderConnection(leader, clock, timeouts, is_led_here=is_led_here)

        return cls(
            forwarding=connection("forwarding", FORWARDING_PATIENCE_MS),
            heartbeats=connection("heartbeat", settings.session_timeout_ms // 2),
            directories=connection("directory-assignments", DIRECTORIES_PATIENCE_MS),
            in_sync_replicas=connection("alter-partition", IN_SYNC_REPLICAS_PATIENCE_MS),
            registration=connection("registration", REGISTRATION_PATIENCE_MS),
        )

    async def close(self) -> None:
        """Close all of them; callers that wait are answered with NOT_CONTROLLER."""
        for connection in self:
            await connection.close()


class RemoteControllerChannel:
    """`metadata/controller_channel.py` explains each request.

    Besides KafkaError every method raises LedHere where the active controller is in this process.
    """

    def __init__(
        self, connections: LeaderConnections, node: NodeIdentity, metadata: PublishedImages, clock: Clock
    ) -> None:
        self._connections = connections
        self._node = node
        self._metadata = metadata
        self._clock = clock

    # -- the broker ------------------------------------------------------------------------------------

    async def register_broker(
        self,
        *,
        incarnation_id: bytes,
        listeners: Mapping[str, RegisteredEndpoint],
        directories: Iterable[bytes],
        rack: str | None = None,
        previous_broker_epoch: int = -1,
        features: Mapping[str, FeatureRange] = NODE_FEATURES,
    ) -> int:
        m = broker_registration
        response: m.BrokerRegistrationResponse = await self._connections.heartbeats.ask(
            m.BrokerRegistrationRequest(
                broker_id=self._node.node_id,
                cluster_id=self._node.cluster_id,
                incarnation_id=incarnation_id,
                listeners=[
                    m.Listener(name=name, host=at.host, port=at.port, security_protocol=at.security_protocol)
                    for name, at in listeners.items()
                ],
                features=[
                    m.Feature(
                        name=name,
                        min_supported_version=levels.min_level,
                        max_supported_version=levels.max_level,
                    )
                    for name, levels in declared_where(self._metadata.image.features, features).items()
                ],
                rack=rack,
                log_dirs=sorted(directories),
                previous_broker_epoch=previous_broker_epoch,
            )
        )
        _check(response.error_code)
        return response.broker_epoch

    async def heartbeat(self, status: BrokerStatus) -> HeartbeatResult:
        cordoned = status.cordoned_directories
        response: broker_heartbeat.BrokerHeartbeatResponse = await self._connections.heartbeats.ask(
            broker_heartbeat.BrokerHeartbeatRequest(
                broker_id=self._node.node_id,
                broker_epoch=status.broker_epoch,
                current_metadata_offset=status.metadata_offset,
                want_fence=status.want_fence,
                want_shut_down=status.want_shutdown,
                offline_log_dirs=list(status.offline_directories),
                cordoned_log_dirs=None if cordoned is None else list(cordoned),
            )
        )
        _check(response.error_code)
        return HeartbeatResult(response.is_caught_up, response.is_fenced, response.should_shut_down)

    async def assign_replicas_to_dirs(
        self, broker_epoch: int, assignments: Sequence[DirectoryAssignment]
    ) -> tuple[ErrorCode, ...]:
        outcomes: list[ErrorCode] = []
        for start in range(0, len(assignments), MAX_ASSIGNMENTS):
            some = assignments[start : start + MAX_ASSIGNMENTS]
            outcomes += await self._assign_some(broker_epoch, some)
        return tuple(outcomes)

    async def _assign_some(
        self, broker_epoch: int, assignments: Sequence[DirectoryAssignment]
    ) -> list[ErrorCode]:
        m = assign_replicas_to_dirs
        response: m.AssignReplicasToDirsResponse = await self._connections.directories.ask(
            m.AssignReplicasToDirsRequest(
                broker_id=self._node.node_id,
                broker_epoch=broker_epoch,
                directories=[
                    m.AssignReplicasToDirsRequestDirectoryData(id=directory, topics=_by_topic(of_directory))
                    for directory, of_directory in groupby(
                        sorted(assignments, key=lambda one: one.directory), key=lambda one: one.directory
                    )
                ],
            )
        )
        _check(response.error_code)
        outcomes = {
            DirectoryAssignment(topic.topic_id, partition.partition_index, directory.id): error_of(
                partition.error_code
            )
            for directory in response.directories
            for topic in directory.topics
            for partition in topic.partitions
        }
        return [outcomes.get(one, ErrorCode.UNKNOWN_SERVER_ERROR) for one in assignments]

    async def alter_partition(
        self, broker_epoch: int, changes: Sequence[IsrChange]
    ) -> tuple[IsrChangeResult | None, ...]:
        m = alter_partition
        by_topic: dict[bytes, list[m.AlterPartitionRequestPartitionData]] = {}
        for change in changes:
            by_topic.setdefault(change.topic_id, []).append(_isr_wanted(change))
        response: m.AlterPartitionResponse = await self._connections.in_sync_replicas.ask(
            m.AlterPartitionRequest(
                broker_id=self._node.node_id,
                broker_epoch=broker_epoch,
                topics=[
                    m.AlterPartitionRequestTopicData(topic_id=topic_id, partitions=partitions)
                    for topic_id, partitions in by_topic.items()
                ],
            )
        )
        _check(response.error_code)
        outcomes = {
            (topic.topic_id, partition.partition_index): _isr_change_result(partition)
            for topic in response.topics
            for partition in topic.partitions
        }
        return tuple(outcomes.get((change.topic_id, change.partition)) for change in changes)

    async def allocate_producer_ids(self, broker_epoch: int) -> ProducerIdBlock:
        m = allocate_producer_ids
        response: m.AllocateProducerIdsResponse = await self._connections.forwarding.ask(
            m.AllocateProducerIdsRequest(broker_id=self._node.node_id, broker_epoch=broker_epoch)
        )
        _check(response.error_code)
        return ProducerIdBlock(response.producer_id_start, response.producer_id_len)

    # -- topics ----------------------------------------------------------------------------------------

    async def create_topics(
        self, topics: Iterable[NewTopic], *, timeout_ms: int | None = None, validate_only: bool = False
    ) -> tuple[CreateTopicResult, ...]:
        asked = tuple(topics)
        forwarding = self._connections.forwarding
        patience_ms = forwarding.patience_ms if timeout_ms is None else timeout_ms
        give_up_ms = self._clock.monotonic_ms() + patience_ms
        response: create_topics.CreateTopicsResponse = await forwarding.ask(
            create_topics.CreateTopicsRequest(
                topics=[_creatable(topic) for topic in asked],
                timeout_ms=patience_ms,
                validate_only=validate_only,
            ),
            timeout_ms=patience_ms,
        )
        answered = {topic.name: _result(topic) for topic in response.topics}
        unanswered = ErrorCode.UNKNOWN_SERVER_ERROR
        names = dict.fromkeys(topic.name for topic in asked)
        results = tuple(answered.get(name, CreateTopicResult(name, unanswered)) for name in names)
        if not validate_only:
            there = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
            await self._published([result.name for result in results if result.error in there], give_up_ms)
        return results

    async def _published(self, names: Sequence[str], give_up_ms: int) -> None:
        """Return when this node has published these topics, or the time is over."""
        if _are_shown(names, self._metadata.image):
            return
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def look(_: ClusterImage, image: ClusterImage) -> None:
            if _are_shown(names, image):
                end()

        def end() -> None:
            if not over.done():
                over.set_result(None)

        unsubscribe = self._metadata.subscribe(look)
        timer = self._clock.call_at(give_up_ms, end)
        try:
            await over
        finally:
            timer.cancel()
            unsubscribe()

    # -- the controller of this node -------------------------------------------------------------------

    async def register_controller(
        self,
        incarnation_id: bytes,
        listeners: Mapping[str, RegisteredEndpoint],
        features: Mapping[str, FeatureRange] = NODE_FEATURES,
    ) -> None:
        m = controller_registration
        response: m.ControllerRegistrationResponse = await self._connections.registration.ask(
            m.ControllerRegistrationRequest(
                controller_id=self._node.node_id,
                incarnation_id=incarnation_id,
                zk_migration_ready=False,
                listeners=[
                    m.Listener(name=name, host=at.host, port=at.port, security_protocol=at.security_protocol)
                    for name, at in listeners.items()
                ],
                features=[
                    m.Feature(
                        name=name,
                        min_supported_version=levels.min_level,
                        max_supported_version=levels.max_level,
                    )
                    for name, levels in declared_where(self._metadata.image.features, features).items()
                ],
            )
        )
        _check(response.error_code, response.error_message)


def _check(code: int, message: str | None = None) -> None:
    """Raise the error of a response."""
    if code:
        raise KafkaError(error_of(code), message or None)


def _by_topic(
    assignments: Iterable[DirectoryAssignment],
) -> list[assign_replicas_to_dirs.AssignReplicasToDirsRequestTopicData]:
    m = assign_replicas_to_dirs
    by_topic: dict[bytes, list[m.AssignReplicasToDirsRequestPartitionData]] = {}
    for one in assignments:
        partition = m.AssignReplicasToDirsRequestPartitionData(partition_index=one.partition)
        by_topic.setdefault(one.topic_id, []).append(partition)
    return [
        m.AssignReplicasToDirsRequestTopicData(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in by_topic.items()
    ]


def _isr_wanted(change: IsrChange) -> alter_partition.AlterPartitionRequestPartitionData:
    """The change for every version: v2 has the brokers alone, v3 their epochs too."""
    m = alter_partition
    return m.AlterPartitionRequestPartitionData(
        partition_index=change.partition,
        leader_epoch=change.leader_epoch,
        new_isr=[member.broker_id for member in change.isr],
        new_isr_with_epochs=[
            m.BrokerState(broker_id=member.broker_id, broker_epoch=member.broker_epoch)
            for member in change.isr
        ],
        leader_recovery_state=int(change.leader_recovery_state),
        partition_epoch=change.partition_epoch,
    )


def _isr_change_result(partition: alter_partition.AlterPartitionResponsePartitionData) -> IsrChangeResult:
    error = error_of(partition.error_code)
    if error is not ErrorCode.NONE:
        return IsrChangeResult(error)
    try:
        recovery_state = LeaderRecoveryState(partition.leader_recovery_state)
    except ValueError:
        return IsrChangeResult(ErrorCode.UNKNOWN_SERVER_ERROR)
    return IsrChangeResult(
        ErrorCode.NONE,
        InSyncReplicas(
            partition.leader_id,
            partition.leader_epoch,
            tuple(partition.isr),
            partition.partition_epoch,
            recovery_state,
        ),
    )


def _are_shown(names: Iterable[str], image: ClusterImage) -> bool:
    return all(name in image.topics for name in names)


def _result(topic: create_topics.CreatableTopicResult) -> CreateTopicResult:
    return CreateTopicResult(
        topic.name,
        error_of(topic.error_code),
        topic.error_message,
        topic.topic_id,
        topic.num_partitions,
        topic.replication_factor,
    )


def _creatable(topic: NewTopic) -> create_topics.CreatableTopic:
    m = create_topics
    return m.CreatableTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            m.CreatableReplicaAssignment(partition_index=partition, broker_ids=list(replicas))
            for partition, replicas in topic.assignments
        ],
        configs=[m.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs],
    )
