"""A streaming query of Spark from Kafka to Kafka, and batch reads, while the nodes of a cluster are restarted
one after the other: the query does not fail, and each acknowledged record is read and copied once.

Spark runs each task once (`local[2]`): what the connector's clients cannot bear fails the query.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Message, Producer

from interop.clients.driven import ToolchainMissingError
from interop.exactly_once import topics
from interop.several_nodes import SeveralNodes
from interop.spark import RELEASES, Release, jars, python_path
from pykafka_broker.testing.apache.jars import java

PROGRAM = Path(__file__).parent / "rolling.py"
SCENARIO = "a query and batches go on while the nodes are restarted"
PARTITIONS = 3
TIMEOUT_S = 300.0
#: Between two records.
PAUSE_S = 0.005
SETTLED_S = 3.0


class Numbers:
    """Writes the numbers from 0 on, a record each."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 20,
            **topics.QUIET,
        }
        self._producer = Producer(settings)
        self._topic = topic
        self._ended = threading.Event()
        self.acknowledged = 0
        self.refused: list[str] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._write)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _write(self) -> None:
        number = 0
        while not self._ended.wait(PAUSE_S):
            self._producer.produce(
                self._topic, str(number), partition=number % PARTITIONS, on_delivery=self._written
            )
            self._producer.poll(0)
            number += 1
        self._producer.flush()

    def _written(self, error: object, _message: Message) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.refused.append(str(error))


def run(
    make_nodes: Callable[[], SeveralNodes], names: Sequence[str], report: Callable[[str], None]
) -> tuple[list[str], dict[str, str]]:
    """What failed with these releases, and of those that cannot run here the reason."""
    failures: list[str] = []
    missing: dict[str, str] = {}
    for release in RELEASES:
        if release.name not in names:
            continue
        try:
            folder, its_jars = python_path(release), jars(release)
        except ToolchainMissingError as error:
            missing[release.name] = str(error)
            continue
        with make_nodes() as nodes:
            try:
                told = restarted_under(release, nodes, folder, its_jars)
            except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
                failures.append(f"{SCENARIO} with {release.name}: {error}")
                told = "FAIL"
        report(f"{SCENARIO:<64}Spark {release.told}: {told}")
    return failures, missing


def restarted_under(release: Release, nodes: SeveralNodes, folder: str, its_jars: Sequence[str]) -> str:
    """The figures of one release."""
    java()
    source, target = "numbers", "copied"
    topics.create(nodes.address, PARTITIONS, source, target)
    command = [
        sys.executable,
        str(PROGRAM),
        nodes.address,
        release.version,
        folder,
        source,
        target,
        *its_jars,
    ]
    log_file = nodes.folder / "spark.log"
    with log_file.open("w") as log:
        spark = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        limit = threading.Timer(TIMEOUT_S, spark.kill)
        limit.start()
        try:
            written, said = restart_while_it_runs(spark, Numbers(nodes.address, source), nodes)
        finally:
            limit.cancel()
            spark.kill()
            spark.communicate()
    assert said.startswith("{"), f"Spark has not told what became of it: {log_file.read_text()[-3000:]}"
    return judged(written, json.loads(said))


def restart_while_it_runs(
    spark: subprocess.Popen[str], numbers: Numbers, nodes: SeveralNodes
) -> tuple[Numbers, str]:
    """Restart the nodes while records come; what was written, and the last line that Spark has printed."""
    assert spark.stdin is not None
    assert spark.stdout is not None
    with numbers.running():
        said = spark.stdout.readline()
        if said.strip() == "running":
            nodes.restart()
            nodes.await_in_sync()
            # The query and the batches go on with restarted nodes alone.
            time.sleep(SETTLED_S)
    if said.strip() == "running":
        spark.stdin.write("end\n")
        spark.stdin.flush()
        said = spark.stdout.readline()
    return numbers, said


def judged(written: Numbers, told: Mapping[str, Any]) -> str:
    """The figures. Raises AssertionError if a record is lost or comes twice, or the query has failed."""
    assert "problem" not in told, told["problem"]
    assert not written.refused, f"{len(written.refused)} records were refused: {written.refused[0]}"
    wanted = list(range(written.acknowledged))
    for topic in ("source", "target"):
        wrong = Counter(told[topic])
        wrong.subtract(wanted)
        lost = [number for number, count in wrong.items() if count < 0]
        twice = [number for number, count in wrong.items() if count > 0]
        assert not lost, f"{len(lost)} of {len(wanted)} records are not in the {topic}: {lost[:10]}"
        assert not twice, (
            f"{len(twice)} of {len(wanted)} records are more than once in the {topic}: {twice[:10]}"
        )
    return (
        f"ok   {len(wanted)} records copied in {told['query_batches']} batches of the query, "
        f"read by {told['batches']} batches beside"
    )
