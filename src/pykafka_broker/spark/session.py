"""A SparkSession that reads and writes Kafka: settings that fit the installed Spark, and the session itself.

    from pykafka_broker.spark import kafka_session

    spark = kafka_session("orders")                              # the connector by Ivy, from Maven Central
    spark = kafka_session("orders", jars="jars")                 # from a folder: `pykafka-broker spark jars`
    spark = kafka_session("orders", tables=["delta"], conf={"spark.sql.shuffle.partitions": "4"})

A session of Spark Connect has the jars of its server: start that with the settings that
`pykafka-broker spark conf` prints.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.installation import Installation, look
from pykafka_broker.spark.jars import jars_in
from pykafka_broker.spark.releases import packages as packages_of
from pykafka_broker.spark.releases import parse_coordinates, table_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The class that `format("kafka")` stands for.
PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def settings(
    installation: Installation,
    *,
    tables: Iterable[str] = (),
    packages: Iterable[str] = (),
    jars: Path | None = None,
) -> dict[str, str]:
    """The settings that give a session the connector and the tables.

    Args:
        installation: The Spark that will run.
        tables: Table formats, of `delta` and `iceberg`.
        packages: Other packages, as `group:artifact:version`.
        jars: A folder with all of these jars, which is used instead of Ivy.

    Raises:
        SparkError: one is not known for this Spark, or the jars do not fit.
    """
    tables = tuple(tables)
    if jars is None:
        known = packages_of(installation.spark, installation.scala, tables)
        own = map(parse_coordinates, packages)
        return {"spark.jars.packages": ",".join(map(str, (*known, *own))), **table_settings(tables)}
    paths = [path.resolve() for path in jars_in(jars, installation)]
    if unusable := next((path for path in paths if "," in str(path)), None):
        raise SparkError(f"Spark cannot be given {unusable}: it separates jars by commas.")
    return {"spark.jars": ",".join(map(str, paths)), **table_settings(tables)}


def kafka_session(
    app_name: str = "pykafka-broker",
    *,
    master: str | None = None,
    tables: Iterable[str] = (),
    packages: Iterable[str] = (),
    jars: str | os.PathLike[str] | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session with the Kafka connector that fits the installed Spark.

    Args:
        app_name: Its name on Spark's pages.
        master: As of Spark; if None that of spark-submit or of the configuration, else `local[*]`.
        tables: Table formats that the session uses, of `delta` and `iceberg`.
        packages: Other packages, as `group:artifact:version`.
        jars: A folder made by `pykafka-broker spark jars --dest`, so that Ivy is not asked.
        conf: Other settings; they win.

    Raises:
        SparkError: Spark is not installed, a jar does not fit or cannot be had, or a session without the
            connector runs already.
    """
    installation = look()
    chosen = settings(
        installation, tables=tables, packages=packages, jars=None if jars is None else Path(jars)
    )
    # Else workers on this machine may run another Python than this one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import is_remote

    builder = SparkSession.builder.appName(app_name)
    if master is not None:
        builder = builder.master(master)
    for key, value in {**chosen, **(conf or {})}.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        error.add_note("`pykafka-broker spark doctor` may tell why")
        raise
    if not is_remote() and not has_connector(session):
        raise SparkError(
            "A session runs already in this process, and was started without the Kafka connector; jars "
            "cannot be added to it. Stop it first, and in a notebook restart the kernel."
        )
    return session


def has_connector(session: SparkSession) -> bool:
    """Whether a classic session finds `format("kafka")`."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    return bool(jvm.org.apache.spark.util.Utils.classIsLoadable(PROVIDER))
