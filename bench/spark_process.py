"""What the rows of the bench that run Spark share: a process of its own for each, and its session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pykafka_broker.testing.cache import CACHE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT_S = 1200


def figures_of(module: str, *arguments: str) -> dict[str, float]:
    """The figures that a program of the bench prints in its last line, as JSON.

    Raises:
        RuntimeError: it failed; with the end of what it said.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{module} failed: {done.stderr.strip()[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def local_session(tables: Iterable[str] = (), conf: Mapping[str, str] | None = None) -> SparkSession:
    """A session of two cores of the installed PySpark, with the jars of the Spark tests."""
    from pykafka_broker.spark import kafka_session
    from pykafka_broker.spark.installation import look
    from pykafka_broker.spark.jars import fetch_jars
    from pykafka_broker.spark.releases import packages
    from pykafka_broker.spark.repository import Repository

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    installed, tables = look(), tuple(tables)
    jars: Path = CACHE / f"spark-{installed.spark}" / ("jars-tables" if tables else "jars")
    fetch_jars(jars, packages(installed.spark, installed.scala, tables), installed.jars, Repository())
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = kafka_session(
        "bench", master="local[2]", tables=tables, jars=jars, conf={**quiet, **(conf or {})}
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark
