"""The Spark that Python would run: pyspark, and the jars below it or below SPARK_HOME.

Looked for without importing pyspark, which takes half a second and does not tell the Scala version.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from pykafka_broker.spark.errors import SparkError
from pykafka_broker.system.named_tuple import NamedTuple

HOW_TO_INSTALL = "python3 -m pip install pyspark==4.0.0"
#: The jar that tells the version of Spark and that of Scala.
_CORE = re.compile(r"spark-core_(\d+\.\d+)-(\d+\.\d+\.\d+[^/]*)\.jar")


class Installation(NamedTuple):
    """A Spark that can be started."""

    #: The version of the Python package.
    pyspark: str
    #: The folder of Spark itself, and the version of its jars.
    home: Path
    spark: str
    scala: str
    #: The names of Spark's own jars.
    jars: tuple[str, ...]

    @property
    def is_of_one_version(self) -> bool:
        """Whether the Python package and the jars are of the same release."""
        return self.pyspark == self.spark


def pyspark_version() -> str:
    """The version of the Python package.

    Raises:
        SparkError: it is not installed.
    """
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        raise SparkError(f"pyspark is not installed:\n  {HOW_TO_INSTALL}") from None


def spark_home(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of Spark: SPARK_HOME if that is set, else the folder of the Python package."""
    if home := environ.get("SPARK_HOME"):
        return Path(home)
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkError(f"pyspark is not installed:\n  {HOW_TO_INSTALL}")
    return Path(spec.origin).parent


def look(environ: Mapping[str, str] = os.environ) -> Installation:
    """Find the installed Spark, and the versions of its parts.

    Raises:
        SparkError: no Spark, or one without jars.
    """
    version, home = pyspark_version(), spark_home(environ)
    folder = home / "jars"
    jars = tuple(sorted(path.name for path in folder.glob("*.jar")))
    core = next((match for jar in jars if (match := _CORE.fullmatch(jar))), None)
    if core is None:
        by = " (SPARK_HOME)" if environ.get("SPARK_HOME") else ""
        raise SparkError(
            f"{folder}{by} has no jars of Spark: this is no Spark that starts sessions of its own. Unset "
            f"SPARK_HOME, or install pyspark with its jars:\n  {HOW_TO_INSTALL}"
        )
    return Installation(version, home, core[2], core[1], jars)
