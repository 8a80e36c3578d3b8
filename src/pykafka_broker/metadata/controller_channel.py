"""Requests of a cluster's nodes to the active controller, whichever node that is.

Two ports. `ControllerChannel` has what a node asks for itself: its broker's registration and heartbeats,
producer ids, topics on demand. `controller/local_channel.py` asks the controller of this very node,
`remote_channel.py` beside this file the one of another node over its connection, and
`controller/nearest_channel.py` whichever of the two is active; callers see no difference.
`ClusterAdministration` has what clients ask for: only the active controller in this process implements it,
for requests of clients are forwarded as a whole where it is elsewhere (`apis/forwarding.py`).

Every answer of a local controller comes when the change is committed and this node has published it, so a
client that asks the same node next sees it. A call refused as a whole raises KafkaError with the code for the
client, which is NOT_CONTROLLER where no controller is active; calls that answer item by item give that code
to every item.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from pykafka_broker.authorization.index import Acl
from pykafka_broker.cluster.events import (
    AclFilter,
    AclResult,
    AlterClientQuotasResult,
    AlterConfigsResult,
    AlterScramCredentialsResult,
    ConfigChange,
    CreatedToken,
    CreatePartitionsResult,
    CreateTopicResult,
    DeleteAclsResult,
    DeleteTopicResult,
    DirectoryAssignment,
    FeatureUpdate,
    HeartbeatResult,
    IsrChange,
    IsrChangeResult,
    NewConfigs,
    NewPartitions,
    NewTopic,
    ProducerIdBlock,
    QuotaAlteration,
    ScramDeletion,
    ScramUpsertion,
    TopicPartitions,
    TopicReassignment,
    TopicResult,
)
from pykafka_broker.cluster.features import NODE_FEATURES
from pykafka_broker.cluster.image import FeatureRange, RegisteredEndpoint
from pykafka_broker.metadata.quorum_description import QuorumDescription
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.messages import AddVoter, ChangeAnswer, RemoveVoter
from pykafka_broker.system.named_tuple import NamedTuple

#: Replicas whose directories are told at a time, as many as by Apache Kafka's brokers.
MAX_ASSIGNMENTS = 2_250


class Requester(NamedTuple):
    """The client that asks for a change: its principal, as "User:alice", and its address."""

    principal: str
    host: str

    def __str__(self) -> str:
        return f"{self.principal} at {self.host}"


class ClusterAdministration(Protocol):
    """Changes that clients ask for, and what only the controller can tell them.

    `timeout_ms` is the caller's patience: REQUEST_TIMED_OUT after it, though the change may still happen; a
    change whose caller has no time left is not begun.
    """

    def on_behalf_of(self, requester: Requester) -> ClusterAdministration:
        """The same for changes that this client asks for: the log of the controller names it."""
        ...

    async def create_topics(
        self, topics: Iterable[NewTopic], *, timeout_ms: int | None = None, validate_only: bool = False
    ) -> tuple[CreateTopicResult, ...]:
        """Create topics; a topic without an id gets a random one.

        One result for each distinct name, in Kafka's order: duplicates last.
        """
        ...

    async def delete_topics(
        self, topics: Iterable[tuple[str | None, bytes]], *, timeout_ms: int | None = None
    ) -> tuple[DeleteTopicResult, ...]:
        """Delete topics given as (name, zero id) or (None, id).

        The caller has looked whether `delete.topic.enable` allows it.
        """
        ...

    async def create_partitions(
        self, topics: Iterable[NewPartitions], *, timeout_ms: int | None = None, validate_only: bool = False
    ) -> tuple[CreatePartitionsResult, ...]:
        """Add partitions to topics."""
        ...

    async def elect_leaders(
        self,
        topics: Iterable[TopicPartitions] | None,
        election_type: int,
        *,
        timeout_ms: int | None = None,
    ) -> tuple[TopicResult, ...]:
        """Let partitions elect a leader now, all that need it if `topics` is None.

        `election_type` is the request's: 0 for the preferred leader, 1 for any live replica.
        """
        ...

    async def alter_partition_reassignments(
        self,
        topics: Iterable[TopicReassignment],
        *,
        allow_replication_factor_change: bool = True,
        timeout_ms: int | None = None,
    ) -> tuple[TopicResult, ...]:
        """Give partitions other replicas, or call that off; a result for each topic asked, in that order."""
        ...

    async def incremental_alter_configs(
        self, resources: Iterable[ConfigChange], *, validate_only: bool = False
    ) -> tuple[AlterConfigsResult, ...]:
        """Change single keys; one result for each resource asked, in that order.

        The caller makes the broker's own checks of BROKER values, and changes loggers itself.
        """
        ...

    async def alter_configs(
        self, resources: Iterable[NewConfigs], *, validate_only: bool = False
    ) -> tuple[AlterConfigsResult, ...]:
        """Replace all values; one result for each resource asked, in that order."""
        ...

    async def alter_client_quotas(
        self, alterations: Iterable[QuotaAlteration], *, validate_only: bool = False
    ) -> tuple[AlterClientQuotasResult, ...]:
        """Set and remove quotas; one result for each distinct entity."""
        ...

    async def create_acls(self, acls: Iterable[Acl]) -> tuple[AclResult, ...]:
        """Create ACLs; one result for each, in that order."""
        ...

    async def delete_acls(self, filters: Iterable[AclFilter]) -> tuple[DeleteAclsResult, ...]:
        """Delete what the filters find; one result for each filter, in that order."""
        ...

    async def alter_scram_credentials(
        self, deletions: Iterable[ScramDeletion], upsertions: Iterable[ScramUpsertion]
    ) -> tuple[AlterScramCredentialsResult, ...]:
        """Remove and set SCRAM credentials; one result for each user, in Kafka's order."""
        ...

    async def create_token(
        self,
        owner: str,
        requester: str,
        renewers: Iterable[tuple[str, str]],
        max_lifetime_ms: int,
    ) -> CreatedToken:
        """Issue a delegation token; KafkaError with the reason if there is none."""
        ...

    async def renew_token(self, principal: str, hmac: bytes, renew_period_ms: int) -> int:
        """Let a delegation token live longer; when it expires now, or KafkaError with the reason."""
        ...

    async def expire_token(self, principal: str, hmac: bytes, expiry_period_ms: int) -> int:
        """Let a delegation token expire; when it does, or KafkaError with the reason."""
        ...

    async def update_features(
        self, updates: Iterable[FeatureUpdate], *, timeout_ms: int | None = None, validate_only: bool = False
    ) -> None:
        """Change finalized feature levels; KafkaError with the reason when one of them cannot be."""
        ...

    async def unregister_broker(self, broker_id: int) -> None:
        """Forget a broker; KafkaError if it is not known."""
        ...

    async def add_voter(self, request: AddVoter) -> ChangeAnswer:
        """Make a copy of the metadata log a voter; the answer of the leader, which may be a refusal."""
        ...

    async def remove_voter(self, request: RemoveVoter) -> ChangeAnswer:
        """Take a voter out of the quorum; the answer of the leader, which may be a refusal."""
        ...

    async def describe_quorum(self) -> QuorumDescription:
        """The metadata quorum as its leader sees it now."""
        ...


class BrokerStatus(NamedTuple):
    """The state of the broker that a heartbeat tells, and the one that it asks for.

    Everything up to `metadata_offset` has been published on this node. `offline_directories` are all that
    have failed since the registration. `cordoned_directories` get no new replicas; None says nothing of it.
    """

    broker_epoch: int
    metadata_offset: int
    want_fence: bool = False
    want_shutdown: bool = False
    offline_directories: tuple[bytes, ...] = ()
    cordoned_directories: tuple[bytes, ...] | None = None


class BrokerReports(Protocol):
    """The requests of this node's broker to the controller: its state, its directories, the in-sync replicas
    of the partitions that it leads, producer ids.
    """

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
        """Register the broker, fenced; returns its broker epoch.

        `incarnation_id` stands for one start of the broker: the same one again keeps its epoch and amends the
        registration. `previous_broker_epoch` is the epoch noted by the last clean stop, -1 if there is none.
        """
        ...

    async def heartbeat(self, status: BrokerStatus) -> HeartbeatResult:
        """Tell that the broker lives; the state that it has for the controller now."""
        ...

    async def assign_replicas_to_dirs(
        self, broker_epoch: int, assignments: Sequence[DirectoryAssignment]
    ) -> tuple[ErrorCode, ...]:
        """Say which log directories of the broker hold its replicas; an outcome for each."""
        ...

    async def alter_partition(
        self, broker_epoch: int, changes: Sequence[IsrChange]
    ) -> tuple[IsrChangeResult | None, ...]:
        """Give partitions that this broker leads other in-sync replicas; an outcome for each.

        None stands for a partition that the controller has left out of its answer.
        """
        ...

    async def allocate_producer_ids(self, broker_epoch: int) -> ProducerIdBlock:
        """A block of producer ids for the broker."""
        ...


class LedHere(Exception):
    """The active controller is in this process now: it is asked without a connection."""


class ControllerChannel(BrokerReports, Protocol):
    """Everything that a node asks of the active controller for itself."""

    async def create_topics(
        self, topics: Iterable[NewTopic], *, timeout_ms: int | None = None, validate_only: bool = False
    ) -> tuple[CreateTopicResult, ...]:
        """Create topics on demand; as in `ClusterAdministration`."""
        ...

    async def register_controller(
        self,
        incarnation_id: bytes,
        listeners: Mapping[str, RegisteredEndpoint],
        features: Mapping[str, FeatureRange] = NODE_FEATURES,
    ) -> None:
        """Write down how the controller of this node is reached (KIP-919).

        `incarnation_id` stands for one start of the controller.
        """
        ...
