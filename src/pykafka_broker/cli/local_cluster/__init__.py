"""`cluster`: run a cluster on this machine, a process and a folder per node, and look at any cluster.

There is no daemon. All that is known about a local cluster is in its folder (`local_cluster/folder.py`) and
in the system's list of processes, so each command finds the nodes, whichever command started them. A node
that has died stays down until it is restarted.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from pykafka_broker.cli import Group
from pykafka_broker.cli.cells import Column, Table
from pykafka_broker.cli.cluster import COMMAND
from pykafka_broker.cli.interrupts import Interrupts
from pykafka_broker.cli.local_cluster.nodes import (
    NodesError,
    check_ports,
    kill_nodes,
    loss_by_stop,
    pause_nodes,
    restart_nodes,
    resume_nodes,
    start_node,
    start_nodes,
    stop_nodes,
)
from pykafka_broker.cli.local_cluster.options import folder_option
from pykafka_broker.cli.local_cluster.processes import NodeState, states_of
from pykafka_broker.cli.local_cluster.status import status
from pykafka_broker.cli.local_cluster.watching import changes, watch
from pykafka_broker.cli.options import Seconds, gathered, pairs
from pykafka_broker.cli.output import Form, Output, json_option
from pykafka_broker.cli.security import identity_with, security_options
from pykafka_broker.local_cluster.folder import ClusterFolder, NoSuchNodeError
from pykafka_broker.local_cluster.layout import DEFAULT_NODES, MOST_NODES, Layout, layout_of
from pykafka_broker.system.named_tuple import NamedTuple


class Asked(NamedTuple):
    """The nodes that a start is told to make."""

    nodes: int | None
    brokers: int | None
    controllers: int | None


@click.group(cls=Group)
def cluster() -> None:
    """Run a cluster on this machine, a process for each node; show the state of any cluster."""


cluster.add_command(status)


def timeout_option(command: Any) -> Any:
    """Give a command the time that a node may take to start or to stop."""
    return click.option(
        "--timeout",
        "timeout_s",
        type=Seconds(0.1),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="How long nodes may take.",
    )(command)


def nodes_argument(command: Any) -> Any:
    """Give a command the ids of the nodes it is about."""
    return click.argument("nodes", nargs=-1, required=True, type=int, metavar="NODE...")(command)


@cluster.command()
@click.option(
    "-n",
    "--nodes",
    type=click.IntRange(1, MOST_NODES),
    help="How many nodes, each a broker and a controller; 3 in a new folder.",
)
@click.option("--brokers", type=click.IntRange(1, MOST_NODES), help="Nodes that are only brokers.")
@click.option("--controllers", type=click.IntRange(1, MOST_NODES), help="Nodes that are only controllers.")
@click.option(
    "-p",
    "--port",
    type=click.IntRange(0, 60_000),
    default=9092,
    show_default=True,
    help="The port of the first node; 0 picks free ones. Controllers listen 100 higher.",
)
@click.option(
    "-o", "--override", "overrides", metavar="KEY=VALUE", multiple=True, help="Set one key of new nodes."
)
@click.option("--detach", is_flag=True, help="Return when the nodes serve, and leave them running.")
@gathered(Asked, "asked")
@folder_option
@timeout_option
@json_option(NodeState, key="nodes")
def start(
    asked: Asked,
    port: int,
    overrides: tuple[str, ...],
    detach: bool,
    folder: Path,
    timeout_s: float,
    output: Output,
) -> int:
    """Run a cluster; Ctrl-C stops all its nodes.

    The first start makes the nodes in the folder, later ones start those that are down.
    """
    found = ClusterFolder(folder.absolute())
    layout = _layout(asked)
    with Interrupts() as interrupts:
        try:
            with interrupts.waiting():
                if found.exists():
                    found.check_layout(layout or found.layout())
                else:
                    keys = dict(pairs(overrides, "--override"))
                    asked_for = layout or Layout(combined=DEFAULT_NODES)
                    if port:
                        check_ports(asked_for, port)
                    found.create(asked_for, port, keys)
                start_nodes(found, timeout_s, _teller(output))
        except (KeyboardInterrupt, NodesError) as error:
            if isinstance(error, KeyboardInterrupt) or not detach:
                stop_nodes(found, found.node_ids(), timeout_s, _teller(output))
            if isinstance(error, NodesError):
                raise
            return interrupts.exit_status
        states = states_of(found)
        try:
            output.show_all(
                states, [f"Bootstrap servers: {found.bootstrap_servers()} (data in {found.path})"]
            )
            if not detach:
                watch(found, states, _teller(output), interrupts)
        finally:
            if not detach:
                stop_nodes(found, found.node_ids(), timeout_s, _teller(output))
    return 0


def _layout(asked: Asked) -> Layout | None:
    """The nodes that are asked for; None if no number is given.

    Raises:
        click.UsageError: the options contradict each other.
    """
    try:
        return layout_of(*asked)
    except ValueError:
        raise click.UsageError("Give either --nodes, or both --brokers and --controllers.") from None


def _teller(output: Output) -> Any:
    """Prints one line per event; on standard error if the output is JSON.

    Nodes are stopped even if the reader of the lines has gone.
    """

    def tell(line: str) -> None:
        with suppress(BrokenPipeError):
            if output.form is Form.JSON:
                output.note(line)
            else:
                click.echo(line)

    return tell


@cluster.command()
@click.argument("nodes", nargs=-1, type=int, metavar="[NODE...]")
@folder_option
@timeout_option
@json_option(NodeState, key="nodes")
def stop(nodes: tuple[int, ...], folder: Path, timeout_s: float, output: Output) -> None:
    """Stop nodes in good order; all of them if none is named."""
    found = _existing(folder)
    asked = _checked(found, nodes) or found.node_ids()
    _warn(found, asked, output, restart=False)
    stop_nodes(found, asked, timeout_s, _quiet)
    _show(found, output)


@cluster.command()
@click.argument("nodes", nargs=-1, type=int, metavar="[NODE...]")
@folder_option
@timeout_option
@security_options
@json_option(NodeState, key="nodes")
def restart(
    nodes: tuple[int, ...],
    folder: Path,
    timeout_s: float,
    command_config: str | None,
    login: str | None,
    ca: str | None,
    output: Output,
) -> None:
    """Stop and start nodes, one after the other; all of them if none is named.

    Each node stops only when the replicas of the one before are in sync again. The command asks the brokers
    whether they are; if the brokers require TLS or a login, give it --ca, --user or --command-config.
    """
    found = _existing(folder)
    security = identity_with(COMMAND, command_config, login, ca).security
    asked = _checked(found, nodes) or found.node_ids()
    _warn(found, asked, output, restart=True)
    restart_nodes(found, asked, timeout_s, _quiet, output.note, security)
    _show(found, output)


@cluster.command("add-node")
@click.option(
    "--role",
    "roles",
    type=click.Choice(("broker", "controller")),
    multiple=True,
    help="The role of the node; give it twice for both. Default: the roles of the last node.",
)
@folder_option
@timeout_option
@json_option(NodeState, key="nodes")
def add_node(roles: tuple[str, ...], folder: Path, timeout_s: float, output: Output) -> None:
    """Add a node, and start it if others run.

    A controller joins the voters by itself. Partitions move to a broker with `reassign plan`.
    """
    found = _existing(folder)
    is_running = any(state.pid is not None for state in states_of(found))
    node_id = found.add_node(roles or None)
    if is_running:
        start_node(found, node_id, timeout_s, _quiet)
    _show(found, output)


@cluster.command()
@nodes_argument
@folder_option
@json_option(NodeState, key="nodes")
def kill(nodes: tuple[int, ...], folder: Path, output: Output) -> None:
    """End nodes at once, as kill -9 does."""
    found = _existing(folder)
    kill_nodes(found, _checked(found, nodes))
    _show(found, output)


@cluster.command()
@nodes_argument
@folder_option
@json_option(NodeState, key="nodes")
def pause(nodes: tuple[int, ...], folder: Path, output: Output) -> None:
    """Freeze nodes (SIGSTOP): to the others they look like machines that do not answer."""
    found = _existing(folder)
    pause_nodes(found, _checked(found, nodes))
    _show(found, output)


@cluster.command()
@nodes_argument
@folder_option
@json_option(NodeState, key="nodes")
def resume(nodes: tuple[int, ...], folder: Path, output: Output) -> None:
    """Let paused nodes go on."""
    found = _existing(folder)
    resume_nodes(found, _checked(found, nodes))
    _show(found, output)


@cluster.command("nodes")
@folder_option
@json_option(NodeState, key="nodes")
def list_nodes(folder: Path, output: Output) -> None:
    """List the nodes of a local cluster, and why one is down."""
    _show(_existing(folder), output)


def _existing(folder: Path) -> ClusterFolder:
    found = ClusterFolder(folder.absolute())
    if not found.exists():
        raise click.ClickException(
            f"There is no cluster in {folder}: `pykafka-broker cluster start` makes one"
        )
    return found


def _checked(found: ClusterFolder, nodes: Sequence[int]) -> list[int]:
    """These nodes.

    Raises:
        click.BadParameter: one of them is not there.
    """
    try:
        return found.checked(nodes)
    except NoSuchNodeError as error:
        raise click.BadParameter(str(error)) from None


def _warn(found: ClusterFolder, nodes: Sequence[int], output: Output, *, restart: bool) -> None:
    if (loss := loss_by_stop(states_of(found), nodes, restart=restart)) is not None:
        output.note(f"Warning: {loss}")


def _quiet(_: str) -> None:
    """Prints nothing: the command shows the nodes when it is done."""


def _show(found: ClusterFolder, output: Output) -> None:
    states = states_of(found)
    columns = (
        Column("NODE", is_number=True),
        Column("STATE"),
        Column("ROLES", drop=2),
        Column("ADDRESS"),
        Column("PROCESS", is_number=True, drop=1),
        Column("REASON", is_prose=True, drop=3),
    )
    rows = [
        (state.node_id, state.state, ",".join(state.roles), state.address, state.pid, state.reason)
        for state in states
    ]
    output.show_all(states, changes({}, states), [Table(columns, rows)])
