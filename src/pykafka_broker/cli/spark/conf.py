"""`spark conf`: the settings that give a session the connector that fits the installed Spark."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

import click

from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.spark.options import jars_option, package_option, table_option
from pykafka_broker.system.named_tuple import NamedTuple


class SessionConf(NamedTuple):
    """The settings of a session."""

    spark: str
    scala: str
    settings: Mapping[str, str]


@click.command()
@table_option
@package_option
@jars_option
@click.option(
    "--as",
    "form",
    type=click.Choice(("defaults", "submit", "python")),
    default="defaults",
    show_default=True,
    help="Lines of spark-defaults.conf, arguments of spark-submit, or a program.",
)
@json_option(SessionConf)
def conf(
    tables: tuple[str, ...], packages: tuple[str, ...], jars: str | None, form: str, output: Output
) -> None:
    r"""Print the settings that give a session the Kafka connector that fits the installed Spark.

    \b
    pykafka-broker spark conf >> $SPARK_HOME/conf/spark-defaults.conf
    spark-submit $(pykafka-broker spark conf --as submit) job.py
    """
    from pathlib import Path

    from pykafka_broker.spark.installation import look
    from pykafka_broker.spark.session import settings

    installation = look()
    found = settings(
        installation, tables=tables, packages=packages, jars=None if jars is None else Path(jars)
    )
    output.show(
        SessionConf(installation.spark, installation.scala, found),
        {
            "defaults": defaults_lines,
            "submit": submit_lines,
            "python": python_lines,
        }[form](found),
    )


def defaults_lines(settings: Mapping[str, str]) -> Iterator[str]:
    """The settings as lines of spark-defaults.conf."""
    for key, value in settings.items():
        yield f"{key} {value}"


def submit_lines(settings: Mapping[str, str]) -> Iterator[str]:
    """The settings as arguments of spark-submit, pyspark and start-connect-server.sh."""
    yield " ".join(f"--conf {shlex.quote(f'{key}={value}')}" for key, value in settings.items())


def python_lines(settings: Mapping[str, str]) -> Iterator[str]:
    """A program that makes such a session."""
    yield "from pyspark.sql import SparkSession"
    yield ""
    yield "spark = ("
    yield "    SparkSession.builder"
    for key, value in settings.items():
        yield f"    .config({key!r}, {value!r})"
    yield "    .getOrCreate()"
    yield ")"
