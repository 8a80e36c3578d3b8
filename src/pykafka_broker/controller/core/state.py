"""The controller's state: the newest image, committed or not, the rules of this cluster, and sessions.

`ControllerState.image` includes records that are appended but not yet committed, so that the next decision
builds on them; readers see images only after the commit. Sessions are not in the log: a new controller starts
new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pykafka_broker.cluster.features import ELR_VERSION, KRAFT_VERSION_LEVEL, NODE_FEATURES
from pykafka_broker.cluster.image import ClusterImage, FeatureRange, ResourceType
from pykafka_broker.cluster.records import MAX_RECORDS_PER_OPERATION
from pykafka_broker.machine.step import SetTimer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.named_tuple import NamedTuple

MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"


class ConfigRules(Protocol):
    """The rules of config keys that the controller needs; the config package implements them."""

    def validate(
        self, resource_type: ResourceType, name: str, new: Mapping[str, str], old: Mapping[str, str]
    ) -> None:
        """Raise KafkaError unless `new`, the complete set of values, is valid for the resource."""
        ...

    def is_list(self, resource_type: ResourceType, key: str) -> bool:
        """Whether APPEND and SUBTRACT make sense for the key."""
        ...

    def default(self, resource_type: ResourceType, key: str) -> str | None:
        """The value of a key that is not set, from which APPEND and SUBTRACT start."""
        ...

    def static(self, key: str) -> str | None:
        """The node's own value of a broker key, from its properties file or the default."""
        ...

    def is_secret(self, resource_type: int, key: str) -> bool:
        """Whether the value of a key must not be shown because it is or may be a secret."""
        ...


class AnyConfig:
    """Rules that accept every key and know no defaults: for nodes without a config table, such as tests."""

    def validate(
        self, resource_type: ResourceType, name: str, new: Mapping[str, str], old: Mapping[str, str]
    ) -> None:
        """Accept."""

    def is_list(self, resource_type: ResourceType, key: str) -> bool:
        """Whether the key's name ends like that of a list."""
        return key.endswith((".policy", ".replicas", "listeners"))

    def default(self, resource_type: ResourceType, key: str) -> str | None:
        """Nothing is set."""
        return None

    def static(self, key: str) -> str | None:
        """Nothing is set."""
        return None

    def is_secret(self, resource_type: int, key: str) -> bool:
        """Whether the key's name ends like that of a secret."""
        return key.endswith((".password", ".config"))


@dataclass(frozen=True, slots=True)
class TokenRules:
    """How long delegation tokens live, and the key that makes their HMACs; `repr` does not show it."""

    secret_key: bytes = field(repr=False)
    #: `delegation.token.max.lifetime.ms`.
    max_lifetime_ms: int = 604_800_000
    #: `delegation.token.expiry.time.ms`.
    expiry_time_ms: int = 86_400_000
    #: `delegation.token.expiry.check.interval.ms`.
    expiry_check_interval_ms: int = 3_600_000


class ControllerRules(NamedTuple):
    """The settings of this controller, with the voters and the kraft.version of the log."""

    node_id: int
    cluster_id: str
    configs: ConfigRules = AnyConfig()
    default_partitions: int = 1
    default_replication_factor: int = 1
    session_timeout_ms: int = 9_000
    #: `leader.imbalance.check.interval.seconds`; None: the controller holds no preferred elections itself.
    leader_balance_interval_ms: int | None = 300_000
    #: `unclean.leader.election.interval.ms`.
    unclean_election_interval_ms: int = 300_000
    #: The voters of the quorum: an update of a feature depends on the levels that each of them supports.
    voters: tuple[int, ...] = ()
    supported_features: Mapping[str, FeatureRange] = NODE_FEATURES
    #: 0 if the configuration of each node names the voters, 1 if the log does.
    kraft_version: int = KRAFT_VERSION_LEVEL
    #: None without delegation tokens.
    tokens: TokenRules | None = None


class Absence(NamedTuple):
    """A broker has had no connection to this controller since `since_ms`, and the last `refusals` probes were
    refused. Its process counts as ended after `patience_ms` and enough refusals.
    """

    since_ms: int
    patience_ms: int
    refusals: int = 0


class Session(NamedTuple):
    """The time of a broker's last heartbeat, and the offset up to which it had applied the metadata."""

    last_contact_ms: int
    metadata_offset: int = -1
    #: The log's end when the broker's controlled shutdown began. The other brokers must have applied the
    #: metadata up to here before the broker may stop.
    shutdown_offset: int | None = None
    #: None while the broker is connected to this controller.
    absence: Absence | None = None
    #: Whether a connection is open on which this incarnation has registered or sent a heartbeat.
    is_heard: bool = True


class ControllerState(NamedTuple):
    """The whole state of the controller core."""

    image: ClusterImage
    rules: ControllerRules
    sessions: Mapping[int, Session] = {}

    @property
    def next_offset(self) -> int:
        """The offset of the next record."""
        return self.image.offset + 1

    def is_active(self, broker_id: int) -> bool:
        """Whether a broker is registered and may hold leaders and new replicas."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.active

    def topic_config(self, topic: str, key: str) -> str | None:
        """The value in force for a topic; the broker's config key must have the same name as the topic's."""
        image = self.image
        for resource in (
            (ResourceType.TOPIC, topic),
            (ResourceType.BROKER, str(self.rules.node_id)),
            (ResourceType.BROKER, ""),
        ):
            value = image.configs.get(resource, {}).get(key)
            if value is not None:
                return value
        return self.rules.configs.static(key)

    def unclean_election_enabled(self, topic: str) -> bool:
        """Whether unclean elections are allowed for the topic."""
        return (self.topic_config(topic, UNCLEAN_LEADER_ELECTION) or "").strip().lower() == "true"

    @property
    def elr_enabled(self) -> bool:
        """Whether partitions keep eligible leader replicas (KIP-966)."""
        return self.image.features.get(ELR_VERSION, 0) > 0


class Decision(NamedTuple):
    """The decision of a rule: records to append, the answer, sessions if they changed, and timers."""

    records: tuple[object, ...] = ()
    result: object = None
    sessions: Mapping[int, Session] | None = None
    timers: tuple[SetTimer, ...] = ()


def check_operation_size(records: int) -> None:
    """Refuse a number of records that would not fit into one batch of the metadata log.

    Raises:
        KafkaError: POLICY_VIOLATION.
    """
    if records > MAX_RECORDS_PER_OPERATION:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
