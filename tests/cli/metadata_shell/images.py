"""A cluster with something in every directory of its metadata."""

from __future__ import annotations

from pykafka_broker.cluster.image import ClusterImage, replay
from pykafka_broker.cluster.records import encode_record
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.raft.snapshots import encode_snapshot

METADATA_VERSION = 30
TOPIC_ID = bytes(range(16))
#: 2026-01-02T03:04:05Z
TIMESTAMP_MS = 1_767_323_045_000

RECORDS: tuple[object, ...] = (
    m.FeatureLevelRecord(name="metadata.version", feature_level=METADATA_VERSION),
    m.FeatureLevelRecord(name="group.version", feature_level=1),
    m.RegisterBrokerRecord(
        broker_id=2,
        incarnation_id=bytes(15) + b"\x07",
        broker_epoch=5,
        end_points=[m.BrokerEndpoint(name="PLAINTEXT", host="b2", port=9092, security_protocol=0)],
        features=[
            m.BrokerFeature(name="group.version", min_supported_version=0, max_supported_version=1),
            m.BrokerFeature(name="alone.version", min_supported_version=1, max_supported_version=1),
        ],
        rack="r",
        fenced=False,
        in_controlled_shutdown=False,
        log_dirs=[bytes(15) + b"\x08"],
        cordoned_log_dirs=None,
    ),
    m.RegisterControllerRecord(
        controller_id=1,
        incarnation_id=bytes(15) + b"\x09",
        zk_migration_ready=False,
        end_points=[m.ControllerEndpoint(name="CONTROLLER", host="c1", port=9093, security_protocol=0)],
        features=[
            m.ControllerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30)
        ],
    ),
    m.TopicRecord(name="orders", topic_id=TOPIC_ID),
    m.PartitionRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        replicas=[2, 3],
        isr=[2],
        removing_replicas=[],
        adding_replicas=[3],
        leader=2,
        leader_recovery_state=0,
        leader_epoch=4,
        partition_epoch=6,
        directories=[bytes(15) + b"\x08", bytes(16)],
        eligible_leader_replicas=[3],
        last_known_elr=None,
    ),
    m.ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5000"),
    m.ConfigRecord(resource_type=4, resource_name="", name="log.cleaner.threads", value="2"),
    m.ConfigRecord(resource_type=4, resource_name="2", name="ssl.keystore.password", value="hunter2"),
    m.ClientQuotaRecord(
        entity=[
            m.EntityData(entity_type="user", entity_name="a(b)"),
            m.EntityData(entity_type="client-id", entity_name=None),
        ],
        key="producer_byte_rate",
        value=1024.0,
        remove=False,
    ),
    m.ProducerIdsRecord(broker_id=2, broker_epoch=5, next_producer_id=3000),
    m.AccessControlEntryRecord(
        id=bytes(15) + b"\x0a",
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    ),
    m.UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"salt", stored_key=b"stored", server_key=b"server", iterations=4096
    ),
    m.DelegationTokenRecord(
        owner="User:alice",
        requester="User:alice",
        renewers=["User:bob"],
        issue_timestamp=1,
        max_timestamp=2,
        expiration_timestamp=3,
        token_id="token",
    ),
)

#: The image of the records, as if they stood in a log from offset 0 on.
IMAGE = replay(ClusterImage("cluster"), RECORDS, offset=0, epoch=3)


def snapshot() -> bytes:
    """The records as the file of a snapshot."""
    values = [encode_record(record, METADATA_VERSION) for record in RECORDS]
    return encode_snapshot(values, None, last_timestamp_ms=TIMESTAMP_MS, now_ms=TIMESTAMP_MS, epoch=3)
