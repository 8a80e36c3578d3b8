"""Which Spark the bench uses: 4.2 in an environment of its own where it can be had, else the installed
PySpark.

Spark 4.2's connector does not resolve by `spark.jars.packages` everywhere (its token provider may be missing
from Maven Central), so its four jars are named in `bench/spark/pom.xml` and fetched with Maven.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import shutil
import subprocess
import sys
from pathlib import Path

from pykafka_broker.testing.cache import CACHE

VERSION = "4.2.0"
FOLDER = CACHE / f"spark-{VERSION}"
PYTHON = FOLDER / "venv" / "bin" / "python"
JARS = FOLDER / "jars"
POM = Path(__file__).parent / "spark" / "pom.xml"


@functools.cache
def command() -> tuple[str, ...]:
    """How to run `bench.spark_job`."""
    try:
        fetch()
    except (OSError, subprocess.CalledProcessError):
        return (sys.executable, "-m", "bench.spark_job")
    jars = ",".join(str(jar) for jar in sorted(JARS.glob("*.jar")))
    return (str(PYTHON), "-m", "bench.spark_job", "--jars", jars)


def version() -> str:
    """The Spark that `command` runs."""
    return VERSION if command()[0] == str(PYTHON) else importlib.metadata.version("pyspark")


def fetch() -> None:
    """PySpark (0.4 GB, once) and the connector's jars."""
    complete = FOLDER / "complete"
    if complete.exists():
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    quietly(sys.executable, "-m", "venv", str(FOLDER / "venv"))
    quietly(str(PYTHON), "-m", "pip", "install", "-q", f"pyspark=={VERSION}")
    quietly(
        *("mvn", "-q", "-B", "-f", str(POM), f"-Dmaven.repo.local={CACHE / 'm2'}"),
        *("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={JARS}"),
    )
    complete.touch()


def quietly(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def run(address: str, rows: int) -> dict[str, float]:
    """Seconds of each step."""
    done = subprocess.run(
        [*command(), "--ivy", str(CACHE / "ivy"), "--bootstrap", address, "--rows", str(rows)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the Spark job failed: {done.stderr[-2000:]}")
    printed = json.loads(done.stdout.strip().splitlines()[-1])
    return {name: printed[name] for name in ("write_s", "read_s", "copy_s")}
