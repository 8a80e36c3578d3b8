"""The cluster that a command talks to: the options that name it, and a client for it.

At a terminal it shows what it waits for, and points to `doctor` where there may be no broker.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import click

from pykafka_broker import __version__
from pykafka_broker.cli.options import Seconds, gathered
from pykafka_broker.cli.progress import waiting_for
from pykafka_broker.client.addresses import parse_addresses
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.connection import SOFTWARE_NAME, Identity
from pykafka_broker.system.named_tuple import NamedTuple

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_BOOTSTRAP_SERVER = "127.0.0.1:9092"
COMMAND = Identity(SOFTWARE_NAME, __version__, kind="command")


class Cluster(NamedTuple):
    """The cluster that a command talks to, and the timeout of its answers."""

    bootstrap_server: str
    timeout_s: float

    def connect(self) -> Client:
        """A client of the cluster.

        Raises:
            ValueError: the bootstrap servers are no addresses.
        """
        return Client(self.bootstrap_server, self.timeout_s, identity=COMMAND, notices=_Notices())


def connected(address: str, timeout_s: float) -> Client:
    """A client of a command for the brokers at an address."""
    return Cluster(address, timeout_s).connect()


class _Notices:
    def waiting_for(self, peer: str) -> AbstractContextManager[None]:
        return waiting_for(peer)

    def doubts(self, peer: str, error: Exception) -> None:
        error.add_note(f"`pykafka-broker doctor {peer}` may tell why")


def cluster_options(command: Command) -> Command:
    """Give a command the options that say which cluster it talks to, as one `cluster`."""
    command = gathered(Cluster, "cluster")(command)
    command = click.option(
        "--timeout",
        "timeout_s",
        type=Seconds(0.1),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for the cluster.",
    )(command)
    return click.option(
        "-b",
        "--bootstrap-server",
        metavar="HOST:PORT[,…]",
        envvar="PYKAFKA_BROKER_BOOTSTRAP_SERVER",
        show_envvar=True,
        default=DEFAULT_BOOTSTRAP_SERVER,
        show_default=True,
        callback=_check_addresses,
        help="Brokers to ask first.",
    )(command)


def _check_addresses(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    try:
        parse_addresses(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return value
