"""The cluster's metadata as one immutable value, rebuilt by replaying KRaft records.

Every part of a node reads the `ClusterImage`: brokers, topics, configs, features. It is never changed:
`replay` returns a new one and copies each changed table once per call. So adding one topic to thousands costs
a few dictionary copies, and loading a whole log costs one of each table. Of the ACLs, which may be a hundred
thousand, only the part around a change is copied. The image has the data of every record type of
metadata.version 30 (Kafka 4.3); ACLs, SCRAM credentials and delegation tokens are kept as records.

Left out on purpose: metadata transactions (`loader.py` decides which batches an image may show), and the
ZooKeeper migration state, which in Kafka 4 can only be "none".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, Optional
from zlib import crc32

from pykafka_broker.authorization.index import Acl
from pykafka_broker.machine.shared_map import Draft, SharedMap
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.system.named_tuple import NamedTuple

#: `PartitionRegistration.leader` of a partition without a leader.
NO_LEADER = -1
#: `PartitionChangeRecord.leader` of a change that keeps the leader and its epoch.
NO_LEADER_CHANGE = -2
#: The feature whose level decides which record versions are written.
METADATA_VERSION = "metadata.version"
#: 3.3-IV3: the level of a log without a FeatureLevelRecord, and the oldest that Kafka 4 knows.
MINIMUM_METADATA_VERSION = 7


class ResourceType(IntEnum):
    """The type of a resource with configs; the numbers are those of the protocol and of ConfigRecord."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class LeaderRecoveryState(IntEnum):
    """Whether a leader still has to recover from an unclean election, which may lose records (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


#: The entity of client quotas: (type, name) sorted by type; the name None is the default of its type.
QuotaEntity = tuple[tuple[str, Optional[str]], ...]
#: The resources of ACLs: their type, their name, and the pattern type.
AclPattern = tuple[int, str, int]


def _place_of_id(acl_id: bytes) -> int:
    return crc32(acl_id)


def _place_of_acl(acl: Acl) -> int:
    return crc32(f"{acl.name} {acl.principal} {acl.host} {acl.operation} {acl.permission}".encode())


def _place_of_pattern(pattern: AclPattern) -> int:
    return crc32(pattern[1].encode())


AclsById = SharedMap[bytes, m.AccessControlEntryRecord]
NO_ACLS: AclsById = SharedMap(_place_of_id)
_NO_ACL_IDS: SharedMap[Acl, bytes] = SharedMap(_place_of_acl)
_NO_PATTERNS: SharedMap[AclPattern, AclsById] = SharedMap(_place_of_pattern)


class CorruptMetadataError(Exception):
    """The metadata log is unreadable or contradictory, or this version cannot work with it."""


class RegisteredEndpoint(NamedTuple):
    """The address of a listener; `security_protocol` is Kafka's number (0 PLAINTEXT, 1 SSL, 2, 3 SASL)."""

    host: str
    port: int
    security_protocol: int = 0


class FeatureRange(NamedTuple):
    """The levels of a feature that a node supports."""

    min_level: int
    max_level: int


class BrokerRegistration(NamedTuple):
    """A registered broker; `epoch` is that of its registration, whose record is at `record_offset`."""

    broker_id: int
    epoch: int
    incarnation_id: bytes
    listeners: Mapping[str, RegisteredEndpoint]
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    directories: tuple[bytes, ...] = ()
    features: Mapping[str, FeatureRange] = {}
    cordoned_directories: tuple[bytes, ...] | None = None
    record_offset: int = -1

    @property
    def active(self) -> bool:
        """Whether it may lead partitions and get new replicas."""
        return not (self.fenced or self.in_controlled_shutdown)


class ControllerRegistration(NamedTuple):
    """A controller of the quorum, as it announced itself (KIP-919)."""

    controller_id: int
    incarnation_id: bytes
    listeners: Mapping[str, RegisteredEndpoint]
    features: Mapping[str, FeatureRange]


class PartitionRegistration(NamedTuple):
    """The replicas and the leader of one partition.

    `replicas` are in order of preference; `directories` has their directories in the same order.
    """

    partition_id: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    directories: tuple[bytes, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = LeaderRecoveryState.RECOVERED

    def to_record(self, topic_id: bytes) -> m.PartitionRecord:
        """The record that creates this partition as it is now."""
        return m.PartitionRecord(
            partition_id=self.partition_id,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing),
            adding_replicas=list(self.adding),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories),
            eligible_leader_replicas=list(self.elr) or None,
            last_known_elr=list(self.last_known_elr) or None,
        )


class TopicImage(NamedTuple):
    """A topic and its partitions, which are numbered from 0 without gaps."""

    name: str
    topic_id: bytes
    partitions: Mapping[int, PartitionRegistration]


class ClusterImage(NamedTuple):
    """All metadata up to and including the record at `offset`, written in leader epoch `epoch`."""

    cluster_id: str = ""
    offset: int = -1
    epoch: int = 0
    brokers: Mapping[int, BrokerRegistration] = {}
    topics: Mapping[str, TopicImage] = {}
    topic_names: Mapping[bytes, str] = {}
    #: Names by their form with "_" for ".": topics with the same form would share their metrics in Kafka.
    colliding_topics: Mapping[str, tuple[str, ...]] = {}
    configs: Mapping[tuple[int, str], Mapping[str, str]] = {}
    features: Mapping[str, int] = {}
    next_producer_id: int = 0
    controllers: Mapping[int, ControllerRegistration] = {}
    acls: AclsById = NO_ACLS
    #: The ids by ACL, and the ACLs by pattern.
    acl_ids: SharedMap[Acl, bytes] = _NO_ACL_IDS
    acls_of_patterns: SharedMap[AclPattern, AclsById] = _NO_PATTERNS
    scram_credentials: Mapping[tuple[str, int], m.UserScramCredentialRecord] = {}
    client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = {}
    delegation_tokens: Mapping[str, m.DelegationTokenRecord] = {}

    def __repr__(self) -> str:
        """The offset and the sizes of the tables; their content may be megabytes, and has secrets."""
        counts = (
            f"{name}={len(value) if isinstance(value, Mapping) else repr(value)}"
            for name, value in zip(self._fields, self, strict=True)
        )
        return f"ClusterImage({', '.join(counts)})"

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        """The topic with this id, or None; a topic that was deleted and created again has a new id."""
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def partition_count(self, topic_id: bytes) -> int:
        """The number of partitions of the topic with this id; 0 if there is none."""
        topic = self.topic_by_id(topic_id)
        return 0 if topic is None else len(topic.partitions)

    def partition(self, topic: str, partition: int) -> PartitionRegistration | None:
        """The partition, or None if the partition or its topic is unknown."""
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(partition)

    def leader_of(self, topic: str, partition: int) -> int:
        """The broker that leads a partition, fenced or not; NO_LEADER if none does, or it is unknown."""
        found = self.partition(topic, partition)
        return NO_LEADER if found is None else found.leader

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """The dynamic values set on one resource; the name "" of BROKER is the default of all brokers."""
        return self.configs.get((resource_type, name), {})

    def configs_of(self, resource_type: int) -> dict[str, Mapping[str, str]]:
        """The dynamic values set on resources of one type, by name."""
        return {name: values for (kind, name), values in self.configs.items() if kind == resource_type}

    @property
    def metadata_version(self) -> int:
        """The finalized level of `metadata.version`."""
        return self.features.get(METADATA_VERSION, MINIMUM_METADATA_VERSION)


def unify_collision_chars(name: str) -> str:
    """The name with "_" for "."; topics whose names become equal cannot both exist."""
    return name.replace(".", "_")


def replay(image: ClusterImage, records: Iterable[object], *, offset: int, epoch: int) -> ClusterImage:
    """`image` with `records` applied; the first record is at `offset`."""
    builder = ImageBuilder(image)
    for position, record in enumerate(records, offset):
        builder.apply(record, position)
    return builder.build(epoch)


class ImageBuilder:
    """Applies records to build the next image; earlier images stay unchanged.

    Each table is copied when the first record touches it. `build` gives the copies away, so that the builder
    can be used again: a loader calls `build` once for thousands of batches.
    """

    __slots__ = ("_drafts", "_image", "_offset", "_partitions", "_patterns", "_scalars", "_tables")

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._offset = image.offset
        self._reset()

    def _reset(self) -> None:
        self._tables: dict[str, dict[Any, Any]] = {}
        self._drafts: dict[str, Draft[Any, Any]] = {}
        #: The drafts of the ACLs of changed patterns.
        self._patterns: dict[AclPattern, Draft[bytes, m.AccessControlEntryRecord]] = {}
        self._scalars: dict[str, Any] = {}
        #: Partition tables that this builder has copied, by topic id; only these may be written to.
        self._partitions: dict[bytes, dict[int, PartitionRegistration]] = {}

    def apply(self, record: object, offset: int) -> None:
        """Replay the record at `offset`."""
        try:
            apply = _APPLY[type(record)]
        except KeyError:
            raise CorruptMetadataError(f"no replay for {type(record).__name__}") from None
        apply(self, record, offset)
        self._offset = offset

    def skip_to(self, offset: int) -> None:
        """Note that the records up to `offset` are not metadata, such as control records."""
        self._offset = offset

    def build(self, epoch: int) -> ClusterImage:
        """The image of everything applied so far."""
        for pattern, acls in self._patterns.items():
            if acls:
                self._draft("acls_of_patterns")[pattern] = acls.finished()
            else:
                self._draft("acls_of_patterns").pop(pattern, None)
        drafts = {name: draft.finished() for name, draft in self._drafts.items()}
        changes: dict[str, Any] = {"offset": self._offset, "epoch": epoch, **self._tables, **self._scalars}
        changes |= drafts
        image = self._image._replace(**changes)
        self._image = image
        self._reset()
        return image

    # -- the tables ---------------------------------------------------------------------------------

    def _peek(self, name: str) -> Mapping[Any, Any]:
        table: Mapping[Any, Any] | None = self._tables.get(name)
        return getattr(self._image, name) if table is None else table

    def _table(self, name: str) -> dict[Any, Any]:
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = dict(getattr(self._image, name))
        return table

    def _draft(self, name: str) -> Draft[Any, Any]:
        draft = self._drafts.get(name)
        if draft is None:
            draft = self._drafts[name] = getattr(self._image, name).draft()
        return draft

    def _topic(self, topic_id: bytes) -> TopicImage:
        name = self._peek("topic_names").get(topic_id)
        if name is None:
            raise CorruptMetadataError(f"no topic has the id {topic_id.hex()}")
        topic: TopicImage = self._peek("topics")[name]
        return topic

    def _open_partitions(self, topic_id: bytes) -> dict[int, PartitionRegistration]:
        partitions = self._partitions.get(topic_id)
        if partitions is None:
            topic = self._topic(topic_id)
            partitions = self._partitions[topic_id] = dict(topic.partitions)
            self._table("topics")[topic.name] = topic._replace(partitions=partitions)
        return partitions

    # -- topics -------------------------------------------------------------------------------------

    def _add_topic(self, record: m.TopicRecord, _offset: int) -> None:
        name, topic_id = record.name, record.topic_id
        if name in self._peek("topics"):
            raise CorruptMetadataError(f"topic {name} is created a second time")
        partitions = self._partitions[topic_id] = {}
        self._table("topics")[name] = TopicImage(name, topic_id, partitions)
        self._table("topic_names")[topic_id] = name
        if "." in name or "_" in name:
            colliding = self._table("colliding_topics")
            unified = unify_collision_chars(name)
            colliding[unified] = (*colliding.get(unified, ()), name)

    def _remove_topic(self, record: m.RemoveTopicRecord, _offset: int) -> None:
        name = self._topic(record.topic_id).name
        del self._table("topics")[name]
        del self._table("topic_names")[record.topic_id]
        self._partitions.pop(record.topic_id, None)
        if (ResourceType.TOPIC, name) in self._peek("configs"):
            del self._table("configs")[ResourceType.TOPIC, name]
        if "." in name or "_" in name:
            colliding = self._table("colliding_topics")
            unified = unify_collision_chars(name)
            left = tuple(other for other in colliding[unified] if other != name)
            if left:
                colliding[unified] = left
            else:
                del colliding[unified]

    def _put_partition(self, record: m.PartitionRecord, _offset: int) -> None:
        self._open_partitions(record.topic_id)[record.partition_id] = PartitionRegistration(
            record.partition_id,
            tuple(record.replicas),
            tuple(record.isr),
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            tuple(record.removing_replicas),
            tuple(record.adding_replicas),
            tuple(record.directories),
            tuple(record.eligible_leader_replicas or ()),
            tuple(record.last_known_elr or ()),
            record.leader_recovery_state,
        )

    def _change_partition(self, record: m.PartitionChangeRecord, _offset: int) -> None:
        partitions = self._open_partitions(record.topic_id)
        old = partitions.get(record.partition_id)
        if old is None:
            raise CorruptMetadataError(f"no partition {record.partition_id} in {record.topic_id.hex()}")
        partitions[record.partition_id] = changed(old, record)

    def _clear_elr(self, record: m.ClearElrRecord, _offset: int) -> None:
        topics: Mapping[str, TopicImage] = self._peek("topics")
        if record.topic_name and record.topic_name not in topics:
            raise CorruptMetadataError(f"no topic is named {record.topic_name}")
        chosen = [topics[record.topic_name]] if record.topic_name else list(topics.values())
        for topic in chosen:
            for number, partition in topic.partitions.items():
                if partition.elr or partition.last_known_elr:
                    self._open_partitions(topic.topic_id)[number] = partition._replace(
                        elr=(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1
                    )

    # -- configs, features, producer ids ------------------------------------------------------------

    def _set_config(self, record: m.ConfigRecord, _offset: int) -> None:
        key = (record.resource_type, record.resource_name)
        table = self._table("configs")
        values = dict(table.get(key, {}))
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value
        if values:
            table[key] = values
        else:
            table.pop(key, None)

    def _set_feature(self, record: m.FeatureLevelRecord, _offset: int) -> None:
        if record.feature_level == 0 and record.name != METADATA_VERSION:
            self._table("features").pop(record.name, None)
        else:
            self._table("features")[record.name] = record.feature_level

    def _set_producer_ids(self, record: m.ProducerIdsRecord, _offset: int) -> None:
        self._scalars["next_producer_id"] = record.next_producer_id

    # -- nodes --------------------------------------------------------------------------------------

    def _register_broker(self, record: m.RegisterBrokerRecord, offset: int) -> None:
        cordoned = record.cordoned_log_dirs
        self._table("brokers")[record.broker_id] = BrokerRegistration(
            record.broker_id,
            record.broker_epoch,
            record.incarnation_id,
            _endpoints(record.end_points),
            record.rack,
            record.fenced,
            record.in_controlled_shutdown,
            tuple(record.log_dirs),
            _ranges(record.features),
            None if cordoned is None else tuple(cordoned),
            offset,
        )

    def _broker(self, broker_id: int, epoch: int) -> BrokerRegistration:
        broker: BrokerRegistration | None = self._peek("brokers").get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise CorruptMetadataError(f"broker {broker_id} is not registered with epoch {epoch}")
        return broker

    def _unregister_broker(self, record: m.UnregisterBrokerRecord, _offset: int) -> None:
        self._broker(record.broker_id, record.broker_epoch)
        del self._table("brokers")[record.broker_id]

    def _fence_broker(self, record: m.FenceBrokerRecord, _offset: int) -> None:
        self._table("brokers")[record.id] = self._broker(record.id, record.epoch)._replace(fenced=True)

    def _unfence_broker(self, record: m.UnfenceBrokerRecord, _offset: int) -> None:
        self._table("brokers")[record.id] = self._broker(record.id, record.epoch)._replace(fenced=False)

    def _change_broker(self, record: m.BrokerRegistrationChangeRecord, _offset: int) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        if record.fenced:
            broker = broker._replace(fenced=record.fenced > 0)
        if record.in_controlled_shutdown:
            broker = broker._replace(in_controlled_shutdown=True)
        if record.log_dirs:
            broker = broker._replace(directories=tuple(record.log_dirs))
        if record.cordoned_log_dirs is not None:
            broker = broker._replace(cordoned_directories=tuple(record.cordoned_log_dirs))
        self._table("brokers")[record.broker_id] = broker

    def _register_controller(self, record: m.RegisterControllerRecord, _offset: int) -> None:
        self._table("controllers")[record.controller_id] = ControllerRegistration(
            record.controller_id,
            record.incarnation_id,
            _endpoints(record.end_points),
            _ranges(record.features),
        )

    # -- security, quotas: carried, acted on elsewhere ----------------------------------------------

    def _put_acl(self, record: m.AccessControlEntryRecord, _offset: int) -> None:
        replaced = self._draft("acls").get(record.id)
        if replaced is not None:
            self._forget_acl(replaced)
        acl = acl_of(record)
        self._draft("acls")[record.id] = record
        self._draft("acl_ids")[acl] = record.id
        self._acls_of(acl)[record.id] = record

    def _remove_acl(self, record: m.RemoveAccessControlEntryRecord, _offset: int) -> None:
        removed = self._draft("acls").pop(record.id, None)
        if removed is None:
            raise CorruptMetadataError(f"no ACL has the id {record.id.hex()}")
        self._forget_acl(removed)

    def _forget_acl(self, record: m.AccessControlEntryRecord) -> None:
        acl = acl_of(record)
        if self._draft("acl_ids").get(acl) == record.id:
            del self._draft("acl_ids")[acl]
        del self._acls_of(acl)[record.id]

    def _acls_of(self, acl: Acl) -> Draft[bytes, m.AccessControlEntryRecord]:
        pattern = pattern_of(acl)
        acls = self._patterns.get(pattern)
        if acls is None:
            acls = self._patterns[pattern] = self._image.acls_of_patterns.get(pattern, NO_ACLS).draft()
        return acls

    def _put_scram(self, record: m.UserScramCredentialRecord, _offset: int) -> None:
        self._table("scram_credentials")[record.name, record.mechanism] = record

    def _remove_scram(self, record: m.RemoveUserScramCredentialRecord, _offset: int) -> None:
        self._table("scram_credentials").pop((record.name, record.mechanism), None)

    def _set_quota(self, record: m.ClientQuotaRecord, _offset: int) -> None:
        entity = tuple(sorted((part.entity_type, part.entity_name) for part in record.entity))
        table = self._table("client_quotas")
        values = dict(table.get(entity, {}))
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if values:
            table[entity] = values
        else:
            table.pop(entity, None)

    def _put_token(self, record: m.DelegationTokenRecord, _offset: int) -> None:
        self._table("delegation_tokens")[record.token_id] = record

    def _remove_token(self, record: m.RemoveDelegationTokenRecord, _offset: int) -> None:
        self._table("delegation_tokens").pop(record.token_id, None)

    def _nothing(self, record: object, _offset: int) -> None:
        """For records that do not change the image."""


def changed(partition: PartitionRegistration, record: m.PartitionChangeRecord) -> PartitionRegistration:
    """`partition` after `record`.

    The partition epoch always grows. The leader epoch grows if the record has a leader, even the old one: so
    a controller fences a leader that works on outdated metadata.
    """
    changes: dict[str, Any] = {"partition_epoch": partition.partition_epoch + 1}
    if record.leader != NO_LEADER_CHANGE:
        changes["leader"] = record.leader
        changes["leader_epoch"] = partition.leader_epoch + 1
    for field, values in (
        ("isr", record.isr),
        ("replicas", record.replicas),
        ("removing", record.removing_replicas),
        ("adding", record.adding_replicas),
        ("directories", record.directories),
        ("elr", record.eligible_leader_replicas),
        ("last_known_elr", record.last_known_elr),
    ):
        if values is not None:
            changes[field] = tuple(values)
    if record.leader_recovery_state != -1:
        changes["leader_recovery_state"] = record.leader_recovery_state
    return partition._replace(**changes)


def acl_of(record: m.AccessControlEntryRecord) -> Acl:
    """The ACL that a record has created."""
    return Acl(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def acl_record(acl: Acl, acl_id: bytes) -> m.AccessControlEntryRecord:
    """The record that creates an ACL."""
    return m.AccessControlEntryRecord(
        id=acl_id,
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def pattern_of(acl: Acl) -> AclPattern:
    """The resource pattern of an ACL."""
    return acl.resource_type, acl.name, acl.pattern_type


def _endpoints(end_points: Iterable[Any]) -> dict[str, RegisteredEndpoint]:
    return {
        point.name: RegisteredEndpoint(point.host, point.port, point.security_protocol)
        for point in end_points
    }


def _ranges(features: Iterable[Any]) -> dict[str, FeatureRange]:
    return {f.name: FeatureRange(f.min_supported_version, f.max_supported_version) for f in features}


#: The change that each record type makes to an image.
_APPLY: dict[type, Callable[[ImageBuilder, Any, int], None]] = {
    m.RegisterBrokerRecord: ImageBuilder._register_broker,
    m.UnregisterBrokerRecord: ImageBuilder._unregister_broker,
    m.TopicRecord: ImageBuilder._add_topic,
    m.PartitionRecord: ImageBuilder._put_partition,
    m.ConfigRecord: ImageBuilder._set_config,
    m.PartitionChangeRecord: ImageBuilder._change_partition,
    m.FenceBrokerRecord: ImageBuilder._fence_broker,
    m.UnfenceBrokerRecord: ImageBuilder._unfence_broker,
    m.RemoveTopicRecord: ImageBuilder._remove_topic,
    m.DelegationTokenRecord: ImageBuilder._put_token,
    m.UserScramCredentialRecord: ImageBuilder._put_scram,
    m.FeatureLevelRecord: ImageBuilder._set_feature,
    m.ClientQuotaRecord: ImageBuilder._set_quota,
    m.ProducerIdsRecord: ImageBuilder._set_producer_ids,
    m.BrokerRegistrationChangeRecord: ImageBuilder._change_broker,
    m.AccessControlEntryRecord: ImageBuilder._put_acl,
    m.RemoveAccessControlEntryRecord: ImageBuilder._remove_acl,
    m.NoOpRecord: ImageBuilder._nothing,
    m.ZkMigrationStateRecord: ImageBuilder._nothing,
    m.RemoveUserScramCredentialRecord: ImageBuilder._remove_scram,
    m.BeginTransactionRecord: ImageBuilder._nothing,
    m.EndTransactionRecord: ImageBuilder._nothing,
    m.AbortTransactionRecord: ImageBuilder._nothing,
    m.RemoveDelegationTokenRecord: ImageBuilder._remove_token,
    m.RegisterControllerRecord: ImageBuilder._register_controller,
    m.ClearElrRecord: ImageBuilder._clear_elr,
}
