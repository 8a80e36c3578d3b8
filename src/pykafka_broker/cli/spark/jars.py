"""`spark jars`: the jars of a session, fetched into a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.spark.options import package_option, table_option
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.spark.jars import Jar


class FetchedJar(NamedTuple):
    """A jar in the folder."""

    path: str
    package: str
    fetched: bool


@click.command()
@click.option(
    "--dest",
    required=True,
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Where the jars go; made if it does not exist.",
)
@table_option
@package_option
@click.option(
    "--repository",
    metavar="URL",
    envvar="PYKAFKA_BROKER_MAVEN_REPOSITORY",
    show_envvar=True,
    help="A Maven repository instead of Maven Central: https://... or file:...",
)
@json_option(FetchedJar, key="jars")
def jars(
    dest: str, tables: tuple[str, ...], packages: tuple[str, ...], repository: str | None, output: Output
) -> None:
    r"""Fetch the jars that fit the installed Spark into a folder, for sessions that do not ask the network.

    Fetches the connector and the jars that it needs and Spark lacks, each checked with its SHA-1. Right jars
    that are there already are kept. Give the folder to a session:

    \b
    kafka_session(jars="DIR")
    spark-submit $(pykafka-broker spark conf --jars DIR --as submit) job.py
    """
    from pathlib import Path

    from pykafka_broker.spark.installation import look
    from pykafka_broker.spark.jars import fetch_jars
    from pykafka_broker.spark.releases import packages as packages_of
    from pykafka_broker.spark.releases import parse_coordinates
    from pykafka_broker.spark.repository import CENTRAL, Repository

    installation = look()
    wanted = [*packages_of(installation.spark, installation.scala, tables), *map(parse_coordinates, packages)]

    with output.one_by_one() as each:

        def report(jar: Jar) -> None:
            each.show(FetchedJar(str(jar.path), str(jar.coordinates), jar.was_fetched), [str(jar.path)])

        fetch_jars(Path(dest), wanted, installation.jars, Repository(repository or CENTRAL), report)
