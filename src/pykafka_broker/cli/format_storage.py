"""`format`: prepare data directories, as `kafka-storage format --standalone` does.

`start` does the same by itself when it finds empty directories; this command is for those who want to see it
done first, or who prepare volumes elsewhere.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pykafka_broker.config import BrokerConfig

#: Where a controller that nobody else needs to reach is said to be.
UNREACHED_CONTROLLER = ("localhost", 9093)


@click.command("format")
@click.option("-c", "--config", "file", metavar="FILE", help="The server.properties file of the node.")
@click.option("-d", "--data-dir", metavar="DIR", help="The directory; same as --override log.dirs=DIR.")
@click.option("-o", "--override", "overrides", metavar="KEY=VALUE", multiple=True, help="Set one key.")
@click.option("-t", "--cluster-id", metavar="ID", help="The id of the cluster; a random one by default.")
@click.option("--ignore-formatted", is_flag=True, help="Leave alone what is formatted already.")
def format_storage(
    file: str | None,
    data_dir: str | None,
    overrides: tuple[str, ...],
    cluster_id: str | None,
    ignore_formatted: bool,
) -> None:
    """Prepare the data directories of a node for a new cluster.

    Prints the cluster's id. Configuration comes from the same places as for `start`.
    """
    from pykafka_broker.config.sources import load

    config = load(
        file=file, environ=os.environ, overrides=overrides, data_dir=data_dir, cluster_id=cluster_id
    )
    for line in format_directories(config, ignore_formatted=ignore_formatted):
        click.echo(line)


def format_directories(config: BrokerConfig, *, ignore_formatted: bool) -> list[str]:
    """Format every directory of the node that is not; returns what to tell about it.

    Raises:
        StorageFormatError: a directory belongs to something else, or is formatted and may not be.
    """
    from pykafka_broker.cluster.features import METADATA_VERSION_NAMES, SERVED_FEATURES, bootstrap_records
    from pykafka_broker.cluster.image import METADATA_VERSION
    from pykafka_broker.cluster.records import encode_record
    from pykafka_broker.log.files import OsFileSystem
    from pykafka_broker.raft.format import format_storage as write_format

    level = SERVED_FEATURES[METADATA_VERSION]
    formatted = write_format(
        OsFileSystem(),
        config.log_dirs,
        node_id=config.node_id,
        bootstrap_values=[encode_record(record, level) for record in bootstrap_records()],
        controller_endpoints=controller_endpoints(config),
        now_ms=time.time_ns() // 1_000_000,
        cluster_id=config.cluster_id,
        metadata_directory=config.metadata_log_dir,
        ignore_formatted=ignore_formatted,
    )
    lines = [
        f"Formatting {directory} with metadata.version {METADATA_VERSION_NAMES[level]}."
        for directory in formatted.directory_ids
    ]
    return [*(lines or ["All of the log directories are already formatted."]), formatted.cluster_id]


def controller_endpoints(config: BrokerConfig) -> dict[str, tuple[str, int]]:
    """Where the voters of the quorum find this controller."""
    if not config.controller_listeners:
        return {config.controller_listener_names[0]: UNREACHED_CONTROLLER}
    return {e.name: (e.host or "localhost", e.port) for e in config.controller_listeners}
