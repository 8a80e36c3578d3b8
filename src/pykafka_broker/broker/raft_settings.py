"""The settings of this node's replica of the metadata log: the keys of `controller.quorum.*`.

One of them makes no difference here, `controller.quorum.append.linger.ms`: Apache Kafka's leader keeps
records back for that long, to write and sync several decisions at once. Here records are written at once,
and those that come while the disk syncs share the next sync (`raft/driver.py`); none waits for a timer.
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


#: How long a leader may keep a Fetch that finds nothing; less where a follower loses patience before that.
FETCH_MAX_WAIT_MS = 500


def raft_settings(config: BrokerConfig) -> Settings:
    """The settings that decide: whom the replica asks, what it may become, and when."""
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
    """Where the replica asks for the leader: as in Kafka, the voters only where no server is named."""
    servers = parse_bootstrap_servers(config["controller.quorum.bootstrap.servers"])
    return servers or tuple((voter.host, voter.port) for voter in config.voters)


def peer_settings(current: Callable[[], BrokerConfig], cluster_id: str) -> PeerSettings:
    """The settings of the connections to the other replicas; `current` is the configuration in force."""
    from pykafka_broker.raft.quorum_peers import PeerSettings  # a node that is alone needs no client

    config = current()
    return PeerSettings(
        config.node_id,
        Scope(cluster_id, config.controller_listener_names[0]),
        fetch_max_bytes=config["controller.quorum.fetch.max.bytes"],
        request_timeout_ms=config["controller.quorum.request.timeout.ms"],
        security=security_with_controllers(current),
    )
