"""The part of this node in the metadata quorum: its metadata log, and the controller that leads it.

If another node leads, the channel to the controller is a remote one (`controller/channel.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.broker.foundation import Foundation
from pykafka_broker.broker.metadata_log import UNREADABLE_METADATA, open_metadata_log, unusable_metadata
from pykafka_broker.broker.raft_settings import peer_settings, raft_settings
from pykafka_broker.broker.security.links import security_with_controllers
from pykafka_broker.broker.voters import local_voter
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.config import BrokerConfig
from pykafka_broker.config.rules import TableRules, validate_broker_configs
from pykafka_broker.controller.bootstrap import read_bootstrap_records
from pykafka_broker.controller.channel import ControllerChannel
from pykafka_broker.controller.core.state import ControllerRules, TokenRules
from pykafka_broker.controller.nearest_channel import NearestControllerChannel
from pykafka_broker.controller.role import ControllerRole, NoController
from pykafka_broker.log.disk.files import random_id
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.membership.lifecycle import life_settings
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.metadata.replica import MetadataReplica, ReplicaPorts
from pykafka_broker.metadata.snapshotter import SnapshotSettings
from pykafka_broker.raft.core.quorum import Endpoints
from pykafka_broker.raft.driver import DriverPorts
from pykafka_broker.raft.storage import RaftStorage
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.controller.remote_channel import LeaderConnections, RemoteControllerChannel
    from pykafka_broker.raft.quorum_peers import QuorumPeers


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


class QuorumParts(NamedTuple):
    """The part of a node in the quorum: publisher, replica of the log, own controller, and channels.

    `controller` is the channel to the active controller. A node without the role controller has no `role`,
    and its `own_controller` refuses everything. A node that is the only voter has no `connections`, and no
    `peers`, to which the replica sends its requests.
    """

    publisher: MetadataPublisher
    replica: MetadataReplica
    role: ControllerRole | None
    own_controller: ControllerRole | NoController
    controller: ControllerChannel
    connections: LeaderConnections | None
    peers: QuorumPeers | None


def build_quorum(
    foundation: Foundation,
    storage: RaftStorage,
    logs: LogManager,
    publisher: MetadataPublisher,
    own_endpoints: Endpoints,
) -> QuorumParts:
    """The parts of this node's replica of the metadata log, not started yet.

    `own_endpoints` are the advertised endpoints of the controller listeners.
    """
    config, cluster_id = foundation.config, publisher.image.cluster_id
    rules = _controller_rules(foundation, cluster_id)
    role = None
    if "controller" in config.process_roles:
        role = ControllerRole(
            publisher,
            rules,
            foundation.timers,
            read_bootstrap=partial(read_bootstrap_records, foundation.files, config.metadata_log_dir),
        )
    own_controller = role or NoController()
    peers = None if config.standalone else _peers(foundation, cluster_id)
    replica = MetadataReplica(
        storage,
        local_voter(config, logs.dirs.metadata.directory_id, own_endpoints),
        publisher,
        ReplicaPorts(
            foundation.timers,
            DriverPorts(
                foundation.clock,
                foundation.threads.run_blocking,
                chance,
                peers,
            ),
            foundation.failure.set,
        ),
        leadership=role,
        snapshots=SnapshotSettings(
            bytes_between_snapshots=config["metadata.log.max.record.bytes.between.snapshots"],
            interval_ms=config["metadata.log.max.snapshot.interval.ms"],
        ),
        settings=raft_settings(config),
        reached_at=own_endpoints if config.standalone else None,
    )
    if config.standalone:
        return QuorumParts(publisher, replica, role, own_controller, own_controller, None, None)
    connections, remote = _remote_controller(foundation, publisher, replica, role)
    controller = remote if role is None else NearestControllerChannel(role, remote)
    return QuorumParts(publisher, replica, role, own_controller, controller, connections, peers)


def _remote_controller(
    foundation: Foundation,
    publisher: MetadataPublisher,
    replica: MetadataReplica,
    role: ControllerRole | None,
) -> tuple[LeaderConnections, RemoteControllerChannel]:
    # Imported late: an only voter needs no client.
    from pykafka_broker.controller.remote_channel import (
        LeaderConnections,
        RemoteControllerChannel,
        RemoteSettings,
    )

    config, clock = foundation.config, foundation.clock
    settings = RemoteSettings(
        heartbeat_patience_ms=life_settings(config).patience_ms,
        attempt_timeout_ms=config["controller.socket.timeout.ms"],
        connect_timeout_ms=config["socket.connection.setup.timeout.ms"],
        security=security_with_controllers(lambda: foundation.config),
    )
    connections = LeaderConnections.to(
        replica.host,
        clock,
        foundation.node_id,
        settings,
        is_led_here=lambda: role is not None and role.is_active,
    )
    return connections, RemoteControllerChannel(connections, publisher, clock)


def _controller_rules(foundation: Foundation, cluster_id: str) -> ControllerRules:
    config = foundation.config
    return ControllerRules(
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
        tokens=_token_rules(config),
    )


def _token_rules(config: BrokerConfig) -> TokenRules | None:
    secret_key: str | None = config.values["delegation.token.secret.key"]
    if not secret_key:
        return None
    return TokenRules(
        secret_key.encode(),
        max_lifetime_ms=config["delegation.token.max.lifetime.ms"],
        expiry_time_ms=config["delegation.token.expiry.time.ms"],
        expiry_check_interval_ms=config["delegation.token.expiry.check.interval.ms"],
    )


def _peers(foundation: Foundation, cluster_id: str) -> QuorumPeers:
    from pykafka_broker.raft.quorum_peers import QuorumPeers  # an only voter needs no client

    return QuorumPeers(peer_settings(lambda: foundation.config, cluster_id), foundation.clock)


def chance() -> float:
    """A random number in [0, 1)."""
    return int(random_id()[:8], 16) / (1 << 32)


class NodeConfigRules(TableRules):
    """The controller's rules of configs, with checks that need this node's static configuration."""

    def validate(self, resource_type: int, name: str, new: Mapping[str, str], old: Mapping[str, str]) -> None:
        """Validate `new`, the complete set of values of a resource.

        Raises:
            KafkaError: a value is invalid; the text is Kafka's.
        """
        super().validate(resource_type, name, new, old)
        # Another broker has validated its own values before it forwarded them.
        if resource_type == ResourceType.BROKER and name in ("", str(self.configs.static.node_id)):
            validate_broker_configs(name, new, self.configs)
