"""`health`: does a broker answer? Exit status 0 if so, 1 if not; for container health checks and scripts.

A broker that accepts connections but does not know itself yet is not healthy, so it is asked for its
metadata. Only the given address is used, never one the broker advertises: inside a container that may lead
nowhere. Without an address, the broker's own configuration tells it: KAFKA_* variables, as in the container
image, and the properties file.
"""

from __future__ import annotations

import os

import click

from pykafka_broker.cli.client import Client
from pykafka_broker.cli.options import Seconds

HEALTHY = "healthy: broker {node_id} of cluster {cluster_id} at {address}"


@click.command()
@click.argument("address", required=False, metavar="[HOST:PORT]", envvar="PYKAFKA_BROKER_BOOTSTRAP_SERVER")
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
def health(address: str | None, file: str | None, timeout_s: float) -> None:
    """Check that a broker answers; exit status 1 if it does not.

    It is the one at HOST:PORT, or the one that `start` would run here: 127.0.0.1:9092 if nothing is set.
    """
    if address is None:
        address = _own_address(file)
    try:
        client = Client(address, timeout_s)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    with client:
        metadata = client.metadata([])
    if not metadata.brokers:
        raise click.ClickException(f"The broker at {address} knows no broker, not even itself")
    node_ids = ",".join(str(broker.node_id) for broker in metadata.brokers)
    click.echo(HEALTHY.format(node_id=node_ids, cluster_id=metadata.cluster_id, address=address))


def _own_address(file: str | None) -> str:
    """Where the broker that is configured like this listens for clients."""
    from pykafka_broker.config.sources import load

    endpoint = load(file=file, environ=os.environ).broker_listeners[0]
    return f"{'127.0.0.1' if endpoint.host in ('', '0.0.0.0') else endpoint.host}:{endpoint.port}"
