"""`format`: prepare data directories, as `kafka-storage format` does.

`start` formats empty directories by itself, as `--standalone` does; this command is for preparing volumes
elsewhere, for checking them before the start, or for another release's features.
"""

from __future__ import annotations

import os
import time

import click

from pykafka_broker.cli.options import gathered, list_option
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.system.named_tuple import NamedTuple


class FormattedStorage(NamedTuple):
    """The cluster that log directories belong to now, and the directories that were formatted."""

    cluster_id: str
    metadata_version: str
    formatted: list[str]


class Choices(NamedTuple):
    """The options about the new cluster."""

    release_version: str | None
    features: tuple[str, ...]
    standalone: bool
    initial_controllers: str | None
    no_initial_controllers: bool
    scram: tuple[str, ...]

    @property
    def quorums(self) -> int:
        """How many of the options about the quorum are given."""
        return sum((self.standalone, self.initial_controllers is not None, self.no_initial_controllers))


@click.command("format")
@click.option("-c", "--config", "file", metavar="FILE", help="The server.properties file of the node.")
@click.option("-d", "--data-dir", metavar="DIR", help="The directory; same as --override log.dirs=DIR.")
@click.option("-o", "--override", "overrides", metavar="KEY=VALUE", multiple=True, help="Set one key.")
@click.option("-t", "--cluster-id", metavar="ID", help="The id of the cluster; a random one by default.")
@click.option("-g", "--ignore-formatted", is_flag=True, help="Leave alone what is formatted already.")
@click.option("-s", "--standalone", is_flag=True, help="The node is a quorum by itself; the default.")
@list_option(
    "-I",
    "--initial-controllers",
    metavar="ID@HOST:PORT:DIRECTORY,...",
    help="The first voters of the quorum, the same for all its nodes.",
)
@click.option("-N", "--no-initial-controllers", is_flag=True, help="The quorum is there already.")
@click.option("-r", "--release-version", metavar="VERSION", help="The release whose features are used.")
@click.option("-f", "--feature", "features", metavar="NAME=LEVEL", multiple=True, help="One feature's level.")
@click.option(
    "-S",
    "--add-scram",
    "scram",
    metavar="MECHANISM=[name=USER,password=PASSWORD]",
    multiple=True,
    help="A user who may log in with SCRAM from the first start on.",
)
@gathered(Choices, "choices")
@json_option(FormattedStorage)
def format_storage(
    file: str | None,
    data_dir: str | None,
    overrides: tuple[str, ...],
    cluster_id: str | None,
    ignore_formatted: bool,
    choices: Choices,
    output: Output,
) -> None:
    """Prepare the data directories of a node for a new cluster.

    Configuration comes from the same places as for `start`.
    """
    from pykafka_broker.broker.formatting import NewCluster, format_directories, metadata_version_name
    from pykafka_broker.config.sources import load_config
    from pykafka_broker.controller.core.initial_features import parse_features
    from pykafka_broker.log.disk.files import OsFileSystem

    config = load_config(
        file=file, environ=os.environ, overrides=overrides, data_dir=data_dir, cluster_id=cluster_id
    )
    if choices.quorums > 1:
        raise click.UsageError(
            "--standalone, --initial-controllers and --no-initial-controllers exclude each other."
        )
    try:
        levels = parse_features(choices.features)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    new = NewCluster(**{**choices._asdict(), "features": levels})
    formatted = format_directories(
        OsFileSystem(), config, now_ms=time.time_ns() // 1_000_000, ignore_formatted=ignore_formatted, new=new
    )
    version = metadata_version_name(new)
    directories = list(formatted.directory_ids)
    done = [
        f"Formatting {kind} {path} with metadata.version {version}." for path, kind in formatted.kinds.items()
    ]
    output.show(
        FormattedStorage(formatted.cluster_id, version, directories),
        [
            *(done or ["All of the log directories are already formatted."]),
            f"Cluster id: {formatted.cluster_id}",
        ],
    )
