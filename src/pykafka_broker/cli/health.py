"""`health`: does a broker answer, and can it do its work? For container health checks, probes and scripts.

    --alive     it answers ApiVersions, as a controller does too: a restart would not help
    --serving   it is registered and not fenced: clients are sent to it
    --ready     it can commit: a controller leads, its disks take records, and enough replicas of the
                partitions that it leads are in sync for acks=all

Exit status 0: yes, or, without an option, healthy. 1: no answer. 3: it answers no, or, without an option,
degraded: all of the above but the replicas is checked (2 is click's, for wrong usage). A degraded broker goes
on serving as well as it can, and a restart makes no room on a disk and brings back no quorum, so a check that
restarts containers should count 3 as alive: docker/health does.

Only the given address is used, never one the broker advertises: inside a container that may lead nowhere.
Without an address, the broker's own configuration tells it: KAFKA_* variables, as in the container image, and
the properties file.

A secured broker tells its state to users: `--command-config`, `--user` and `--ca`. `--alive` needs none of
them (liveness.py). A broker that refuses them has answered: it is degraded. A broker that is found by its
configuration is asked without them too, as far as it answers a stranger (own_listener.py); `checked` says how
far that was: "metadata" as above, "versions" that it answers ApiVersions, "handshake" that it answers TLS.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from pykafka_broker.cli.cluster import COMMAND, Cluster, connected, propose_for
from pykafka_broker.cli.liveness import greet, sign_of_life, stranger
from pykafka_broker.cli.options import Seconds, gathered, list_option
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.security import Credentials, identity_with, prefers_tls, security_options
from pykafka_broker.client.blocking import AnswerTimeout, Client
from pykafka_broker.client.core.addresses import parse_addresses
from pykafka_broker.protocol.errors import KafkaError, ProtocolError
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.cli.own_listener import OwnListener
    from pykafka_broker.client.core.connection import ClientSecurity

STATUS = "{status}: {broker} of cluster {cluster_id} at {address}"
STATUS_FOR_STRANGERS = {
    "versions": "{status}: a broker at {address}, which tells no more without --user or --command-config",
    "handshake": "{status}: {address} answers TLS, and tells no more without a certificate "
    "(--command-config)",
}
HEALTHY = "healthy"
DEGRADED_STATUS = 3
#: How long the leader of the quorum may take to answer: the image's health check has 3 s for everything.
LEADER_WITHIN_S = 1.0
#: A disk with less room refuses a batch of the greatest size that brokers take by default.
LEAST_USABLE_BYTES = 1 << 20
#: The value with which a broker reports that it does not know the room.
UNKNOWN_BYTES = -1


class Stage(StrEnum):
    """How far a broker has come; each stage includes those before it."""

    ALIVE = "alive"
    SERVING = "serving"
    READY = "ready"


#: What keeps a broker from serving; all else keeps it from being ready.
NOT_SERVING = ("not registered", "fenced")
#: It answers, but refuses the login, the certificate or the question, or its own certificate is not trusted.
NOT_TOLD = "not told"


class Problem(NamedTuple):
    """What keeps a broker from its work. `problem` is "offline" or "full", of a log directory, or "not
    told", "not registered", "fenced", "no quorum" or "under min isr"; `text` is a sentence.
    """

    log_dir: str | None
    usable_bytes: int | None
    problem: str
    text: str


class Health(NamedTuple):
    """A broker that answers. `status` is "healthy" or "degraded", by what was asked for; `stage` is the
    highest stage that was asked for and reached. `checked` is how far it could be asked; `node_id` is None if
    the broker did not tell it.
    """

    status: str
    stage: str
    node_id: int | None
    cluster_id: str | None
    address: str
    problems: list[Problem]
    checked: str


@click.command()
@click.argument("address", required=False, metavar="[HOST:PORT]")
@list_option(
    "-b",
    "--bootstrap-server",
    metavar="HOST:PORT",
    envvar="PYKAFKA_BROKER_BOOTSTRAP_SERVER",
    show_envvar=True,
    help="The same as HOST:PORT, by the name that other commands use.",
)
@click.option("-c", "--config", "file", metavar="FILE", help="The broker's server.properties, if it has one.")
@click.option("--alive", "wanted", flag_value=Stage.ALIVE.value, help="Only: does it answer?")
@click.option("--serving", "wanted", flag_value=Stage.SERVING.value, help="Only: are clients sent to it?")
@click.option("--ready", "wanted", flag_value=Stage.READY.value, help="Can it commit what acks=all asks for?")
@click.option(
    "--timeout",
    "timeout_s",
    type=Seconds(0.1),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the broker may take to answer.",
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
    wanted: str | None,
    timeout_s: float,
    credentials: Credentials,
    output: Output,
) -> int:
    """Check that a broker answers, that clients are sent to it, that its disks take records, and that a
    controller leads.

    Exit status 0: healthy; 1: no answer; 3: it answers, but it is fenced or not registered, a log directory
    is out of service or full, or it has lost the quorum.

    It is the one at HOST:PORT, or the one that `start` would run here: 127.0.0.1:9092 if nothing is set. If
    the latter has only secured listeners, and no credentials are given, it is healthy if it answers
    ApiVersions, or TLS where it requires a certificate.
    """
    if address is None:
        address = bootstrap_server
    elif ctx.get_parameter_source("bootstrap_server") is ParameterSource.COMMANDLINE:
        raise click.UsageError("HOST:PORT is given twice, once with --bootstrap-server.")
    stage = None if wanted is None else Stage(wanted)
    if address is not None:
        _check_one(address)
        propose_for(Cluster(address, timeout_s, *credentials))
        if stage is Stage.ALIVE:
            with_tls = prefers_tls(credentials.command_config, credentials.ca)
            found = _only_alive(address, sign_of_life(address, timeout_s, with_tls), stage)
        else:
            found = _asked(address, timeout_s, identity_with(COMMAND, *credentials).security, stage)
    else:
        from pykafka_broker.cli.own_listener import for_security, listeners_of, most_open

        listeners = listeners_of(file)
        # Where a stranger is answered, a user is not needed, and may be refused.
        security = None if stage is Stage.ALIVE else identity_with(COMMAND, *credentials).security
        if security is not None:
            address = str(for_security(listeners, security).address)
            found = _asked(address, timeout_s, security, stage)
        else:
            found = _asked_by_stranger(most_open(listeners), timeout_s, stage)
    output.show(found, _lines(found, stage))
    return 0 if found.status == HEALTHY else DEGRADED_STATUS


def _check_one(address: str) -> None:
    try:
        count = len(parse_addresses(address))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if count > 1:
        raise click.UsageError(
            f"health is about one broker, and {address} names {count} addresses: ask one at a time. "
            "`pykafka-broker cluster status` and `doctor` are about all brokers of a cluster."
        )


def _asked(address: str, timeout_s: float, security: ClientSecurity | None, wanted: Stage | None) -> Health:
    try:
        return _told(address, timeout_s, security, wanted)
    except AnswerTimeout:
        raise
    except (ConnectionError, ProtocolError, KafkaError) as error:
        try:
            checked = sign_of_life(address, timeout_s, security is not None and security.tls is not None)
        except (ConnectionError, ProtocolError):
            raise error from None
        said = "; ".join([str(error), *getattr(error, "__notes__", ())])
        refused = Problem(None, None, NOT_TOLD, f"it tells this command no more: {said}")
        return Health("degraded", Stage.ALIVE.value, None, None, address, [refused], checked)


def _told(address: str, timeout_s: float, security: ClientSecurity | None, wanted: Stage | None) -> Health:
    with connected(address, timeout_s, security) as client:
        cluster_id = client.metadata([]).cluster_id
        node_id, problems = _standing(client)
        if wanted is not Stage.SERVING:
            problems += _disk_problems(client)
        if wanted is Stage.READY and node_id is not None:
            problems += _replica_problems(client, node_id)
    if wanted is not Stage.SERVING:
        with connected(address, min(timeout_s, LEADER_WITHIN_S), security) as client:
            problems += _quorum_problems(client)
    if any(problem.problem in NOT_SERVING for problem in problems):
        stage = Stage.ALIVE
    else:
        stage = Stage.SERVING if problems else wanted or Stage.READY
    return Health(
        status="degraded" if problems else HEALTHY,
        stage=stage.value,
        node_id=node_id,
        cluster_id=cluster_id,
        address=address,
        problems=problems,
        checked="metadata",
    )


def _asked_by_stranger(listener: OwnListener, timeout_s: float, wanted: Stage | None) -> Health:
    address = str(listener.address)
    if listener.needs_certificate:
        return _only_alive(address, greet(listener.address, timeout_s), wanted)
    if listener.needs_user or wanted is Stage.ALIVE:
        return _only_alive(address, sign_of_life(address, timeout_s, listener.with_tls), wanted)
    return _asked(address, timeout_s, stranger(listener.with_tls), wanted)


def _only_alive(address: str, checked: str, wanted: Stage | None) -> Health:
    """A broker that was not asked more than whether it is alive: healthy, unless more was wanted."""
    status = HEALTHY if wanted in (None, Stage.ALIVE) else "degraded"
    return Health(status, Stage.ALIVE.value, None, None, address, [], checked)


def _lines(found: Health, wanted: Stage | None) -> list[str]:
    status = found.status
    if wanted is not None:
        status = found.stage if found.status == HEALTHY else f"{found.stage}, not {wanted.value}"
    text = STATUS_FOR_STRANGERS.get(found.checked, STATUS)
    if wanted is Stage.ALIVE or any(problem.problem == NOT_TOLD for problem in found.problems):
        text = "{status}: a broker or controller answers at {address}"
    told = text.format(
        status=status,
        broker="a broker" if found.node_id is None else f"broker {found.node_id}",
        cluster_id=found.cluster_id,
        address=found.address,
    )
    return [told, *(f"  {problem.text}" for problem in found.problems)]


def _standing(client: Client) -> tuple[int | None, list[Problem]]:
    """The broker's id, and what keeps clients from it, if it tells this client."""
    from pykafka_broker.doctor.brokers import standing

    try:
        found = standing(client)
    except KafkaError:  # a broker without these APIs
        return None, []
    if found.is_registered is False:
        text = "it is not registered: it leads no partition, and clients are not told of it"
        return None, [Problem(None, None, "not registered", text)]
    if found.is_fenced:
        text = "it is fenced: it leads no partition, and clients are not told of it"
        return found.node_id, [Problem(None, None, "fenced", text)]
    return found.node_id, []


def _replica_problems(client: Client, node_id: int) -> Iterator[Problem]:
    """The partitions that the broker leads but cannot commit to: too few of their replicas are in sync."""
    from pykafka_broker.doctor.topics import is_enough, look
    from pykafka_broker.system.wording import counted, listed

    short = [
        f"{topic.name}-{partition.partition}"
        for topic in look(client)
        for partition in topic.partitions
        if partition.leader_id == node_id
        and not is_enough(partition.replicas, partition.isr, topic.min_insync_replicas)
    ]
    if short:
        text = (
            f"it leads {counted(len(short), 'partition')} with fewer replicas in sync than "
            f"min.insync.replicas ({listed(short)})"
        )
        yield Problem(None, None, "under min isr", text)


def _quorum_problems(client: Client) -> Iterator[Problem]:
    """Whether a controller leads, if the broker tells this client."""
    from pykafka_broker.client.quorum import LostQuorum, quorum_status

    try:
        found = quorum_status(client)
    except KafkaError:  # a broker without this API
        return
    if not isinstance(found, LostQuorum):
        return
    if found.age_ms is None:
        text = f"no controller that leads answers within {client.timeout_s:g} s"
    else:
        text = f"no controller leads, and none has answered this broker for {found.age_ms // 1_000:,} s"
    yield Problem(None, None, "no quorum", text)


def _disk_problems(client: Client) -> Iterator[Problem]:
    """The problems of the broker's log directories, if it tells this client."""
    from pykafka_broker.protocol.errors import ErrorCode
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
