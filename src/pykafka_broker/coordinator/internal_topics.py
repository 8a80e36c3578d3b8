"""The settings with which the coordinators' internal topics are created."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pykafka_broker.cluster.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from pykafka_broker.config import BrokerConfig
from pykafka_broker.config.typed_values import NumberKey
from pykafka_broker.system.named_tuple import NamedTuple


class CreationSettings(NamedTuple):
    """Of one topic: the keys of its partition count and its replication factor, and its own configuration."""

    partitions_key: NumberKey
    replication_factor_key: NumberKey
    configs: Callable[[BrokerConfig], Mapping[str, str]]


def _offsets_configs(config: BrokerConfig) -> Mapping[str, str]:
    return {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config["offsets.topic.segment.bytes"]),
    }


def _transaction_configs(config: BrokerConfig) -> Mapping[str, str]:
    return {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": str(config["transaction.state.log.min.isr"]),
        "segment.bytes": str(config["transaction.state.log.segment.bytes"]),
        "unclean.leader.election.enable": "false",
    }


def _share_configs(config: BrokerConfig) -> Mapping[str, str]:
    return {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": str(config["share.coordinator.state.topic.min.isr"]),
        "retention.ms": "-1",
        "segment.bytes": str(config["share.coordinator.state.topic.segment.bytes"]),
    }


CREATED_WITH = {
    OFFSETS_TOPIC: CreationSettings(
        "offsets.topic.num.partitions", "offsets.topic.replication.factor", _offsets_configs
    ),
    TRANSACTIONS_TOPIC: CreationSettings(
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        _transaction_configs,
    ),
    SHARE_STATE_TOPIC: CreationSettings(
        "share.coordinator.state.topic.num.partitions",
        "share.coordinator.state.topic.replication.factor",
        _share_configs,
    ),
}
