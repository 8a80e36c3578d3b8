"""The checks of this machine: the Java that Spark would start, the Spark that is installed, its jars, and the
Python packages of jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pykafka_broker.doctor.findings import Finding, ok, problem
from pykafka_broker.spark import classpath, installation, java, python_packages
from pykafka_broker.spark.doctor.faults import of_error, of_faults
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.installation import Installation
from pykafka_broker.spark.releases import connector, line_of

#: Jars that matter to the connector, wherever they lie.
KAFKA_JARS = (
    "spark-sql-kafka",
    "spark-token-provider-kafka",
    "spark-streaming-kafka",
    "kafka-clients",
    "commons-pool2",
)


def about_this_machine(folder: Path | None) -> Iterator[Finding]:
    """Check Java, the jars and the packages.

    Args:
        folder: The jars of the session; None: those that Ivy gets.
    """
    try:
        installed = installation.look()
        line = line_of(installed.spark)
    except SparkError as error:
        yield of_error("jars", "pyspark", error)
        return
    found = java.look()
    yield from of_faults("java", "" if found is None else found.path, java.faults(found, line)) or [
        ok(
            "java",
            found.path,
            f"{found.path} is Java {found.version}, which Spark {installed.spark} runs on.",
        )
        for found in [found]
        if found is not None
    ]
    yield from about_jars(installed, folder)
    yield from about_packages()


def about_packages() -> list[Finding]:
    """Whether the Python packages are there that some jobs need."""
    found = python_packages.fault(python_packages.MAP_IN_ARROW, "Replays and archives that decode need")
    return of_faults("packages", "", [] if found is None else [found])


def about_jars(installed: Installation, folder: Path | None) -> list[Finding]:
    """Whether the connector fits the Spark that is installed."""
    found = []
    if not installed.is_of_one_version:
        found.append(
            problem(
                "jars",
                str(installed.home),
                f"pyspark is {installed.pyspark}, and the Spark in {installed.home} is {installed.spark}: "
                "they do not understand each other.",
                f"Unset SPARK_HOME, or:\n  pip install pyspark=={installed.spark}",
            )
        )
    own = [jar for jar in installed.jars if jar.startswith(KAFKA_JARS)]
    given = [] if folder is None else sorted(path.name for path in folder.glob("*.jar"))
    if not own and folder is None:
        coordinates = connector(installed.spark, installed.scala)
        found.append(ok("jars", str(coordinates), f"Spark {installed.spark} takes {coordinates}, from Ivy."))
        return found
    where = str(folder or installed.home / "jars")
    wrong = of_faults(
        "jars", where, classpath.faults([*own, *given], classpath.Wanted(installed.spark, installed.scala))
    )
    return found + (wrong or [ok("jars", where, f"The jars in {where} fit Spark {installed.spark}.")])
