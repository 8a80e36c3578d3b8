"""The events of the controller, and its results: plain frozen values.

An event holds what is asked for, and what the core cannot look up itself (`unknown_hosts`,
`kraft_version_refusal`); the time and random bits are in `Moment`. Results have the error
codes and texts of Kafka 4.3; `message` is None where Kafka sends null. Where handlers themselves answer for
some items of a request, the event for the others has `refused`: the answer if it is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import sha256
from itertools import count
from typing import Union

from pykafka_broker.authorization.index import Acl
from pykafka_broker.cluster.features import KRAFT_VERSION
from pykafka_broker.cluster.image import (
    FeatureRange,
    LeaderRecoveryState,
    QuotaEntity,
    RegisteredEndpoint,
)
from pykafka_broker.log.disk.checkpoints import uuid_of
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.system.named_tuple import NamedTuple

# -- topics -----------------------------------------------------------------------------------------


class NewTopic(NamedTuple):
    """A topic to create; -1 stands for the broker's default, `assignments` are (partition, replicas) by hand.

    `topic_id` is the id that a new topic gets; zero stands for a random id.
    """

    name: str
    topic_id: bytes = ZERO_UUID
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()

    def partition_count(self, default: int) -> int:
        """The number of partitions asked for, 0 if that is invalid; `default` is `num.partitions`."""
        if self.assignments:
            return len(self.assignments)
        return default if self.num_partitions == -1 else max(0, self.num_partitions)


class CreateTopics(NamedTuple):
    """Create topics; answered with one `CreateTopicResult` for each distinct name."""

    topics: tuple[NewTopic, ...]
    validate_only: bool = False

    def refused(self, error: KafkaError) -> tuple[CreateTopicResult, ...]:
        """The answer if the whole event is refused."""
        names = dict.fromkeys(topic.name for topic in self.topics)
        return tuple(CreateTopicResult(name, error.code, error.explanation) for name in names)


class CreateTopicResult(NamedTuple):
    """The result of one `NewTopic`; numbers are -1 and the id zero when it failed."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: bytes = ZERO_UUID
    num_partitions: int = -1
    replication_factor: int = -1

    @property
    def exists(self) -> bool:
        """Whether the topic exists, by this event or an earlier one."""
        return self.error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


class DeleteTopics(NamedTuple):
    """Delete topics by name or by id: (name, zero id) or (None, id); answered with `DeleteTopicResult`s."""

    topics: tuple[tuple[str | None, bytes], ...]

    def refused(self, error: KafkaError) -> tuple[DeleteTopicResult, ...]:
        """The answer if the whole event is refused."""
        return tuple(DeleteTopicResult(*topic, error.code, error.explanation) for topic in self.topics)


class DeleteTopicResult(NamedTuple):
    """The result of one topic to delete. One entry of a request may have several results, a duplicate has
    none.
    """

    name: str | None
    topic_id: bytes
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class NewPartitions(NamedTuple):
    """Grow a topic to `total_count` partitions; `assignments` are the replicas of each new one."""

    name: str
    total_count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


class CreatePartitions(NamedTuple):
    """Grow topics; answered with `CreatePartitionsResult`s."""

    topics: tuple[NewPartitions, ...]
    validate_only: bool = False

    def refused(self, error: KafkaError) -> tuple[CreatePartitionsResult, ...]:
        """The answer if the whole event is refused."""
        names = dict.fromkeys(topic.name for topic in self.topics)
        return tuple(CreatePartitionsResult(name, error.code, error.explanation) for name in names)


class CreatePartitionsResult(NamedTuple):
    """The result of one `NewPartitions`."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


# -- leaders and replicas ---------------------------------------------------------------------------


class ElectionType(IntEnum):
    """The elections that clients may ask for (KIP-460); the numbers are those of ElectLeaders."""

    PREFERRED = 0
    UNCLEAN = 1


class TopicPartitions(NamedTuple):
    """Partitions of one topic."""

    topic: str
    partitions: tuple[int, ...]


class ElectLeaders(NamedTuple):
    """Elect leaders of partitions, of all partitions if `topics` is None.

    Answered with a `TopicResult` for each topic, or an `EventError`. The election type may be unknown.
    """

    election_type: int
    topics: tuple[TopicPartitions, ...] | None


class BalanceLeaders(NamedTuple):
    """The timer has fired: elect the preferred leaders that can lead. No answer."""


class ElectUncleanLeaders(NamedTuple):
    """The timer has fired: elect any live replica of leaderless partitions, where allowed. No answer."""


class PartitionResult(NamedTuple):
    """The result for one partition."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class TopicResult(NamedTuple):
    """The results for partitions of one topic."""

    topic: str
    partitions: tuple[PartitionResult, ...]


def refused_topic(topic: str, partitions: Iterable[int], error: KafkaError) -> TopicResult:
    """The result of a topic whose partitions are all refused with `error`."""
    return TopicResult(
        topic, tuple(PartitionResult(each, error.code, error.explanation) for each in partitions)
    )


class NewReplicas(NamedTuple):
    """The replicas that a partition is to have, in order of preference; None cancels a reassignment."""

    partition: int
    replicas: tuple[int, ...] | None


class TopicReassignment(NamedTuple):
    """New replicas for partitions of one topic."""

    topic: str
    partitions: tuple[NewReplicas, ...]


class AlterPartitionReassignments(NamedTuple):
    """Start or cancel reassignments; answered with a `TopicResult` for each topic."""

    topics: tuple[TopicReassignment, ...]
    #: Whether a partition may get more or fewer replicas than it has (KIP-860).
    allow_replication_factor_change: bool = True


class IsrMember(NamedTuple):
    """A replica that the leader says is in sync; the epoch -1 matches any epoch of the broker."""

    broker_id: int
    broker_epoch: int = -1


class IsrChange(NamedTuple):
    """The new in-sync replicas of a partition, and the epochs that its leader knows."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[IsrMember, ...]
    leader_recovery_state: int = LeaderRecoveryState.RECOVERED


class AlterPartition(NamedTuple):
    """A leader changes ISRs; answered with an `IsrChangeResult` for each change, or an `EventError`."""

    broker_id: int
    broker_epoch: int
    changes: tuple[IsrChange, ...]


class InSyncReplicas(NamedTuple):
    """Leader and in-sync replicas of a partition, as the answer to AlterPartition gives them."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    leader_recovery_state: int = LeaderRecoveryState.RECOVERED


class IsrChangeResult(NamedTuple):
    """The partition after the change; NEW_LEADER_ELECTED: changed, and another broker leads now."""

    error: ErrorCode
    partition: InSyncReplicas | None = None


# -- configs ----------------------------------------------------------------------------------------


class ConfigOperation(IntEnum):
    """The operation on one key (KIP-339); the numbers are those of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """The changes of one resource: (key, operation, value). The operation may be unknown."""

    resource_type: int
    name: str
    changes: tuple[tuple[str, int, str | None], ...]

    def __repr__(self) -> str:
        """The fields without the values, some of which are secrets."""
        keys = ", ".join(key for key, _, _ in self.changes)
        return f"ConfigChange({self.resource_type}, {self.name!r}, [{keys}])"


class IncrementalAlterConfigs(NamedTuple):
    """Change single keys, all of a resource or none. Answered with `AlterConfigsResult`s."""

    resources: tuple[ConfigChange, ...]
    validate_only: bool = False

    def refused(self, error: KafkaError) -> tuple[AlterConfigsResult, ...]:
        """The answer if the whole event is refused."""
        return refused_configs(self.resources, error)


class NewConfigs(NamedTuple):
    """The values that replace all values of a resource."""

    resource_type: int
    name: str
    configs: tuple[tuple[str, str | None], ...]

    def __repr__(self) -> str:
        """The fields without the values, some of which are secrets."""
        keys = ", ".join(key for key, _ in self.configs)
        return f"NewConfigs({self.resource_type}, {self.name!r}, [{keys}])"


class AlterConfigs(NamedTuple):
    """Replace all values of resources; keys not named are reset. Answered with `AlterConfigsResult`s."""

    resources: tuple[NewConfigs, ...]
    validate_only: bool = False

    def refused(self, error: KafkaError) -> tuple[AlterConfigsResult, ...]:
        """The answer if the whole event is refused."""
        return refused_configs(self.resources, error)


class AlterConfigsResult(NamedTuple):
    """The result of one resource."""

    resource_type: int
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def refused_configs(
    resources: Iterable[ConfigChange | NewConfigs], error: KafkaError
) -> tuple[AlterConfigsResult, ...]:
    """The results of resources that are all refused with `error`."""
    return tuple(
        AlterConfigsResult(each.resource_type, each.name, error.code, error.explanation) for each in resources
    )


# -- client quotas ----------------------------------------------------------------------------------


class QuotaAlteration(NamedTuple):
    """The changes of one entity's quotas: (key, value); the value None removes the quota."""

    entity: QuotaEntity
    changes: tuple[tuple[str, float | None], ...]


class AlterClientQuotas(NamedTuple):
    """Set and remove client quotas; answered with an `AlterClientQuotasResult` for each distinct entity.

    `unknown_hosts` are the host names in it that do not resolve.
    """

    alterations: tuple[QuotaAlteration, ...]
    unknown_hosts: frozenset[str] = frozenset()
    validate_only: bool = False


class AlterClientQuotasResult(NamedTuple):
    """The result of one entity."""

    entity: QuotaEntity
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class QuotaFilter(NamedTuple):
    """One component of the filter of DescribeClientQuotas; `match_type` may be unknown."""

    entity_type: str
    match_type: int
    match: str | None = None


# -- SCRAM credentials ------------------------------------------------------------------------------


class ScramDeletion(NamedTuple):
    """A credential to remove; `mechanism` may be unknown."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class ScramUpsertion:
    """A credential to set. It holds secrets, so `repr` does not show them."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


class AlterScramCredentials(NamedTuple):
    """Set and remove SCRAM credentials; answered with an `AlterScramCredentialsResult` for each user."""

    deletions: tuple[ScramDeletion, ...]
    upsertions: tuple[ScramUpsertion, ...]


class AlterScramCredentialsResult(NamedTuple):
    """The result of one user."""

    user: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


# -- ACLs -------------------------------------------------------------------------------------------


class CreateAcls(NamedTuple):
    """Create ACLs; answered with an `AclResult` for each."""

    acls: tuple[Acl, ...]

    def refused(self, error: KafkaError) -> tuple[AclResult, ...]:
        """The answer if the whole event is refused."""
        return (AclResult(error.code, error.explanation),) * len(self.acls)


class AclResult(NamedTuple):
    """The result of one ACL."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class AclFilter(NamedTuple):
    """A filter of ACLs; None is any name, principal or host. Numbers may be unknown."""

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int


class DeleteAcls(NamedTuple):
    """Delete the ACLs that the filters find; answered with a `DeleteAclsResult` for each filter."""

    filters: tuple[AclFilter, ...]


class DeleteAclsResult(NamedTuple):
    """The result of one filter: the ACLs it found, or an error."""

    acls: tuple[Acl, ...] = ()
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


# -- delegation tokens ------------------------------------------------------------------------------


class CreateToken(NamedTuple):
    """Issue a delegation token; answered with a `CreatedToken`.

    Principals are as "User:alice"; renewers are (type, name). A `max_lifetime_ms` of 0 or less stands for
    `delegation.token.max.lifetime.ms`.
    """

    owner: str
    requester: str
    renewers: tuple[tuple[str, str], ...]
    max_lifetime_ms: int


@dataclass(frozen=True, slots=True)
class CreatedToken:
    """A new token. Its HMAC is a password, so `repr` does not show it."""

    token_id: str
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int
    hmac: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class RenewToken:
    """Extend the life of the token with this HMAC; answered with its new expiry time.

    A `renew_period_ms` of 0 or less stands for `delegation.token.expiry.time.ms`.
    """

    principal: str
    hmac: bytes = field(repr=False)
    renew_period_ms: int


@dataclass(frozen=True, slots=True)
class ExpireToken:
    """Let the token with this HMAC expire after `expiry_period_ms`; answered with its expiry time.

    A negative `expiry_period_ms` removes the token at once.
    """

    principal: str
    hmac: bytes = field(repr=False)
    expiry_period_ms: int


class RemoveExpiredTokens(NamedTuple):
    """Remove the tokens that have expired."""


# -- brokers ----------------------------------------------------------------------------------------


class RegisterBroker(NamedTuple):
    """A broker process starts; answered with its broker epoch, or an `EventError`.

    `previous_broker_epoch` is the epoch in the clean-shutdown marker of the last run, -1 after a crash.
    """

    broker_id: int
    cluster_id: str
    incarnation_id: bytes
    listeners: Mapping[str, RegisteredEndpoint]
    features: Mapping[str, FeatureRange]
    directories: tuple[bytes, ...]
    rack: str | None = None
    previous_broker_epoch: int = -1


class BrokerHeartbeat(NamedTuple):
    """A broker is alive, has applied metadata up to `metadata_offset`, and may ask for a change of its state.

    Answered with a `HeartbeatResult` or an `EventError`.
    """

    broker_id: int
    broker_epoch: int
    metadata_offset: int
    want_fence: bool = False
    want_shutdown: bool = False
    offline_directories: tuple[bytes, ...] = ()
    cordoned_directories: tuple[bytes, ...] | None = None


class HeartbeatResult(NamedTuple):
    """The state of the broker for the controller after its heartbeat."""

    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool


class ExpireSessions(NamedTuple):
    """The timer has fired: fence the broker that was silent longest, if its session has ended. No answer."""


class BrokerConnected(NamedTuple):
    """The first connection of a broker has opened, or its last one has closed. No answer."""

    broker_id: int
    is_connected: bool


class HeartbeatsEnded(NamedTuple):
    """The last connection on which a broker registered or sent heartbeats has closed. No answer."""

    broker_id: int


class BrokerProbed(NamedTuple):
    """All listeners of a broker were probed; `is_refused` if every one refused. No answer."""

    broker_id: int
    broker_epoch: int
    is_refused: bool


class UnregisterBroker(NamedTuple):
    """Remove a broker's registration; answered with None or an `EventError`."""

    broker_id: int


class DirectoryAssignment(NamedTuple):
    """The replica of a partition is in this log directory."""

    topic_id: bytes
    partition: int
    directory: bytes


class AssignReplicasToDirs(NamedTuple):
    """A broker reports the log directories of its replicas (KIP-858).

    Answered with an `ErrorCode` for each assignment, or an `EventError`.
    """

    broker_id: int
    broker_epoch: int
    assignments: tuple[DirectoryAssignment, ...]


class RegisterController(NamedTuple):
    """A controller process starts (KIP-919); answered with None."""

    controller_id: int
    incarnation_id: bytes
    listeners: Mapping[str, RegisteredEndpoint]
    features: Mapping[str, FeatureRange]


# -- the rest ---------------------------------------------------------------------------------------


class Activate(NamedTuple):
    """The controller has become active. No answer."""


class AllocateProducerIds(NamedTuple):
    """A broker needs a block of producer ids; answered with a `ProducerIdBlock` or an `EventError`."""

    broker_id: int
    broker_epoch: int


class ProducerIdBlock(NamedTuple):
    """`size` ids from `first_producer_id` on, for one broker only."""

    first_producer_id: int
    size: int


class UpgradeType(IntEnum):
    """The changes that a feature update may make (KIP-584); the numbers are those of UpdateFeatures."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """Bring a feature to `level`; 0 switches it off."""

    name: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


class UpdateFeatures(NamedTuple):
    """Change finalized features, all or none; answered with None or an `EventError`.

    kraft.version is only checked: its level is raised by control records, after this event.
    `kraft_version_refusal` is the text of the error if the voters do not allow a higher level.
    """

    updates: tuple[FeatureUpdate, ...]
    validate_only: bool = False
    kraft_version_refusal: str | None = None

    @property
    def raises_kraft_version(self) -> bool:
        """Whether the voters have to agree as well."""
        return any(update.name == KRAFT_VERSION and update.level > 0 for update in self.updates)


class EventError(NamedTuple):
    """The whole event was refused."""

    error: ErrorCode
    message: str | None = None


Event = Union[
    CreateTopics,
    DeleteTopics,
    CreatePartitions,
    ElectLeaders,
    BalanceLeaders,
    ElectUncleanLeaders,
    AlterPartitionReassignments,
    AlterPartition,
    IncrementalAlterConfigs,
    AlterConfigs,
    AlterClientQuotas,
    AlterScramCredentials,
    CreateAcls,
    DeleteAcls,
    CreateToken,
    RenewToken,
    ExpireToken,
    RemoveExpiredTokens,
    RegisterBroker,
    BrokerHeartbeat,
    ExpireSessions,
    BrokerConnected,
    HeartbeatsEnded,
    BrokerProbed,
    UnregisterBroker,
    AssignReplicasToDirs,
    RegisterController,
    Activate,
    AllocateProducerIds,
    UpdateFeatures,
]


class Moment(NamedTuple):
    """The time of a decision, and the seed of its random numbers: the same moment gives the same decision.

    `now_ms` measures durations: setting the wall clock does not move it. `wall_ms` is the wall clock, for
    timestamps that others read or write.
    """

    now_ms: int
    wall_ms: int
    seed: int = 0

    def random_uuids(self) -> Iterator[bytes]:
        """Random ids of 16 bytes, without those that Kafka reserves."""
        for number in count():
            drawn = sha256(b"%d %d" % (self.seed, number)).digest()
            if uuid := uuid_of(drawn[:16]):
                yield uuid


class Asked(NamedTuple):
    """An event at its moment. `token` comes back in the `Reply`; None if no caller waits for an answer."""

    event: Event
    moment: Moment
    token: int | None = None
