"""Options that commands of `spark` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from pykafka_broker.spark.releases import TABLES

Command = TypeVar("Command", bound=Callable[..., Any])


def table_option(command: Command) -> Command:
    """The table formats that the session uses."""
    return click.option(
        "--table",
        "tables",
        multiple=True,
        type=click.Choice(TABLES),
        help="Also what this table format needs; repeatable.",
    )(command)


def package_option(command: Command) -> Command:
    """Other packages of the session."""
    return click.option(
        "--package",
        "packages",
        multiple=True,
        metavar="GROUP:ARTIFACT:VERSION",
        help="Also this package; repeatable.",
    )(command)


def jars_option(command: Command) -> Command:
    """The folder of jars that the session uses instead of asking Ivy."""
    return click.option(
        "--jars",
        "jars",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False),
        help="A folder made by `spark jars --dest`, used instead of Ivy.",
    )(command)
