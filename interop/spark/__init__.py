"""Spark's own Kafka connector, in each release line: a process of its own for each, with that release of
pyspark and the connector's jars in `.cache/`.

`tests/spark` has the many tests, with one release; here is that the others write, read and copy as well, and
log in to a secured node by SCRAM and with a delegation token.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from interop.clients.driven import ToolchainMissingError
from interop.clients.drivers import run, tool
from interop.secured import Secured, secured
from pykafka_broker.testing.apache.jars import java
from pykafka_broker.testing.cache import CACHE
from pykafka_broker.testing.processes import BrokerProcess, PykafkaNode

PROGRAM = Path(__file__).parent / "round_trip.py"
SCENARIOS = (
    "spark.a_batch_is_written_and_read",
    "spark.a_stream_is_copied_and_resumed",
    "spark.an_archive_gives_the_topic_again",
    "spark.log_folders_are_read_as_batch_and_stream",
    "spark.a_user_writes_copies_and_reads_over_tls",
    "spark.a_delegation_token_of_the_user_writes_and_reads",
)
#: The way into the secured node, by SCRAM, by which holders of tokens come as well.
WAY = "scram-512"
#: Of the secured node, for each release.
TOPICS = ("written", "copied", "by-token")
PARTITIONS = 3
TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Release:
    """One release: what its connector brings, named one by one, so that nothing else is resolved."""

    version: str
    jars: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"spark-{self.version}"

    @property
    def told(self) -> str:
        """Its version, with that of the Java client that it uses."""
        (clients,) = (jar.rpartition(":")[2] for jar in self.jars if ":kafka-clients:" in jar)
        return f"{self.version} (kafka-clients {clients})"


RELEASES = (
    Release(
        "4.2.0",
        (
            "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
            # The newest that Maven Central has; the connector takes it.
            "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
            "org.apache.kafka:kafka-clients:3.9.2",
            "org.apache.commons:commons-pool2:2.13.1",
        ),
    ),
    Release(
        "4.0.0",
        (
            "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
            "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
            "org.apache.kafka:kafka-clients:3.9.0",
            "org.apache.commons:commons-pool2:2.12.0",
        ),
    ),
    Release(
        "3.5.1",
        (
            "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.1",
            "org.apache.spark:spark-token-provider-kafka-0-10_2.12:3.5.1",
            "org.apache.kafka:kafka-clients:3.4.1",
            "org.apache.commons:commons-pool2:2.11.1",
        ),
    ),
)


def jars(release: Release) -> list[str]:
    folder = CACHE / release.name / "jars"
    found = [
        folder / f"{artifact}-{version}.jar" for _, artifact, version in (j.split(":") for j in release.jars)
    ]
    maven = tool("mvn", "Debian: apt-get install maven")
    for coordinates, path in zip(release.jars, found, strict=True):
        if not path.exists():
            command = [
                *(maven, "-q", "-B", f"-Dmaven.repo.local={CACHE / 'm2'}"),
                *("org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy", f"-Dartifact={coordinates}"),
                f"-DoutputDirectory={folder}",
            ]
            run(command, CACHE)
    return [str(path) for path in found]


def python_path(release: Release) -> str:
    """The folder of this release of pyspark: the one that the tests use, or one of its own."""
    with suppress(metadata.PackageNotFoundError):
        if metadata.version("pyspark") == release.version:
            return str(metadata.distribution("pyspark").locate_file(""))
    folder = CACHE / release.name / "python"
    if not folder.is_dir():
        unfinished = folder.with_name("python.unfinished")
        pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(unfinished)]
        run([*pip, f"pyspark=={release.version}"], CACHE)
        unfinished.rename(folder)
    return str(folder)


def round_trip(release: Release, broker: BrokerProcess, secured_node: Secured) -> dict[str, str]:
    """The outcome of each scenario."""
    java()
    access, login = secured_node.access(WAY), secured_node.login(WAY)
    prefix = f"{access.prefix}{release.name}-"
    for name in TOPICS:
        secured_node.create(prefix + name, PARTITIONS)
    way_in = {"address": access.clients.address, "prefix": prefix, "properties": login.for_java()}
    command = [sys.executable, str(PROGRAM), broker.address, str(broker.data_dir), json.dumps(way_in)]
    command += [release.version, python_path(release), *jars(release)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    told = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not told:
        return dict.fromkeys(SCENARIOS, f"fails: Spark ended with {done.returncode}: {done.stderr[-3000:]}")
    cells: dict[str, str] = json.loads(told[-1])
    return cells


def run_releases(
    broker: BrokerProcess, names: Sequence[str], report: Callable[[str], None]
) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """By release what became of each scenario; and of the releases that cannot run here the reason."""
    cells: dict[str, dict[str, str]] = {}
    missing: dict[str, str] = {}
    with secured("ours" if isinstance(broker, PykafkaNode) else "apache") as secured_node:
        for release in RELEASES:
            if release.name not in names:
                continue
            try:
                cells[release.name] = round_trip(release, broker, secured_node)
            except ToolchainMissingError as error:
                missing[release.name] = str(error)
                continue
            for scenario, cell in cells[release.name].items():
                title = scenario.partition(".")[2].replace("_", " ")
                report(f"{title:<64}Spark {release.told}: {cell}")
    return cells, missing
