"""The option that names the folder of a local cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pykafka_broker.local_cluster.folder import DEFAULT_FOLDER


def folder_option(command: Any) -> Any:
    """Give a command the folder of a local cluster."""
    return click.option(
        "-d",
        "--data-dir",
        "folder",
        type=click.Path(file_okay=False, path_type=Path),
        default=DEFAULT_FOLDER,
        show_default=True,
        metavar="DIR",
        help="The folder of the cluster.",
    )(command)
