"""The cluster's metadata, as the controller writes it to `__cluster_metadata` (KRaft).

A record is framed by a frame version, its type (`api_key`) and its version, all unsigned varints; see
`cluster/records.py`. The version written depends on the cluster's metadata.version. Later versions only add
fields.

RegisterBrokerRecord: v1 controlled shutdown, v2 ZooKeeper migration, v3 log directories, v4 cordoned ones.
PartitionRecord and PartitionChangeRecord: v1 directories, v2 eligible leader replicas.
BrokerRegistrationChangeRecord: v1 controlled shutdown, v2 log directories, v3 cordoned ones.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import (
    array,
    binary,
    boolean,
    f64,
    i8,
    i16,
    i32,
    i64,
    message,
    string,
    u16,
    uuid,
)


@message()
class BrokerEndpoint:
    name: str = string()
    host: str = string()
    port: int = u16()
    security_protocol: int = i16()


@message()
class BrokerFeature:
    name: str = string()
    min_supported_version: int = i16()
    max_supported_version: int = i16()


@message(api_key=0, versions="0-4", flexible="0+")
class RegisterBrokerRecord:
    broker_id: int = i32(entity="broker_id")
    is_migrating_zk_broker: bool = boolean("2+", default=False)
    incarnation_id: bytes = uuid()
    broker_epoch: int = i64()
    end_points: list[BrokerEndpoint] = array(BrokerEndpoint)
    features: list[BrokerFeature] = array(BrokerFeature)
    rack: str | None = string(nullable=True)
    fenced: bool = boolean(default=True)
    in_controlled_shutdown: bool = boolean("1+", default=False)
    log_dirs: list[bytes] = array(uuid(), "3+", tag=0, default=[])
    cordoned_log_dirs: list[bytes] | None = array(uuid(), "4+", nullable=True, tag=1, default=None)


@message(api_key=1, versions="0", flexible="0+")
class UnregisterBrokerRecord:
    broker_id: int = i32(entity="broker_id")
    broker_epoch: int = i64()


@message(api_key=2, versions="0", flexible="0+")
class TopicRecord:
    name: str = string(entity="topic_name")
    topic_id: bytes = uuid()


@message(api_key=3, versions="0-2", flexible="0+")
class PartitionRecord:
    partition_id: int = i32(default=-1)
    topic_id: bytes = uuid()
    replicas: list[int] = array(i32(entity="broker_id"))
    isr: list[int] = array(i32())
    removing_replicas: list[int] = array(i32(entity="broker_id"))
    adding_replicas: list[int] = array(i32(entity="broker_id"))
    leader: int = i32(default=-1, entity="broker_id")
    leader_recovery_state: int = i8(tag=0, default=0)
    leader_epoch: int = i32(default=-1)
    partition_epoch: int = i32(default=-1)
    directories: list[bytes] = array(uuid(), "1+", default=[])
    eligible_leader_replicas: list[int] | None = array(
        i32(entity="broker_id"), "2+", nullable=True, tag=1, default=None
    )
    last_known_elr: list[int] | None = array(
        i32(entity="broker_id"), "2+", nullable=True, tag=2, default=None
    )


@message(api_key=4, versions="0", flexible="0+")
class ConfigRecord:
    resource_type: int = i8()
    resource_name: str = string()
    name: str = string()
    #: None removes the setting.
    value: str | None = string(nullable=True, secret=True)


@message(api_key=5, versions="0-2", flexible="0+")
class PartitionChangeRecord:
    partition_id: int = i32(default=-1)
    topic_id: bytes = uuid()
    isr: list[int] | None = array(i32(entity="broker_id"), nullable=True, tag=0, default=None)
    #: -1 for no leader, -2 for no change.
    leader: int = i32(tag=1, default=-2, entity="broker_id")
    replicas: list[int] | None = array(i32(entity="broker_id"), nullable=True, tag=2, default=None)
    removing_replicas: list[int] | None = array(i32(entity="broker_id"), nullable=True, tag=3, default=None)
    adding_replicas: list[int] | None = array(i32(entity="broker_id"), nullable=True, tag=4, default=None)
    #: -1 for no change.
    leader_recovery_state: int = i8(tag=5, default=-1)
    directories: list[bytes] | None = array(uuid(), "1+", nullable=True, tag=8, default=None)
    eligible_leader_replicas: list[int] | None = array(
        i32(entity="broker_id"), "2+", nullable=True, tag=6, default=None
    )
    last_known_elr: list[int] | None = array(
        i32(entity="broker_id"), "2+", nullable=True, tag=7, default=None
    )


@message(api_key=7, versions="0", flexible="0+")
class FenceBrokerRecord:
    id: int = i32(entity="broker_id")
    epoch: int = i64()


@message(api_key=8, versions="0", flexible="0+")
class UnfenceBrokerRecord:
    id: int = i32(entity="broker_id")
    epoch: int = i64()


@message(api_key=9, versions="0", flexible="0+")
class RemoveTopicRecord:
    topic_id: bytes = uuid()


@message(api_key=10, versions="0", flexible="0+")
class DelegationTokenRecord:
    owner: str = string()
    requester: str = string()
    renewers: list[str] = array(string())
    issue_timestamp: int = i64()
    max_timestamp: int = i64()
    expiration_timestamp: int = i64()
    token_id: str = string()


@message(api_key=11, versions="0", flexible="0+")
class UserScramCredentialRecord:
    name: str = string()
    mechanism: int = i8()
    salt: bytes = binary()
    stored_key: bytes = binary(secret=True)
    server_key: bytes = binary(secret=True)
    iterations: int = i32()


@message(api_key=12, versions="0", flexible="0+")
class FeatureLevelRecord:
    name: str = string()
    feature_level: int = i16()


@message()
class EntityData:
    entity_type: str = string()
    entity_name: str | None = string(nullable=True)


@message(api_key=14, versions="0", flexible="0+")
class ClientQuotaRecord:
    entity: list[EntityData] = array(EntityData)
    key: str = string()
    value: float = f64()
    remove: bool = boolean()


@message(api_key=15, versions="0", flexible="0+")
class ProducerIdsRecord:
    broker_id: int = i32(entity="broker_id")
    broker_epoch: int = i64(default=-1)
    next_producer_id: int = i64()


@message(api_key=17, versions="0-3", flexible="0+")
class BrokerRegistrationChangeRecord:
    broker_id: int = i32(entity="broker_id")
    broker_epoch: int = i64()
    #: 1 fences, -1 unfences, 0 leaves it.
    fenced: int = i8(tag=0, default=0)
    #: 1 once the broker shuts down, 0 leaves it.
    in_controlled_shutdown: int = i8("1+", tag=1, default=0)
    log_dirs: list[bytes] = array(uuid(), "2+", tag=2, default=[])
    cordoned_log_dirs: list[bytes] | None = array(uuid(), "3+", nullable=True, tag=3, default=None)


@message(api_key=18, versions="0", flexible="0+")
class AccessControlEntryRecord:
    id: bytes = uuid()
    resource_type: int = i8()
    resource_name: str = string()
    pattern_type: int = i8()
    principal: str = string()
    host: str = string()
    operation: int = i8()
    permission_type: int = i8()


@message(api_key=19, versions="0", flexible="0+")
class RemoveAccessControlEntryRecord:
    id: bytes = uuid()


@message(api_key=20, versions="0", flexible="0+")
class NoOpRecord:
    pass


@message(api_key=21, versions="0", flexible="0+")
class ZkMigrationStateRecord:
    zk_migration_state: int = i8()


@message(api_key=22, versions="0", flexible="0+")
class RemoveUserScramCredentialRecord:
    name: str = string()
    mechanism: int = i8()


@message(api_key=23, versions="0", flexible="0+")
class BeginTransactionRecord:
    name: str | None = string(nullable=True, tag=0, default=None)


@message(api_key=24, versions="0", flexible="0+")
class EndTransactionRecord:
    pass


@message(api_key=25, versions="0", flexible="0+")
class AbortTransactionRecord:
    reason: str | None = string(nullable=True, tag=0, default=None)


@message(api_key=26, versions="0", flexible="0+")
class RemoveDelegationTokenRecord:
    token_id: str = string()


@message()
class ControllerEndpoint:
    name: str = string()
    host: str = string()
    port: int = u16()
    security_protocol: int = i16()


@message()
class ControllerFeature:
    name: str = string()
    min_supported_version: int = i16()
    max_supported_version: int = i16()


@message(api_key=27, versions="0", flexible="0+")
class RegisterControllerRecord:
    controller_id: int = i32()
    incarnation_id: bytes = uuid()
    zk_migration_ready: bool = boolean()
    end_points: list[ControllerEndpoint] = array(ControllerEndpoint)
    features: list[ControllerFeature] = array(ControllerFeature)


@message(api_key=28, versions="0", flexible="0+")
class ClearElrRecord:
    topic_name: str = string(entity="topic_name")
