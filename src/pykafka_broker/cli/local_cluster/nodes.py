"""Start, stop, kill and freeze the nodes of a local cluster, whichever command started them.

A node is `pykafka-broker start --config` in a session of its own, so that Ctrl-C reaches only the command
that watches it. Repeating is harmless: a running node is not started again, a stopped one not stopped again.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from pykafka_broker.cli.local_cluster.in_sync import Replica, await_in_sync, lagging
from pykafka_broker.cli.local_cluster.processes import NodeState, pid_of, state_of, states_of
from pykafka_broker.local_cluster.folder import ClusterFolder
from pykafka_broker.local_cluster.layout import HOST, Layout, fixed_ports
from pykafka_broker.protocol.errors import KafkaError, ProtocolError
from pykafka_broker.system.processes import described, is_paused, listening_on

if TYPE_CHECKING:
    from pykafka_broker.client.core.connection import ClientSecurity

#: How often processes are looked at, because they tell nothing by themselves.
POLL_S = 0.05
#: The distance between two first ports that are proposed.
PORTS_APART = 10
LAST_PROPOSED_PORT = 60_000

Tell = Callable[[str], None]


class NodesError(click.ClickException):
    """Nodes did not start or stop."""


def check_ports(layout: Layout, first_port: int) -> None:
    """Check that the ports that follow from the first one are free for the nodes of a new cluster.

    Raises:
        NodesError: one of them is taken; the text names another first port.
    """
    nodes = list(layout.roles())

    def taken(first: int) -> tuple[int, str] | None:
        ports = (port for own in fixed_ports(first, nodes).values() for port in own)
        return next(((port, by) for port in ports if (by := _taken_by(port)) is not None), None)

    if (found := taken(first_port)) is not None:
        port, by = found
        proposed = range(first_port + PORTS_APART, LAST_PROPOSED_PORT, PORTS_APART)
        # 0 picks free ones.
        free = next((first for first in proposed if taken(first) is None), 0)
        raise NodesError(f"Port {port} is taken by {by}: start with --port {free}")


def _check_own_ports(cluster: ClusterFolder, node_ids: Sequence[int]) -> None:
    for node_id in node_ids:
        for port in cluster.ports(node_id):
            if (by := _taken_by(port)) is not None:
                raise NodesError(
                    f"Port {port} of node {node_id} is taken by {by}: end that first, for nodes keep their "
                    "ports; --port is for a new folder"
                )


def _taken_by(port: int) -> str | None:
    """The process that has a port of this machine, None if it is free."""
    try:
        with socket.create_server((HOST, port)):
            return None
    except OSError:
        owner = listening_on(HOST, port)
        return "another process" if owner is None else described(owner)


def start_nodes(cluster: ClusterFolder, timeout_s: float, tell: Tell) -> None:
    """Start all nodes that are down, and wait until each serves.

    Raises:
        NodesError: one died, they took too long, or another process has their ports.
    """
    down = [node_id for node_id in cluster.node_ids() if pid_of(cluster, node_id) is None]
    _check_own_ports(cluster, down)
    _format(cluster, down, tell)
    for node_id in down:
        _spawn(cluster, node_id)
    _await_up(cluster, cluster.node_ids(), timeout_s, tell)


def start_node(cluster: ClusterFolder, node_id: int, timeout_s: float, tell: Tell) -> None:
    """Start a node that has been formatted and is down.

    Raises:
        NodesError: it died, or took too long.
    """
    _spawn(cluster, node_id)
    _await_up(cluster, [node_id], timeout_s, tell)


def restart_nodes(
    cluster: ClusterFolder,
    node_ids: Sequence[int],
    timeout_s: float,
    tell: Tell,
    note: Tell,
    security: ClientSecurity | None = None,
) -> None:
    """Start those of the nodes that are down, then stop and start the others, one after the other. Before the
    next one, wait until the replicas that were in sync before are in sync again, and those of a node that was
    down.

    The wait takes at most `timeout_s`; then there is a note, and the next node follows. If no broker tells
    which replicas are in sync, for example because it needs another `security`, there is a note and no wait.
    Leaders return to their preferred replicas within `leader.imbalance.check.interval.seconds`.

    Raises:
        NodesError: one did not stop or start.
    """
    before: set[Replica] | None = None
    try:
        before = lagging(cluster, security)
    except (OSError, KafkaError, ProtocolError) as error:
        note(f"No node waits for the replicas of the one before: no broker tells which are in sync: {error}")
    down = [node_id for node_id in node_ids if pid_of(cluster, node_id) is None]
    # Together: each may need the others for a quorum, and so may those that are stopped next.
    for nodes in ([down] if down else []) + [[node_id] for node_id in node_ids if node_id not in down]:
        stop_nodes(cluster, nodes, timeout_s, tell)
        _format(cluster, nodes, tell)
        for node_id in nodes:
            _spawn(cluster, node_id)
        _await_up(cluster, nodes, timeout_s, tell)
        if before is None or not any("broker" in cluster.roles(node_id) for node_id in nodes):
            continue
        if missing := await_in_sync(cluster, security, before, timeout_s):
            note(f"{_named(nodes)} {'is' if len(nodes) == 1 else 'are'} up, but {missing}")


def loss_by_stop(states: Sequence[NodeState], node_ids: Collection[int], *, restart: bool) -> str | None:
    """What the cluster loses for good when these nodes are stopped, or stopped and started again: a majority
    of its controllers, or nodes that serve without one. None if nothing, or if it is stopped as a whole.
    """
    controllers, running = _controllers(states), _running(states)
    stopped = sorted(running.intersection(node_ids))
    after = running.union(node_ids) if restart else running.difference(node_ids)
    if not stopped or _is_majority(controllers & after, controllers):
        return None
    nodes = _named(stopped).lower()
    majority = f"more than half of the {len(controllers)} controllers run"
    if len(controllers) == 1:
        majority = "the only controller runs"
    if not _is_majority(controllers & running, controllers):
        others = sorted(controllers - running)
        return (
            f"No controller leads: once stopped, {nodes} will not serve until {majority}. "
            f"{_named(others)} {'does' if len(others) == 1 else 'do'} not"
        )
    if not after:
        return None
    return (
        f"Without {nodes} no controller leads, until {majority}: nothing is created, changed or elected, and "
        "a node that starts does not serve"
    )


def _controllers(states: Iterable[NodeState]) -> set[int]:
    return {state.node_id for state in states if "controller" in state.roles}


def _running(states: Iterable[NodeState]) -> set[int]:
    return {state.node_id for state in states if state.pid is not None and state.state != "paused"}


def _is_majority(some: Collection[int], controllers: Collection[int]) -> bool:
    return 2 * len(some) > len(controllers)


def _why_not_up(states: Sequence[NodeState]) -> str:
    """The controllers that do not run, if none can lead without them."""
    controllers, running = _controllers(states), _running(states)
    if _is_majority(controllers & running, controllers):
        return ""
    down = _named(sorted(controllers - running))
    return f". {down} must run too: it takes a majority of controllers to lead"


def stop_nodes(cluster: ClusterFolder, node_ids: Sequence[int], timeout_s: float, tell: Tell) -> None:
    """Stop nodes in good order: brokers hand over their partitions while there are controllers.

    Raises:
        NodesError: one took too long, and still runs.
    """
    brokers = [node_id for node_id in node_ids if cluster.roles(node_id) == ["broker"]]
    for group in (brokers, [node_id for node_id in node_ids if node_id not in brokers]):
        _signal(cluster, group, signal.SIGTERM)
        # A paused process would get the signal only when it is resumed.
        _signal(cluster, group, signal.SIGCONT)
        deadline = time.monotonic() + timeout_s
        running = set(group)
        while running:
            for node_id in [node for node in sorted(running) if pid_of(cluster, node) is None]:
                running.remove(node_id)
                if cluster.pid_file(node_id).exists():
                    cluster.pid_file(node_id).unlink(missing_ok=True)
                    tell(f"Node {node_id} has stopped")
            if running and time.monotonic() > deadline:
                nodes = ", ".join(map(str, sorted(running)))
                raise NodesError(f"Not stopped within {timeout_s:g} s: {nodes}; `kill` ends them")
            if running:
                time.sleep(POLL_S)


def kill_nodes(cluster: ClusterFolder, node_ids: Sequence[int]) -> None:
    """End nodes as `kill -9` does; return when they have ended."""
    _signal(cluster, node_ids, signal.SIGKILL)
    while any(pid_of(cluster, node_id) is not None for node_id in node_ids):
        time.sleep(POLL_S)


def pause_nodes(cluster: ClusterFolder, node_ids: Sequence[int]) -> None:
    """Freeze nodes; return when they are frozen, which may take a busy machine a moment."""
    _signal(cluster, node_ids, signal.SIGSTOP)
    while any((pid := pid_of(cluster, node_id)) is not None and not is_paused(pid) for node_id in node_ids):
        time.sleep(POLL_S)


def resume_nodes(cluster: ClusterFolder, node_ids: Sequence[int]) -> None:
    """Resume frozen nodes; return when they run."""
    _signal(cluster, node_ids, signal.SIGCONT)
    while any((pid := pid_of(cluster, node_id)) is not None and is_paused(pid) for node_id in node_ids):
        time.sleep(POLL_S)


def _named(node_ids: Sequence[int]) -> str:
    return f"Node{'' if len(node_ids) == 1 else 's'} {', '.join(map(str, node_ids))}"


def _format(cluster: ClusterFolder, node_ids: Sequence[int], tell: Tell) -> None:
    for node_id in cluster.format(node_ids):
        tell(f"Node {node_id} has lost its directory: it begins with an empty one")


def _signal(cluster: ClusterFolder, node_ids: Sequence[int], number: signal.Signals) -> None:
    for node_id in node_ids:
        if (pid := pid_of(cluster, node_id)) is not None:
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(pid, number)


def _spawn(cluster: ClusterFolder, node_id: int) -> None:
    """Start the process of a node.

    The environment's settings are for one broker, so nodes get only its log levels.
    """
    environ = {
        name: value
        for name, value in os.environ.items()
        if name != "CLUSTER_ID" and (not name.startswith("KAFKA_") or name.startswith("KAFKA_LOG4J_"))
    }
    config = str(cluster.properties_file(node_id))
    with cluster.started_file(node_id).open("wb") as started, cluster.log_file(node_id).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "pykafka_broker", "start", "--config", config, "--json"],
            stdin=subprocess.DEVNULL,
            stdout=started,
            stderr=log,
            env=environ,
            start_new_session=True,
        )
    cluster.pid_file(node_id).write_text(f"{process.pid}\n")
    # For a moment a new process has no command line, by which `pid_of` recognises it.
    while process.poll() is None and pid_of(cluster, node_id) is None:
        time.sleep(0.001)
    # From here on its state comes from the folder, as in every other command.
    process.returncode = 0


def _await_up(cluster: ClusterFolder, node_ids: Sequence[int], timeout_s: float, tell: Tell) -> None:
    deadline = time.monotonic() + timeout_s
    waiting = list(node_ids)
    while waiting:
        for node_id in list(waiting):
            state = state_of(cluster, node_id)
            if state.state in ("up", "paused"):
                waiting.remove(node_id)
                tell(f"Node {node_id} is {state.state} at {state.address} (process {state.pid})")
            elif state.state != "starting":
                raise NodesError(f"Node {node_id} died: {state.reason}")
        if waiting and time.monotonic() > deadline:
            nodes = ", ".join(map(str, waiting))
            why = _why_not_up(states_of(cluster))
            raise NodesError(f"Not up within {timeout_s:g} s: {nodes}; their logs are in {cluster.path}{why}")
        if waiting:
            time.sleep(POLL_S)
