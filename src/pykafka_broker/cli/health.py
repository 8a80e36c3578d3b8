"""`health`: does a broker answer, and do its disks take records? For container health checks and scripts.

Exit status 0: healthy. 1: no answer. 3: degraded, that is, it answers, but a log directory is out of service
or takes no more records (2 is click's, for wrong usage). A degraded broker goes on serving as well as it can,
and a restart makes no room on a disk, so a check that restarts containers should count 3 as alive:
docker/health does.

A broker that accepts connections but does not know itself yet is not healthy, so it is asked for its
metadata. Only the given address is used, never one the broker advertises: inside a container that may lead
nowhere. Without an address, the broker's own configuration tells it: KAFKA_* variables, as in the container
image, and the properties file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import click
from click.core import ParameterSource

from pykafka_broker.cli.cluster import Cluster
from pykafka_broker.cli.options import Seconds
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.client.blocking import Client
from pykafka_broker.system.named_tuple import NamedTuple

STATUS = "{status}: broker {node_id} of cluster {cluster_id} at {address}"
DEGRADED_STATUS = 3
#: A disk with less room refuses a batch of the greatest size that brokers take by default.
LEAST_USABLE_BYTES = 1 << 20
#: The value with which a broker reports that it does not know the room.
UNKNOWN_BYTES = -1


class DiskProblem(NamedTuple):
    """A problem of a log directory: `problem` is "offline" or "full", `text` a sentence."""

    log_dir: str
    usable_bytes: int
    problem: str
    text: str


class Health(NamedTuple):
    """A broker that answers; `status` is "healthy" or "degraded"."""

    status: str
    node_ids: list[int]
    cluster_id: str | None
    address: str
    problems: list[DiskProblem]


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
@json_option(Health)
@click.pass_context
def health(
    ctx: click.Context,
    address: str | None,
    bootstrap_server: str | None,
    file: str | None,
    timeout_s: float,
    output: Output,
) -> int:
    """Check that a broker answers and that its disks take records.

    Exit status 0: healthy; 1: no answer; 3: it answers, but a log directory is out of service or full.

    It is the one at HOST:PORT, or the one that `start` would run here: 127.0.0.1:9092 if nothing is set.
    """
    if address is None:
        address = bootstrap_server or _own_address(file)
    elif ctx.get_parameter_source("bootstrap_server") is ParameterSource.COMMANDLINE:
        raise click.UsageError("HOST:PORT is given twice, once with --bootstrap-server.")
    try:
        client = Cluster(address, timeout_s).connect()
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    with client:
        metadata = client.metadata([])
        problems = list(_disk_problems(client))
    if not metadata.brokers:
        raise click.ClickException(f"The broker at {address} knows no broker, not even itself")
    found = Health(
        status="degraded" if problems else "healthy",
        node_ids=[broker.node_id for broker in metadata.brokers],
        cluster_id=metadata.cluster_id,
        address=address,
        problems=problems,
    )
    output.show(found, _lines(found))
    return DEGRADED_STATUS if problems else 0


def _lines(found: Health) -> list[str]:
    told = STATUS.format(
        status=found.status,
        node_id=",".join(map(str, found.node_ids)),
        cluster_id=found.cluster_id,
        address=found.address,
    )
    return [told, *(f"  {problem.text}" for problem in found.problems)]


def _disk_problems(client: Client) -> Iterator[DiskProblem]:
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
            yield DiskProblem(result.log_dir, result.usable_bytes, "offline", text)
        elif UNKNOWN_BYTES < result.usable_bytes < LEAST_USABLE_BYTES:
            text = (
                f"{result.log_dir} takes no more records: "
                f"{result.usable_bytes} of {result.total_bytes} bytes are usable"
            )
            yield DiskProblem(result.log_dir, result.usable_bytes, "full", text)


def _own_address(file: str | None) -> str:
    """The address at which the broker with this configuration listens for clients."""
    from pykafka_broker.config.sources import load_config

    endpoint = load_config(file=file, environ=os.environ).broker_listeners[0]
    return f"{'127.0.0.1' if endpoint.host in ('', '0.0.0.0') else endpoint.host}:{endpoint.port}"
