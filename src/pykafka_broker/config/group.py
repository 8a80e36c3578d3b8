"""Every group key of Apache Kafka 4.3. `groups.py` says which broker keys supply defaults and bounds."""

from __future__ import annotations

from pykafka_broker.config.keys import (
    ACTS,
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    MEDIUM,
    STRING,
    Key,
    OffsetReset,
    OneOf,
    Range,
)

# fmt: off
GROUP_KEYS: tuple[Key, ...] = (
    Key("consumer.session.timeout.ms", INT, 45000, Range(1), MEDIUM, CLUSTER_WIDE, ACTS,
        "Silence after which a member of this consumer group is removed."),
    Key("consumer.heartbeat.interval.ms", INT, 5000, Range(1), MEDIUM, CLUSTER_WIDE, ACTS,
        "How often a member of this consumer group sends a heartbeat."),
    Key("consumer.assignment.interval.ms", INT, 1000, Range(0), MEDIUM, CLUSTER_WIDE, ACTS,
        "Least time between two assignments of this consumer group."),
    Key("share.session.timeout.ms", INT, 45000, Range(1), MEDIUM, CLUSTER_WIDE, ACTS,
        "Silence after which a member of this share group is removed."),
    Key("share.heartbeat.interval.ms", INT, 5000, Range(1), MEDIUM, CLUSTER_WIDE, ACTS,
        "How often a member of this share group sends a heartbeat."),
    Key("share.record.lock.duration.ms", INT, 30000, Range(1000), MEDIUM, CLUSTER_WIDE, ACTS,
        "How long a delivered record stays reserved for its member."),
    Key("share.delivery.count.limit", INT, 5, Range(2), MEDIUM, CLUSTER_WIDE, ACTS,
        "Deliveries of one record before it is given up."),
    Key("share.partition.max.record.locks", INT, 2000, Range(100), MEDIUM, CLUSTER_WIDE, ACTS,
        "Records in flight per share partition."),
    Key("share.auto.offset.reset", STRING, "latest", OffsetReset(), MEDIUM, CLUSTER_WIDE, ACTS,
        "Where a share group starts: latest, earliest, or by_duration: and an ISO 8601 duration before now."),
    Key("share.isolation.level", STRING, "read_uncommitted",
        OneOf(("read_committed", "read_uncommitted")), MEDIUM, CLUSTER_WIDE, ACTS,
        "Whether records of aborted and open transactions are delivered."),
    Key("share.renew.acknowledge.enable", BOOLEAN, True, None, MEDIUM, CLUSTER_WIDE, ACTS,
        "Whether a member may renew its reservation of a record."),
    Key("share.assignment.interval.ms", INT, 1000, Range(0), MEDIUM, CLUSTER_WIDE, ACTS,
        "Least time between two assignments of this share group."),
    Key("streams.session.timeout.ms", INT, 45000, Range(1), MEDIUM, CLUSTER_WIDE, ACTS,
        "Silence after which a member of this streams group is removed."),
    Key("streams.heartbeat.interval.ms", INT, 5000, Range(1), MEDIUM, CLUSTER_WIDE, ACTS,
        "How often a member of this streams group sends a heartbeat."),
    Key("streams.num.standby.replicas", INT, 0, Range(0), MEDIUM, CLUSTER_WIDE, ACTS,
        "Standby copies of each task."),
    Key("streams.initial.rebalance.delay.ms", INT, 3000, Range(0), MEDIUM, CLUSTER_WIDE, ACTS,
        "How long the first rebalance of this streams group waits for more members."),
    Key("streams.assignment.interval.ms", INT, 1000, Range(0), MEDIUM, CLUSTER_WIDE, ACTS,
        "Least time between two assignments of this streams group."),
)
# fmt: on

#: Every group key by name.
GROUP: dict[str, Key] = {key.name: key for key in GROUP_KEYS}

#: Class names of Kafka's assignors of consumer groups, which a configuration may use, and their names.
ASSIGNOR_CLASSES = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


def assignor_name(text: str) -> str:
    """The name of an assignor, given by its name or its class."""
    return ASSIGNOR_CLASSES.get(text, text)


#: The class name of Kafka's assignor of share groups, and its name.
SHARE_ASSIGNOR_CLASSES = {"org.apache.kafka.coordinator.group.assignor.SimpleAssignor": "simple"}


def share_assignor_name(text: str) -> str:
    """The name of an assignor of share groups, given by its name or its class."""
    return SHARE_ASSIGNOR_CLASSES.get(text, text)
