"""`version`: the versions of this package, of the metadata it formats, and of Python; for reports of bugs."""

from __future__ import annotations

import platform

import click

from pykafka_broker import __version__
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.system.named_tuple import NamedTuple


class Version(NamedTuple):
    """Versions of the package, of the metadata it formats (that of the release it declares), of Python."""

    version: str
    metadata_version: str
    python: str
    platform: str


@click.command()
@json_option(Version)
def version(output: Output) -> None:
    """Say which version this is."""
    from pykafka_broker.broker.formatting import metadata_version_name

    found = Version(
        __version__, metadata_version_name(), platform.python_version(), platform.platform(terse=True)
    )
    output.show(
        found,
        [
            f"pykafka-broker {found.version} (metadata.version {found.metadata_version}), "
            f"Python {found.python}, {found.platform}"
        ],
    )
