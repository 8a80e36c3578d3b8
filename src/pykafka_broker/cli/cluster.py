"""The cluster that a command talks to: the options that name it, and a client for it.

At a terminal it shows what it waits for, and suggests `doctor` if no broker may be there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource

from pykafka_broker import __version__
from pykafka_broker.cli.options import Seconds, gathered, list_option
from pykafka_broker.cli.output import Invocation
from pykafka_broker.cli.progress import waiting_for
from pykafka_broker.cli.security import client_properties, identity_with, security_options
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.addresses import parse_address, parse_addresses
from pykafka_broker.client.core.connection import SOFTWARE_NAME, ClientSecurity, Identity
from pykafka_broker.client.core.retries import RETRIABLE
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.system.named_tuple import NamedTuple

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_BOOTSTRAP_SERVER = "127.0.0.1:9092"
#: The least time that a node has to say why it does not do what it is asked for.
WHY_WITHIN_S = 1.0
#: The errors of brokers that wait for a controller, or for a leader or coordinator while no controller elects
#: one.
_OF_LOST_QUORUMS = RETRIABLE | {
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
}
COMMAND = Identity(SOFTWARE_NAME, __version__, kind="command")


class Cluster(NamedTuple):
    """The cluster that a command talks to, and the timeout of its answers."""

    bootstrap_server: str
    timeout_s: float
    command_config: str | None = None
    login: str | None = None
    ca: str | None = None
    bootstrap_controller: str | None = None

    def __repr__(self) -> str:
        """The fields without the login, which may have a password."""
        return f"Cluster({self.bootstrap_server!r})"

    @property
    def identity(self) -> Identity:
        """The identity of a client, secured as the options say.

        Raises:
            click.ClickException: the security that they ask for is not supported.
        """
        return identity_with(COMMAND, self.command_config, self.login, self.ca)

    def client_properties(self) -> dict[str, str]:
        """The same security in the keys of Kafka's clients, for Spark's connector.

        Raises:
            KafkaError, OSError: the broker does not tell which mechanisms it offers.
            click.ClickException: the security that the options ask for is not supported.
        """
        security = self.identity.security
        login = None if security is None else security.login
        if login is not None:
            with self.connect() as client:
                client.metadata([])
        mechanism = None if login is None else login.mechanism
        return client_properties(mechanism, self.command_config, self.login, self.ca)

    def connect(self) -> Client:
        """A client of the cluster, or of its controllers where these are named.

        Raises:
            ValueError: the bootstrap servers are no addresses.
            click.ClickException: the security that the options ask for is not supported.
        """
        if self.bootstrap_controller is not None:
            from pykafka_broker.client.controllers import Controllers

            identity = self.identity
            return Controllers(
                self.bootstrap_controller, self.timeout_s, identity=identity, notices=_Notices(identity)
            )
        return self.connect_to(self.bootstrap_server, self.timeout_s)

    def within(self, timeout_s: float) -> Cluster:
        """The same, with at most this time-out."""
        return self._replace(timeout_s=min(self.timeout_s, timeout_s))

    def at(self, address: str) -> Cluster:
        """The same, reached through a node that has answered at this address."""
        if self.bootstrap_controller is not None:
            return self._replace(bootstrap_controller=address)
        return self._replace(bootstrap_server=address)

    def addressed(self, text: str) -> str:
        """The text; the commands of ours that it proposes ask this cluster, as the same user."""
        from pykafka_broker.cli.proposals import addressed

        return addressed(text, self._asdict())

    def connect_to(self, address: str, timeout_s: float) -> Client:
        """A client for brokers at another address."""
        return connected(address, timeout_s, self.identity.security)


def connected(address: str, timeout_s: float, security: ClientSecurity | None = None) -> Client:
    """A client of a command for the brokers at an address."""
    identity = COMMAND._replace(security=security)
    return Client(address, timeout_s, identity=identity, notices=_Notices(identity))


class _Notices:
    def __init__(self, identity: Identity) -> None:
        login, tls = identity.security or (None, None)
        missing = [*(() if login else ("--user",)), *(() if tls else ("--ca",))]
        #: The options that were not given, although the broker may ask for them.
        self._missing = " and ".join(missing)
        self._login = login

    def waiting_for(self, peer: str) -> AbstractContextManager[None]:
        return waiting_for(peer)

    def doubts(self, peer: str, error: Exception) -> None:
        error.add_note(f"`pykafka-broker doctor {peer}` may tell why")

    def not_let_in(self, peer: str, error: KafkaError) -> None:
        # Here and not above: `health` does without it.
        from pykafka_broker.client.core.authentication import Login

        if isinstance(self._login, Login) and self._login.alternatives:
            error.add_note(
                f"{self._login.mechanism} was used; where the user has a password for "
                f"{' or '.join(self._login.alternatives)}, say so with sasl.mechanism in --command-config"
            )

    def refused(self, peer: str, error: ConnectionError) -> None:
        if self._missing:
            error.add_note(f"a broker with SASL or TLS needs {self._missing}, or --command-config")


def cluster_options(command: Command) -> Command:
    """Give a command the options that say which cluster it talks to, as one `cluster`."""
    return _cluster_options(command, "--user")


def cluster_options_beside_users(command: Command) -> Command:
    """The same, for a command that has a `--user` of its own."""
    return _cluster_options(command, "--login")


def cluster_or_controller_options(command: Command) -> Command:
    """The same, for a command that controllers serve too: they may be named instead of brokers."""
    return _cluster_or_controller_options(command, "--user")


def cluster_or_controller_options_beside_users(command: Command) -> Command:
    """The same, for a command that has a `--user` of its own."""
    return _cluster_or_controller_options(command, "--login")


def _cluster_or_controller_options(command: Command, login_flag: str) -> Command:
    @functools.wraps(command)
    def run(cluster: Cluster, **options: Any) -> Any:
        named = click.get_current_context().get_parameter_source("bootstrap_server")
        if cluster.bootstrap_controller is not None and named is ParameterSource.COMMANDLINE:
            raise click.UsageError("Name either --bootstrap-server or --bootstrap-controller.")
        return command(cluster=cluster, **options)

    return list_option(
        "--bootstrap-controller",
        metavar="HOST:PORT[,…]",
        callback=_check_addresses,
        help="Ask these controllers, at their own listeners, instead of brokers.",
    )(_cluster_options(cast("Command", run), login_flag))


def propose_for(cluster: Cluster) -> None:
    """Have the errors and notes of the running command propose commands that ask this cluster."""
    context = click.get_current_context(silent=True)
    invocation = None if context is None else context.find_object(Invocation)
    if invocation is not None:
        invocation.addressed = cluster.addressed


@contextmanager
def telling_of_loss(cluster: Cluster) -> Iterator[None]:
    """Add to an error of the body its possible reason: no controller leads, or the broker that was asked is
    not part of the cluster. The commands that it proposes ask this cluster.
    """
    propose_for(cluster)
    try:
        yield
    except (ConnectionError, TimeoutError, KafkaError) as error:
        # A broken pipe means that the reader of the output has gone.
        is_of_cluster = not isinstance(error, KafkaError | BrokenPipeError)
        if is_of_cluster or (isinstance(error, KafkaError) and error.code in _OF_LOST_QUORUMS):
            reason = why_unanswered(cluster) or _why_left_out(cluster) or _why_refused(cluster)
            if reason:
                error.add_note(reason)
        raise


def _telling_of_loss(command: Command) -> Command:
    @functools.wraps(command)
    def run(cluster: Cluster, **options: Any) -> Any:
        with telling_of_loss(cluster):
            return command(cluster=cluster, **options)

    return cast("Command", run)


def loss_of(cluster: Cluster, client: Client) -> str | None:
    """What the broker asked by this client says about a lost quorum, and how old its metadata is; None if a
    controller leads, or the broker does not tell.
    """
    from pykafka_broker.client.quorum import QUORUM_WITHIN_S, LostQuorum
    from pykafka_broker.doctor.quorum import Source, look, told_of_loss

    told_by = client.connection()
    with cluster.within(QUORUM_WITHIN_S).at(told_by.peer).connect() as asked:
        lost = look(asked)
    if not isinstance(lost, LostQuorum):
        return None
    return told_of_loss(lost, Source(told_by.peer, told_by.metadata_offset), None)


def why_unanswered(cluster: Cluster) -> str:
    """Why a cluster without a quorum does not do what it is asked for; "" if a controller leads, or no node
    tells.
    """
    from pykafka_broker.client.quorum import QUORUM_WITHIN_S, LostQuorum
    from pykafka_broker.doctor.quorum import Source, look, silent_voters, why_nothing_changes

    try:
        # Even if the command's own time-out is shorter: a node that knows answers at once.
        cluster = cluster._replace(timeout_s=max(WHY_WITHIN_S, cluster.timeout_s)).within(QUORUM_WITHIN_S)
        with cluster.connect() as client:
            # A node that refuses this client also refuses this request.
            client.cluster_id()
            source = Source(client.connection().peer)
        with cluster.at(source.address).connect() as client:
            lost = look(client)
    except (OSError, KafkaError, ProtocolError):
        return ""
    if not isinstance(lost, LostQuorum):
        return ""
    return why_nothing_changes(
        lost, source, silent_voters(lost, () if lost.node_id is None else (lost.node_id,))
    )


def _why_left_out(cluster: Cluster) -> str:
    """Why the broker that answers first may do nothing for a client: it is not registered, or fenced. "" if
    it is neither, or does not tell.
    """
    from pykafka_broker.client.quorum import QUORUM_WITHIN_S
    from pykafka_broker.doctor.brokers import judge_standing, standing

    try:
        with cluster.within(QUORUM_WITHIN_S).connect() as client:
            found = standing(client)
            address = parse_address(client.connection().peer)
    except (OSError, KafkaError, ProtocolError):
        return ""
    finding = judge_standing(address, found)
    return "" if finding is None else f"{finding.message[0].lower()}{finding.message[1:]} {finding.remedy}"


def _why_refused(cluster: Cluster) -> str:
    """Which process of this machine is to listen where none does, and what its controller waits for; "" if
    there is none.
    """
    from pykafka_broker.doctor.reach import probe
    from pykafka_broker.doctor.starting import starting_at
    from pykafka_broker.system.host_text import is_loopback

    for address in parse_addresses(cluster.bootstrap_server):
        if not is_loopback(address.host):
            continue
        starting = starting_at(address, probe(address, WHY_WITHIN_S))
        if starting is not None:
            asked = cluster._replace(bootstrap_controller=starting.controller)
            why = why_unanswered(asked) if starting.controller else ""
            return (
                f"{starting.process}, which is to listen at {address}, is still starting{why and '; '}{why}"
            )
    return ""


def _cluster_options(command: Command, login_flag: str) -> Command:
    command = security_options(gathered(Cluster, "cluster")(_telling_of_loss(command)), login_flag)
    command = click.option(
        "--timeout",
        "timeout_s",
        type=Seconds(0.1),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for the cluster.",
    )(command)
    return list_option(
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


def _check_addresses(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    try:
        if value is not None:
            parse_addresses(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return value
