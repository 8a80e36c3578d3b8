"""`format`: prepare data directories, as `kafka-storage format --standalone` does.

`start` does the same by itself when it finds empty directories; this command is for those who want to see it
done first, or who prepare volumes elsewhere.
"""

from __future__ import annotations

import os
import time

import click

from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.system.named_tuple import NamedTuple


class FormattedStorage(NamedTuple):
    """The cluster that log directories belong to now, and those that did not before."""

    cluster_id: str
    metadata_version: str
    formatted: list[str]


@click.command("format")
@click.option("-c", "--config", "file", metavar="FILE", help="The server.properties file of the node.")
@click.option("-d", "--data-dir", metavar="DIR", help="The directory; same as --override log.dirs=DIR.")
@click.option("-o", "--override", "overrides", metavar="KEY=VALUE", multiple=True, help="Set one key.")
@click.option("-t", "--cluster-id", metavar="ID", help="The id of the cluster; a random one by default.")
@click.option("--ignore-formatted", is_flag=True, help="Leave alone what is formatted already.")
@json_option(FormattedStorage)
def format_storage(
    file: str | None,
    data_dir: str | None,
    overrides: tuple[str, ...],
    cluster_id: str | None,
    ignore_formatted: bool,
    output: Output,
) -> None:
    """Prepare the data directories of a node for a new cluster.

    Configuration comes from the same places as for `start`.
    """
    from pykafka_broker.broker.storage import format_directories, metadata_version_name
    from pykafka_broker.config.sources import load_config
    from pykafka_broker.log.disk.files import OsFileSystem

    config = load_config(
        file=file, environ=os.environ, overrides=overrides, data_dir=data_dir, cluster_id=cluster_id
    )
    formatted = format_directories(
        OsFileSystem(), config, now_ms=time.time_ns() // 1_000_000, ignore_formatted=ignore_formatted
    )
    version = metadata_version_name()
    directories = list(formatted.directory_ids)
    done = [f"Formatting {directory} with metadata.version {version}." for directory in directories]
    output.show(
        FormattedStorage(formatted.cluster_id, version, directories),
        [
            *(done or ["All of the log directories are already formatted."]),
            f"Cluster id: {formatted.cluster_id}",
        ],
    )
