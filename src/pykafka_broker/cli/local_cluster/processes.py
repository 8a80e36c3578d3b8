"""The processes of the nodes of a local cluster, and the state of each.

A process is the node's own if its command line names the node's server.properties: the system reuses process
ids.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from pykafka_broker.local_cluster.folder import ClusterFolder
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.processes import command_line, is_ending, is_paused

#: How much of a log's end is looked at for the reason of a death.
LOG_TAIL_BYTES = 16_384


class NodeState(NamedTuple):
    """A node of a local cluster.

    `state` is "up", "starting", "paused", "stopped" (in good order) or "died", for which `reason` tells why.
    """

    node_id: int
    state: str
    roles: list[str]
    address: str
    pid: int | None
    reason: str | None


def pid_of(cluster: ClusterFolder, node_id: int) -> int | None:
    """The process of a node that runs, or is still ending and holds its ports."""
    pid = _written_pid(cluster, node_id)
    if pid is None or not (str(cluster.properties_file(node_id)) in command_line(pid) or is_ending(pid)):
        return None
    return pid


def state_of(cluster: ClusterFolder, node_id: int) -> NodeState:
    """The state of a node."""
    pid = pid_of(cluster, node_id)
    reason = None
    if pid is not None:
        state = "paused" if is_paused(pid) else "up" if _serves(cluster, node_id) else "starting"
    elif cluster.pid_file(node_id).exists():
        state, reason = "died", _last_words(cluster, node_id)
    else:
        state = "stopped"
    return NodeState(node_id, state, cluster.roles(node_id), cluster.address(node_id), pid, reason)


def states_of(cluster: ClusterFolder) -> list[NodeState]:
    """The states of all nodes, in order."""
    return [state_of(cluster, node_id) for node_id in cluster.node_ids()]


def _written_pid(cluster: ClusterFolder, node_id: int) -> int | None:
    try:
        return int(cluster.pid_file(node_id).read_text())
    except (FileNotFoundError, ValueError):
        return None


def _serves(cluster: ClusterFolder, node_id: int) -> bool:
    try:
        json.loads(cluster.started_file(node_id).read_text())
    except (FileNotFoundError, ValueError):
        return False
    return True


def _last_words(cluster: ClusterFolder, node_id: int) -> str:
    """The error that the node ended with, or where its log is."""
    log = cluster.log_file(node_id)
    with suppress(FileNotFoundError), log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
        if lines and '"error":' in lines[-1]:
            with suppress(ValueError, KeyError, TypeError):
                return str(json.loads(lines[-1])["error"])
    return f"it ended without a word, as by kill -9; its log is {log}"
