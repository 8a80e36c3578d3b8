"""The settings of this node's replica of the metadata log: the keys of `controller.quorum.*`.

`controller.quorum.append.linger.ms` has no effect here. Apache Kafka's leader delays records by that time, to
write and sync several decisions together. Here records are written at once, and records appended during a
sync share the next one (`raft/driver.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pykafka_broker.broker.security.links import security_with_controllers
from pykafka_broker.config import BrokerConfig
from pykafka_broker.config.keys import parse_bootstrap_servers
from pykafka_broker.raft.core.quorum import Address
from pykafka_broker.raft.core.settings import Settings
from pykafka_broker.raft.wire.common import Scope

if TYPE_CHECKING:
    from pykafka_broker.raft.quorum_peers import PeerSettings


#: How long a leader may park a Fetch; at most half of `controller.quorum.fetch.timeout.ms`.
FETCH_MAX_WAIT_MS = 500


def raft_settings(config: BrokerConfig) -> Settings:
    """The settings of the raft core."""
    return Settings(
        listener=config.controller_listener_names[0],
        bootstrap=_bootstrap(config),
        may_vote="controller" in config.process_roles,
        auto_join=config["controller.quorum.auto.join.enable"],
        election_timeout_ms=config["controller.quorum.election.timeout.ms"],
        election_backoff_max_ms=config["controller.quorum.election.backoff.max.ms"],
        fetch_timeout_ms=config["controller.quorum.fetch.timeout.ms"],
        request_timeout_ms=config["controller.quorum.request.timeout.ms"],
        retry_backoff_ms=config["controller.quorum.retry.backoff.ms"],
        fetch_max_wait_ms=min(FETCH_MAX_WAIT_MS, config["controller.quorum.fetch.timeout.ms"] // 2),
        snapshot_part_bytes=config["controller.quorum.fetch.snapshot.max.bytes"],
    )


def _bootstrap(config: BrokerConfig) -> tuple[Address, ...]:
    """The servers to ask for the leader: as in Kafka, the voters if no server is configured."""
    servers = parse_bootstrap_servers(config["controller.quorum.bootstrap.servers"])
    return servers or tuple((voter.host, voter.port) for voter in config.voters)


def peer_settings(current: Callable[[], BrokerConfig], cluster_id: str) -> PeerSettings:
    """The settings of the connections to the other replicas; `current` is the configuration in force."""
    from pykafka_broker.raft.quorum_peers import PeerSettings  # an only voter needs no client

    config = current()
    return PeerSettings(
        config.node_id,
        Scope(cluster_id, config.controller_listener_names[0]),
        fetch_max_bytes=config["controller.quorum.fetch.max.bytes"],
        request_timeout_ms=config["controller.quorum.request.timeout.ms"],
        security=security_with_controllers(current),
    )
