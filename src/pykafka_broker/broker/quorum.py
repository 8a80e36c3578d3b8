"""The part of this node in the metadata quorum: it opens its metadata log, and leads it with its controller.

Where other nodes lead, the channel to the controller is a remote one (`metadata/controller_channel.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial

from pykafka_broker.broker.foundation import Foundation
from pykafka_broker.broker.storage import (
    UNREADABLE_METADATA,
    local_voter,
    open_metadata_log,
    unusable_metadata,
)
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.cluster.state import ControllerRules
from pykafka_broker.config import BrokerConfig
from pykafka_broker.config.rules import TableRules, validate_broker_configs
from pykafka_broker.controller.bootstrap import read_bootstrap_records
from pykafka_broker.controller.local_channel import LocalControllerChannel
from pykafka_broker.controller.role import ControllerRole
from pykafka_broker.log.disk.files import random_id
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.metadata.controller_channel import ControllerChannel
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.metadata.replica import MetadataReplica, ReplicaPorts
from pykafka_broker.metadata.snapshotter import SnapshotSettings
from pykafka_broker.raft.driver import DriverPorts
from pykafka_broker.raft.storage import RaftStorage
from pykafka_broker.system.named_tuple import NamedTuple


def open_metadata(foundation: Foundation, logs: LogManager) -> RaftStorage:
    """The replica of the metadata log. Blocking.

    Raises:
        LogDirError: the log cannot be used by this node; the text says what to do.
    """
    config = foundation.config
    try:
        return open_metadata_log(
            foundation.files,
            config,
            now_ms=foundation.clock.now_ms(),
            run_later=foundation.threads.run_in_background,
            on_write_failed=partial(logs.full_disks.write_failed, logs.dirs.metadata),
        )
    except UNREADABLE_METADATA as error:
        raise unusable_metadata(config, error) from error


class NodeMetadata(NamedTuple):
    """The metadata of a node: the published image, the controller for as long as this node leads, the channel
    to the active controller, and the replica of the log.
    """

    publisher: MetadataPublisher
    role: ControllerRole
    controller: ControllerChannel
    replica: MetadataReplica


def build_metadata(
    foundation: Foundation, storage: RaftStorage, logs: LogManager, cluster_id: str
) -> NodeMetadata:
    """The parts of this node's replica of the metadata log, not started yet."""
    config = foundation.config
    rules = ControllerRules(
        node_id=foundation.node_id,
        cluster_id=cluster_id,
        configs=NodeConfigRules(foundation.configs),
        default_partitions=config["num.partitions"],
        default_replication_factor=config["default.replication.factor"],
        session_timeout_ms=config["broker.session.timeout.ms"],
        leader_balance_interval_ms=(
            config["leader.imbalance.check.interval.seconds"] * 1_000
            if config["auto.leader.rebalance.enable"]
            else None
        ),
        unclean_election_interval_ms=config["unclean.leader.election.interval.ms"],
        voters=(foundation.node_id,),
    )
    publisher = MetadataPublisher(cluster_id)
    role = ControllerRole(
        publisher,
        rules,
        foundation.timers,
        read_bootstrap=partial(read_bootstrap_records, foundation.files, config.metadata_log_dir),
    )
    replica = MetadataReplica(
        storage,
        local_voter(config, logs),
        publisher,
        ReplicaPorts(
            foundation.timers,
            DriverPorts(foundation.clock, foundation.threads.run_blocking, chance),
            foundation.failure.set,
        ),
        leadership=role,
        snapshots=SnapshotSettings(
            bytes_between_snapshots=config["metadata.log.max.record.bytes.between.snapshots"],
            interval_ms=config["metadata.log.max.snapshot.interval.ms"],
        ),
    )
    return NodeMetadata(publisher, role, LocalControllerChannel(role, rules, foundation.timers), replica)


async def start_metadata(config: BrokerConfig, replica: MetadataReplica, undo: AsyncExitStack) -> None:
    """Start this node's replica of the metadata log; the newest metadata is published when this returns.

    Raises:
        LogDirError: the log cannot be used by this node; the text says what to do.
    """
    undo.push_async_callback(replica.close)
    try:
        await replica.start()
    except UNREADABLE_METADATA as error:
        raise unusable_metadata(config, error) from error


def chance() -> float:
    """A number in [0, 1), another each time."""
    return int(random_id()[:8], 16) / (1 << 32)


class NodeConfigRules(TableRules):
    """The controller's rules, and those that need this node's static configuration."""

    def validate(self, resource_type: int, name: str, new: Mapping[str, str], old: Mapping[str, str]) -> None:
        """Accept the complete set of values a resource is to have.

        Raises:
            KafkaError: in Kafka's words.
        """
        super().validate(resource_type, name, new, old)
        # Another broker has judged its own values before it passed them on.
        if resource_type == ResourceType.BROKER and name in ("", str(self.configs.static.node_id)):
            validate_broker_configs(name, new, self.configs)
