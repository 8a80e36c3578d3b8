"""`health`: does a broker answer, and can it do its work? For container health checks and scripts.

Exit status 0: healthy. 1: no answer. 3: degraded, that is, it answers, but a log directory is out of service
or takes no more records, or it finds no controller that leads (2 is click's, for wrong usage). A degraded
broker goes on serving as well as it can, and a restart makes no room on a disk and brings back no quorum, so
a check that restarts containers should count 3 as alive: docker/health does.

A broker that accepts connections but does not know itself yet is not healthy, so it is asked for its
metadata. Only the given address is used, never one the broker advertises: inside a container that may lead
nowhere. Without an address, the broker's own configuration tells it: KAFKA_* variables, as in the container
image, and the properties file.

A secured broker tells its state to users: `--command-config`, `--user` and `--ca`. One that is found by its
configuration is asked without them too, as far as it answers a stranger (own_listener.py); `checked` says how
far that was: "metadata" as above, "versions" that it answers ApiVersions, "handshake" that it answers TLS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from pykafka_broker.cli.cluster import COMMAND, connected
from pykafka_broker.cli.options import Seconds, gathered
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.security import Credentials, identity_with, security_options
from pykafka_broker.client.addresses import parse_addresses
from pykafka_broker.client.blocking import Client
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.cli.own_listener import OwnListener
    from pykafka_broker.client.connection import Security

STATUS = "{status}: broker {node_id} of cluster {cluster_id} at {address}"
STATUS_FOR_STRANGERS = {
    "versions": "healthy: a broker at {address}, which tells no more without --user or --command-config",
    "handshake": "healthy: {address} answers TLS, and tells no more without a certificate (--command-config)",
}
DEGRADED_STATUS = 3
#: How long the leader of the quorum may take to answer: the image's health check has 3 s for everything.
LEADER_WITHIN_S = 1.0
#: A disk with less room refuses a batch of the greatest size that brokers take by default.
LEAST_USABLE_BYTES = 1 << 20
#: The value with which a broker reports that it does not know the room.
UNKNOWN_BYTES = -1


class Problem(NamedTuple):
    """What keeps a broker from its work: `problem` is "offline" or "full", of a log directory, or
    "no quorum"; `text` is a sentence.
    """

    log_dir: str | None
    usable_bytes: int | None
    problem: str
    text: str


class Health(NamedTuple):
    """A broker that answers; `status` is "healthy" or "degraded", `checked` how far it could be asked."""

    status: str
    node_ids: list[int]
    cluster_id: str | None
    address: str
    problems: list[Problem]
    checked: str


@click.command()
@click.argument("address", required=False, metavar="[HOST:PORT]")
@click.option(
    "-b",
    "--bootstrap-server",
    metavar="HOST:PORT",
    envvar="PYKAFKA_BROKER_BOOTSTRAP_SERVER",
    show_envvar=True,
    help="The same as HOST:PORT, named as other commands name it.",
)
@click.option("-c", "--config", "file", metavar="FILE", help="The broker's server.properties, if it has one.")
@click.option(
    "--timeout",
    "timeout_s",
    type=Seconds(0.1),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Patience.",
)
@security_options
@json_option(Health)
@gathered(Credentials, "credentials")
@click.pass_context
def health(
    ctx: click.Context,
    address: str | None,
    bootstrap_server: str | None,
    file: str | None,
    timeout_s: float,
    credentials: Credentials,
    output: Output,
) -> int:
    """Check that a broker answers, that its disks take records, and that a controller leads.

    Exit status 0: healthy; 1: no answer; 3: it answers, but a log directory is out of service or full, or it
    has lost the quorum.

    It is the one at HOST:PORT, or the one that `start` would run here: 127.0.0.1:9092 if nothing is set. If
    the latter has secured listeners alone, and nothing here says who asks, it is healthy if it answers
    ApiVersions, or TLS where it requires a certificate.
    """
    if address is None:
        address = bootstrap_server
    elif ctx.get_parameter_source("bootstrap_server") is ParameterSource.COMMANDLINE:
        raise click.UsageError("HOST:PORT is given twice, once with --bootstrap-server.")
    if address is not None:
        try:
            parse_addresses(address)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
        found = _asked(address, timeout_s, identity_with(COMMAND, *credentials).security)
    else:
        from pykafka_broker.cli.own_listener import for_security, listeners_of, most_open

        listeners = listeners_of(file)
        security = identity_with(COMMAND, *credentials).security
        if security is not None:
            address = str(for_security(listeners, security).address)
            found = _asked(address, timeout_s, security)
        else:
            found = _asked_by_stranger(most_open(listeners), timeout_s)
    output.show(found, _lines(found))
    return DEGRADED_STATUS if found.problems else 0


def _asked(address: str, timeout_s: float, security: Security | None) -> Health:
    with connected(address, timeout_s, security) as client:
        metadata = client.metadata([])
        problems = list(_disk_problems(client))
    with connected(address, min(timeout_s, LEADER_WITHIN_S), security) as client:
        problems += _quorum_problems(client)
    if not metadata.brokers:
        raise click.ClickException(f"The broker at {address} knows no broker, not even itself")
    return Health(
        status="degraded" if problems else "healthy",
        node_ids=[broker.node_id for broker in metadata.brokers],
        cluster_id=metadata.cluster_id,
        address=address,
        problems=problems,
        checked="metadata",
    )


def _asked_by_stranger(listener: OwnListener, timeout_s: float) -> Health:
    from pykafka_broker.cli.own_listener import greet, stranger

    address = str(listener.address)
    if listener.needs_certificate:
        greet(listener.address, timeout_s)
        return Health("healthy", [], None, address, [], "handshake")
    if not listener.needs_user:
        return _asked(address, timeout_s, stranger(listener))
    with connected(address, timeout_s, stranger(listener)) as client:
        client.connection()
    return Health("healthy", [], None, address, [], "versions")


def _lines(found: Health) -> list[str]:
    told = STATUS_FOR_STRANGERS.get(found.checked, STATUS).format(
        status=found.status,
        node_id=",".join(map(str, found.node_ids)),
        cluster_id=found.cluster_id,
        address=found.address,
    )
    return [told, *(f"  {problem.text}" for problem in found.problems)]


def _quorum_problems(client: Client) -> Iterator[Problem]:
    """Whether a controller leads, as far as the broker tells this client."""
    from pykafka_broker.client.quorum import quorum_status
    from pykafka_broker.protocol.errors import KafkaError

    try:
        found = quorum_status(client)
    except KafkaError:  # a broker without this API
        return
    if found is None:
        yield Problem(
            None, None, "no quorum", f"no controller that leads answers within {client.timeout_s:g} s"
        )


def _disk_problems(client: Client) -> Iterator[Problem]:
    """The problems of the broker's log directories, as far as it tells this client."""
    from pykafka_broker.protocol.errors import ErrorCode, KafkaError
    from pykafka_broker.protocol.messages.describe_log_dirs import DescribeLogDirsRequest

    try:
        answer = client.send(DescribeLogDirsRequest(topics=[]))
    except KafkaError:  # a broker without this API
        return
    for result in answer.results:
        if result.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            text = f"{result.log_dir} is out of service"
            yield Problem(result.log_dir, result.usable_bytes, "offline", text)
        elif UNKNOWN_BYTES < result.usable_bytes < LEAST_USABLE_BYTES:
            text = (
                f"{result.log_dir} takes no more records: "
                f"{result.usable_bytes} of {result.total_bytes} bytes are usable"
            )
            yield Problem(result.log_dir, result.usable_bytes, "full", text)
