"""The voters of the metadata quorum, as far as this node's configuration names them."""

from __future__ import annotations

import socket

from pykafka_broker.config import BrokerConfig
from pykafka_broker.raft.core.quorum import Endpoints, ReplicaKey, Voter, VoterSet
from pykafka_broker.raft.initial_controllers import written_host

#: The recorded address of a controller that no other node needs to reach.
UNREACHED_CONTROLLER = ("localhost", 9093)


def is_alone(config: BrokerConfig) -> bool:
    """Whether the node is a controller, and its configuration names no other one."""
    others = config["controller.quorum.bootstrap.servers"]
    return "controller" in config.process_roles and len(config.voters) <= 1 and len(others) <= 1


def leaves_voters_open(config: BrokerConfig) -> bool:
    """Whether the node is a controller whose configuration names others, and does not say who votes first."""
    return "controller" in config.process_roles and not config.voters and not is_alone(config)


def local_voter(config: BrokerConfig, directory_id: bytes, own_endpoints: Endpoints) -> Voter:
    """The node as a voter of the quorum: its id, its metadata directory's id, and its endpoints."""
    key = ReplicaKey(config.node_id, directory_id)
    if own_endpoints or "controller" not in config.process_roles:
        return Voter(key, own_endpoints)
    return Voter(key, {config.controller_listener_names[0]: UNREACHED_CONTROLLER})


def configured_voters(config: BrokerConfig) -> VoterSet:
    """The voters of `controller.quorum.voters`: those of a metadata log that names none (kraft.version 0)."""
    name = config.controller_listener_names[0]
    return VoterSet(
        {
            voter.node_id: Voter(ReplicaKey(voter.node_id), {name: (voter.host, voter.port)})
            for voter in config.voters
        }
    )


def first_voter_endpoint(config: BrokerConfig) -> dict[str, tuple[str, int]]:
    """The address of this controller that `--standalone` writes: the advertised one of its first listener."""
    name = config.controller_listener_names[0]
    told = config.advertised_controller_listeners or config.controller_listeners
    if not told:
        return {name: UNREACHED_CONTROLLER}
    host = told[0].host
    # Other nodes cannot connect to a wildcard address, but perhaps to this machine's name.
    return {name: (socket.getfqdn() if host in ("", "0.0.0.0", "::") else written_host(host), told[0].port)}
