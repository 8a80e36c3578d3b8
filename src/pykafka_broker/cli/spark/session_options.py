"""The session of a job that a command runs, and what it reads: their options, and the session itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pykafka_broker.cli.options import gathered, pairs
from pykafka_broker.cli.spark.options import jars_option, package_option
from pykafka_broker.spark.archive.settings import TABLE_FORMATS
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Command = TypeVar("Command", bound=Callable[..., Any])

#: A job on a terminal shows its own progress; Spark's pages are there for those who ask for them.
QUIET = {"spark.ui.showConsoleProgress": "false", "spark.ui.enabled": "false"}


class SessionOptions(NamedTuple):
    """The master, jars and configuration with which a job runs."""

    master: str | None
    jars: str | None
    packages: tuple[str, ...]
    conf: tuple[str, ...]

    @contextmanager
    def opened(self, name: str, tables: Iterable[str]) -> Iterator[SparkSession]:
        """A session with the connector and the tables.

        Raises:
            SparkError: no session can be started.
        """
        from pykafka_broker.spark.session import kafka_session

        spark = kafka_session(
            name,
            master=self.master,
            tables=tables,
            packages=self.packages,
            jars=self.jars,
            conf={**QUIET, **dict(pairs(self.conf, "--conf"))},
        )
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield spark
        finally:
            spark.stop()


def format_option(command: Command) -> Command:
    """The format of an archive's table."""
    return click.option(
        "--format",
        "table_format",
        type=click.Choice(TABLE_FORMATS),
        default="delta",
        show_default=True,
        help="Its format.",
    )(command)


def reader_options(
    text: str = "An option of Spark's Kafka source, such as minPartitions=8; repeatable.",
) -> Callable[[Command], Command]:
    """Give a command the options of the reader that it makes, as one mapping `options`.

    Args:
        text: What the help says of them.
    """
    return click.option(
        "--option", "options", multiple=True, metavar="KEY=VALUE", callback=_as_mapping, help=text
    )


def _as_mapping(ctx: click.Context, parameter: click.Parameter, entries: tuple[str, ...]) -> dict[str, str]:
    return dict(pairs(entries, "--option"))


def session_options(command: Command) -> Command:
    """Give a command the options of its session, as one `session`."""
    command = gathered(SessionOptions, "session")(command)
    command = click.option(
        "--conf",
        "conf",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of the session, such as spark.driver.memory=4g; repeatable.",
    )(command)
    command = package_option(jars_option(command))
    return click.option(
        "--master",
        metavar="URL",
        help="Where Spark runs; by default as spark-submit or the configuration says, else here.",
    )(command)
