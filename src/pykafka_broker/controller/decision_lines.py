"""The log lines of the active controller: what it has decided, for whom, and why.

The controller that made a decision logs it when its records are committed; replaying the log writes no lines.
Each kind of change is one line, with a count and the first names if the decision changes many things. The
loggers are those of the parts of Apache Kafka's controller that decide. All lines are at INFO, except
elections that may lose records, which are at WARN. Apache Kafka logs partitions one by one at DEBUG, and
never the requester.

No line has a secret: credentials and tokens appear by name only, sensitive and unknown configurations by key
only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pykafka_broker.cluster.image import (
    NO_LEADER,
    ClusterImage,
    LeaderRecoveryState,
    PartitionRegistration,
    ResourceType,
    acl_of,
)
from pykafka_broker.controller.channel import ChangeRequester
from pykafka_broker.controller.core import events
from pykafka_broker.protocol.acls import AclOperation, AclPermission, AclResourceType, PatternType
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.protocol.schema import HIDDEN
from pykafka_broker.sasl.scram_keys import SCRAM_MECHANISMS
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import cut, listed, printable

#: The most names that a line lists.
MOST_NAMES = 5

_SCRAM = {mechanism.type: mechanism.name for mechanism in SCRAM_MECHANISMS.values()}

#: Whether the value of a key of a resource may be a secret.
IsSecret = Callable[[int, str], bool]


class Decided(NamedTuple):
    """A decision on an event: its records, the metadata before and after them, and the client that asked."""

    event: object
    records: tuple[object, ...]
    before: ClusterImage
    after: ClusterImage
    requester: ChangeRequester | None = None


class Line(NamedTuple):
    """One line of the log."""

    logger: logging.Logger
    level: int
    text: str


class _Kind(NamedTuple):
    """The beginning of a line about one change, or about many. The reason follows unless `says_why`."""

    part: str
    one: str
    many: str
    level: int = logging.INFO
    says_why: bool = False

    @property
    def logger(self) -> logging.Logger:
        return logging.getLogger(f"org.apache.kafka.controller.{self.part}")


_REPLICATION, _CLUSTER = "ReplicationControlManager", "ClusterControlManager"
_CONFIGURATION, _QUOTAS = "ConfigurationControlManager", "ClientQuotaControlManager"
_SCRAM_PART, _ACLS = "ScramControlManager", "AclControlManager"
_TOKENS, _FEATURES = "DelegationTokenControlManager", "FeatureControlManager"
PARTS = (_REPLICATION, _CLUSTER, _CONFIGURATION, _QUOTAS, _SCRAM_PART, _ACLS, _TOKENS, _FEATURES)

_TOPIC_CREATED = _Kind(_REPLICATION, "Created topic ", "Created {} topics: ")
_TOPIC_DELETED = _Kind(_REPLICATION, "Deleted topic ", "Deleted {} topics: ")
_PARTITION_CREATED = _Kind(_REPLICATION, "Created partition ", "Created {} partitions: ")
_LEADER = _Kind(_REPLICATION, "Changed the leader of ", "Changed the leaders of {} partitions: ")
_UNCLEAN = _Kind(
    _REPLICATION,
    "UNCLEAN election, which may have lost records, changed the leader of ",
    "UNCLEAN elections, which may have lost records, changed the leaders of {} partitions: ",
    logging.WARNING,
)
_SHRUNK = _Kind(_REPLICATION, "Shrunk the ISR of ", "Shrunk the ISRs of {} partitions: ")
_EXPANDED = _Kind(_REPLICATION, "Expanded the ISR of ", "Expanded the ISRs of {} partitions: ")
_REASSIGNED = _Kind(_REPLICATION, "Completed the reassignment of ", "Completed {} reassignments: ")
_REASSIGNING = _Kind(_REPLICATION, "Started the reassignment of ", "Started {} reassignments: ")
_NOT_REASSIGNED = _Kind(_REPLICATION, "Cancelled the reassignment of ", "Cancelled {} reassignments: ")
_FENCED = _Kind(_REPLICATION, "Fencing broker ", "Fencing {} brokers: ", says_why=True)
_UNFENCED = _Kind(_REPLICATION, "Unfenced broker ", "Unfenced {} brokers: ", says_why=True)
_SHUTTING_DOWN = _Kind(
    _REPLICATION, "Began the controlled shutdown of broker ", "Began {} controlled shutdowns: ", says_why=True
)
_DIRECTORIES = _Kind(
    _REPLICATION, "Took log directories out of service: ", "Lost directories of {} brokers: ", says_why=True
)
_REGISTERED = _Kind(_CLUSTER, "Registered broker ", "Registered {} brokers: ", says_why=True)
_UNREGISTERED = _Kind(_CLUSTER, "Unregistered broker ", "Unregistered {} brokers: ")
_CONFIG_SET = _Kind(_CONFIGURATION, "Set configuration ", "Set {} configurations: ")
_CONFIG_REMOVED = _Kind(_CONFIGURATION, "Removed configuration ", "Removed {} configurations: ")
_QUOTA_SET = _Kind(_QUOTAS, "Set quota ", "Set {} quotas: ")
_QUOTA_REMOVED = _Kind(_QUOTAS, "Removed quota ", "Removed {} quotas: ")
_SCRAM_CREATED = _Kind(_SCRAM_PART, "Created SCRAM credential ", "Created {} SCRAM credentials: ")
_SCRAM_CHANGED = _Kind(_SCRAM_PART, "Changed SCRAM credential ", "Changed {} SCRAM credentials: ")
_SCRAM_REMOVED = _Kind(_SCRAM_PART, "Removed SCRAM credential ", "Removed {} SCRAM credentials: ")
_ACL_CREATED = _Kind(_ACLS, "Created ACL ", "Created {} ACLs: ")
_ACL_REMOVED = _Kind(_ACLS, "Removed ACL ", "Removed {} ACLs: ")
_TOKEN_CREATED = _Kind(_TOKENS, "Created delegation token ", "Created {} delegation tokens: ")
_TOKEN_CHANGED = _Kind(_TOKENS, "Changed the expiry of delegation token ", "Changed {} delegation tokens: ")
_TOKEN_REMOVED = _Kind(_TOKENS, "Removed delegation token ", "Removed {} delegation tokens: ")
_FEATURE = _Kind(_FEATURES, "Set feature ", "Set {} features: ")

Change = tuple[_Kind, str]


class DecisionLines:
    """Writes the lines of the controller of node `node_id`."""

    def __init__(self, node_id: int, is_secret: IsSecret) -> None:
        self._node_id = node_id
        self._is_secret = is_secret

    def tell(self, decided: Decided) -> None:
        """The records of a decision are committed."""
        if not any(_Kind(part, "", "").logger.isEnabledFor(logging.INFO) for part in PARTS):
            return
        for logger, level, text in lines(decided, self._is_secret):
            logger.log(level, "[QuorumController id=%d] %s", self._node_id, text)

    def tell_kraft_version(self, level: int, requester: ChangeRequester | None) -> None:
        """The quorum has raised kraft.version, for which the controller has no record."""
        why = "" if requester is None else f", as {cut(str(requester))} asked"
        text = printable(f"{_FEATURE.one}kraft.version from 0 to {level}{why}.")
        _FEATURE.logger.info("[QuorumController id=%d] %s", self._node_id, text)


def lines(decided: Decided, is_secret: IsSecret) -> Iterator[Line]:
    """The lines of a decision, in the order of its records; changed partitions come last."""
    told: dict[_Kind, list[str]] = {}
    for record in decided.records:
        for kind, item in _CHANGES.get(type(record), _nothing)(record, decided, is_secret):
            told.setdefault(kind, []).append(item)
    for kind, item in _partition_changes(decided):
        told.setdefault(kind, []).append(item)
    why = _why(decided)
    for kind, items in told.items():
        few = [cut(item) for item in items]
        what = kind.one if len(items) == 1 else kind.many.format(f"{len(items):,}")
        text = f"{what}{listed(few, MOST_NAMES)}{'' if kind.says_why else why}."
        yield Line(kind.logger, kind.level, printable(text))


def _why(decided: Decided) -> str:
    """The reason for the decision."""
    event = decided.event
    if decided.requester is not None:
        return f", as {cut(str(decided.requester))} asked"
    if isinstance(event, (events.AlterPartition, events.AssignReplicasToDirs)):
        return f", as broker {event.broker_id} asked"
    if isinstance(event, events.CreateTopics):
        return " because it is in use"  # by a client, or by a coordinator
    if isinstance(event, events.RegisterBroker):
        return f" because broker {event.broker_id} has started again"
    if isinstance(event, events.RemoveExpiredTokens):
        return " because its time is over"
    if isinstance(event, events.BalanceLeaders):
        return " because the preferred leaders can lead"
    if isinstance(event, events.ElectUncleanLeaders):
        return " because no replica in sync is left"
    for record in decided.records:
        if isinstance(record, m.BrokerRegistrationChangeRecord):
            return f" because broker {record.broker_id} {_what_became(record)}"
    if isinstance(event, events.BrokerHeartbeat):
        return f" because broker {event.broker_id} shuts down"
    return ""


def _what_became(record: m.BrokerRegistrationChangeRecord) -> str:
    if record.fenced:
        return "was fenced" if record.fenced > 0 else "was unfenced"
    return "shuts down" if record.in_controlled_shutdown else "has lost log directories"


# -- partitions ------------------------------------------------------------------------------------------


def _partition_changes(decided: Decided) -> Iterator[Change]:
    """The differences of each changed partition; several records of one partition count as one change."""
    changed = {
        (record.topic_id, record.partition_id)
        for record in decided.records
        if isinstance(record, m.PartitionChangeRecord)
    }
    for topic_id, index in sorted(changed):
        before, after = decided.before.topic_by_id(topic_id), decided.after.topic_by_id(topic_id)
        if before is not None and after is not None:
            yield from _differences(
                f"{after.name}-{index}", before.partitions[index], after.partitions[index]
            )


def _differences(name: str, old: PartitionRegistration, new: PartitionRegistration) -> Iterator[Change]:
    if new.leader != old.leader:
        recovers = new.leader_recovery_state != old.leader_recovery_state == LeaderRecoveryState.RECOVERED
        # The last known leader lacks no record that another replica has, so its return is not unclean.
        is_unclean = recovers and new.leader not in old.last_known_elr
        from_to = f"{name} from {_leader(old)} to {_leader(new)} (leader epoch {new.leader_epoch})"
        yield _UNCLEAN if is_unclean else _LEADER, from_to
    # The line of a finished reassignment shows the replicas that it removed; this one shows them as staying.
    staying = [replica for replica in old.isr if replica in new.isr or replica not in new.replicas]
    coming = [replica for replica in new.isr if replica not in old.isr]
    from_to = f"{name} from {_ids(old.isr)} to {_ids([*staying, *coming])}"
    if len(staying) < len(old.isr):
        yield _SHRUNK, from_to
    elif coming:
        yield _EXPANDED, from_to
    was_moving, is_moving = old.adding or old.removing, new.adding or new.removing
    if is_moving:
        if (new.adding, new.removing) != (old.adding, old.removing):
            there = [replica for replica in old.replicas if replica not in old.adding]
            wanted = [replica for replica in new.replicas if replica not in new.removing]
            yield _REASSIGNING, f"{name} from {_ids(there)} to {_ids(wanted)}"
    elif was_moving and {*new.replicas} != {*old.replicas} - {*old.removing}:
        yield _NOT_REASSIGNED, f"{name} back to {_ids(new.replicas)}"
    elif was_moving or new.replicas != old.replicas:
        yield _REASSIGNED, f"{name} to {_ids(new.replicas)}"


def _leader(partition: PartitionRegistration) -> str:
    return "none" if partition.leader == NO_LEADER else str(partition.leader)


def _ids(brokers: Iterable[int]) -> str:
    """In brackets, because a single id would be taken for a count."""
    return f"[{','.join(map(str, brokers))}]"


def _topic_created(record: m.TopicRecord, decided: Decided, _: IsSecret) -> Iterator[Change]:
    partitions = decided.after.topics[record.name].partitions
    factor = len(partitions[0].replicas) if partitions else 0
    yield _TOPIC_CREATED, f"{record.name} (partitions: {len(partitions)}, replication factor: {factor})"


def _topic_deleted(record: m.RemoveTopicRecord, decided: Decided, _: IsSecret) -> Iterator[Change]:
    yield _TOPIC_DELETED, decided.before.topic_names[record.topic_id]


def _partition_created(record: m.PartitionRecord, decided: Decided, _: IsSecret) -> Iterator[Change]:
    """A line for partitions added to a topic; those of a new topic are in the topic's line."""
    topic = decided.before.topic_names.get(record.topic_id)
    if topic is not None:
        yield _PARTITION_CREATED, f"{topic}-{record.partition_id} on {_ids(record.replicas)}"


# -- brokers ---------------------------------------------------------------------------------------------


def _broker_changed(
    record: m.BrokerRegistrationChangeRecord, decided: Decided, _: IsSecret
) -> Iterator[Change]:
    broker_id = record.broker_id
    if record.fenced > 0:
        yield _FENCED, f"{broker_id} because {_why_fenced(decided.event)}"
    elif record.fenced < 0:
        yield _UNFENCED, f"{broker_id} because it has caught up with its registration"
    if record.in_controlled_shutdown:
        yield _SHUTTING_DOWN, str(broker_id)
    if record.log_dirs:
        known = len(decided.before.brokers[broker_id].directories)
        yield _DIRECTORIES, f"{known - len(record.log_dirs)} of the {known} of broker {broker_id} have failed"


def _why_fenced(event: object) -> str:
    if isinstance(event, events.ExpireSessions):
        return "its session has timed out"
    if isinstance(event, events.BrokerProbed):
        return "its process has ended: it is not connected, and its listeners refuse connections"
    is_shutdown = isinstance(event, events.BrokerHeartbeat) and event.want_shutdown
    return "it shuts down" if is_shutdown else "it has asked for that"


def _broker_registered(record: m.RegisterBrokerRecord, _decided: Decided, _: IsSecret) -> Iterator[Change]:
    addresses = ", ".join(f"{point.name}://{point.host}:{point.port}" for point in record.end_points)
    yield _REGISTERED, f"{record.broker_id} at {addresses} (broker epoch {record.broker_epoch})"


def _broker_unregistered(
    record: m.UnregisterBrokerRecord, _decided: Decided, _: IsSecret
) -> Iterator[Change]:
    yield _UNREGISTERED, str(record.broker_id)


# -- configurations, quotas, features --------------------------------------------------------------------

_RESOURCES = {
    ResourceType.TOPIC: "topic",
    ResourceType.BROKER: "broker",
    ResourceType.GROUP: "group",
    ResourceType.CLIENT_METRICS: "client metrics",
}


def _config_changed(record: m.ConfigRecord, decided: Decided, is_secret: IsSecret) -> Iterator[Change]:
    kind = _RESOURCES.get(ResourceType(record.resource_type), "resource")
    is_default = record.resource_type == ResourceType.BROKER and not record.resource_name
    key = f"{record.name} of {'all brokers' if is_default else f'{kind} {record.resource_name}'}"
    if record.value is None:
        # A removed key of a broker may not have been set: its removal makes the broker load its files again.
        if record.name in decided.before.config(record.resource_type, record.resource_name):
            yield _CONFIG_REMOVED, key
    else:
        value = HIDDEN if is_secret(record.resource_type, record.name) else record.value
        yield _CONFIG_SET, f"{key} to {value}"


def _quota_changed(record: m.ClientQuotaRecord, _decided: Decided, _: IsSecret) -> Iterator[Change]:
    entity = ", ".join(
        f"the default {part.entity_type}"
        if part.entity_name is None
        else f"{part.entity_type} {part.entity_name}"
        for part in record.entity
    )
    if record.remove:
        yield _QUOTA_REMOVED, f"{record.key} of {entity}"
    else:
        yield _QUOTA_SET, f"{record.key} of {entity} to {record.value:.15g}"


def _feature_changed(record: m.FeatureLevelRecord, decided: Decided, _: IsSecret) -> Iterator[Change]:
    before = decided.before.features.get(record.name, 0)
    yield _FEATURE, f"{record.name} from {before} to {record.feature_level}"


# -- security --------------------------------------------------------------------------------------------


def _scram_set(record: m.UserScramCredentialRecord, decided: Decided, _: IsSecret) -> Iterator[Change]:
    is_known = (record.name, record.mechanism) in decided.before.scram_credentials
    item = f"{_SCRAM[record.mechanism]} of user {record.name}"
    yield _SCRAM_CHANGED if is_known else _SCRAM_CREATED, item


def _scram_removed(
    record: m.RemoveUserScramCredentialRecord, _decided: Decided, _: IsSecret
) -> Iterator[Change]:
    yield _SCRAM_REMOVED, f"{_SCRAM[record.mechanism]} of user {record.name}"


def _acl_created(record: m.AccessControlEntryRecord, _decided: Decided, _: IsSecret) -> Iterator[Change]:
    yield _ACL_CREATED, _acl(record)


def _acl_removed(record: m.RemoveAccessControlEntryRecord, decided: Decided, _: IsSecret) -> Iterator[Change]:
    yield _ACL_REMOVED, _acl(decided.before.acls[record.id])


def _acl(record: m.AccessControlEntryRecord) -> str:
    acl = acl_of(record)
    resource = f"{AclResourceType(acl.resource_type).name}:{PatternType(acl.pattern_type).name}:{acl.name}"
    may = f"{AclPermission(acl.permission).name} {AclOperation(acl.operation).name}"
    return f"{may} on {resource} of {acl.principal} on host {acl.host}"


def _token_set(record: m.DelegationTokenRecord, decided: Decided, _: IsSecret) -> Iterator[Change]:
    is_known = record.token_id in decided.before.delegation_tokens
    item = f"{record.token_id} of {record.owner}"
    yield _TOKEN_CHANGED if is_known else _TOKEN_CREATED, item


def _token_removed(record: m.RemoveDelegationTokenRecord, _decided: Decided, _: IsSecret) -> Iterator[Change]:
    yield _TOKEN_REMOVED, record.token_id


def _nothing(_record: object, _decided: Decided, _: IsSecret) -> Iterator[Change]:
    """For records that do not concern operators, such as a block of producer ids."""
    return iter(())


#: The function that describes each type of record.
_CHANGES: dict[type, Callable[[Any, Decided, IsSecret], Iterator[Change]]] = {
    m.TopicRecord: _topic_created,
    m.RemoveTopicRecord: _topic_deleted,
    m.PartitionRecord: _partition_created,
    m.BrokerRegistrationChangeRecord: _broker_changed,
    m.RegisterBrokerRecord: _broker_registered,
    m.UnregisterBrokerRecord: _broker_unregistered,
    m.ConfigRecord: _config_changed,
    m.ClientQuotaRecord: _quota_changed,
    m.FeatureLevelRecord: _feature_changed,
    m.UserScramCredentialRecord: _scram_set,
    m.RemoveUserScramCredentialRecord: _scram_removed,
    m.AccessControlEntryRecord: _acl_created,
    m.RemoveAccessControlEntryRecord: _acl_removed,
    m.DelegationTokenRecord: _token_set,
    m.RemoveDelegationTokenRecord: _token_removed,
}
