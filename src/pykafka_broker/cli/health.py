"""`health`: does a broker answer? Exit status 0 if so, 1 if not; for container health checks and scripts.

A broker that accepts connections but does not know itself yet is not healthy, so it is asked for its
metadata. Only the given address is used, never one the broker advertises: inside a container that may lead
nowhere. Without an address, the clients' listener in KAFKA_LISTENERS tells the port, as in the container
image.
"""

from __future__ import annotations

import os

import click

from pykafka_broker.cli.client import Client
from pykafka_broker.cli.options import DEFAULT_BOOTSTRAP_SERVER

HEALTHY = "healthy: broker {node_id} of cluster {cluster_id} at {address}"


@click.command()
@click.argument("address", required=False, metavar="[HOST:PORT]", envvar="PYKAFKA_BROKER_BOOTSTRAP_SERVER")
@click.option(
    "--timeout", "timeout_s", type=float, default=5.0, show_default=True, metavar="SECONDS", help="Patience."
)
def health(address: str | None, timeout_s: float) -> None:
    """Check that the broker at HOST:PORT (127.0.0.1:9092) answers; exit status 1 if it does not."""
    if address is None:
        address = _own_address(os.environ)
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


def _own_address(environ: os._Environ[str] | dict[str, str]) -> str:
    """Where the broker of this container listens for clients."""
    controllers = environ.get("KAFKA_CONTROLLER_LISTENER_NAMES", "CONTROLLER").split(",")
    for entry in environ.get("KAFKA_LISTENERS", "").split(","):
        name, separator, address = entry.strip().partition("://")
        if separator and name not in controllers:
            host, _, port = address.rpartition(":")
            return f"{'127.0.0.1' if host in ('', '0.0.0.0') else host}:{port}"
    return DEFAULT_BOOTSTRAP_SERVER
