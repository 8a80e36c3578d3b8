"""One broker and one SparkSession for all Spark tests.

The broker is ours, in a process of its own. `PYKAFKA_BROKER_TEST_BROKER=apache` takes Apache Kafka 4.3.1
instead (the tests' own truth: they pass there first), `PYKAFKA_BROKER_TEST_BOOTSTRAP=host:port` a broker that
runs already.

Spark's connector is fetched into `.cache/` below the repository, once; so are Delta and Iceberg.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pykafka_broker.spark import kafka_session
from pykafka_broker.spark.installation import look
from pykafka_broker.spark.jars import fetch_jars
from pykafka_broker.spark.releases import TABLES, Coordinates, connector, packages
from pykafka_broker.spark.repository import Repository
from pykafka_broker.testing.apache.jars import alone
from pykafka_broker.testing.cache import CACHE
from pykafka_broker.testing.processes import BrokerProcess, PykafkaBroker, free_port
from tests.spark.kafka import Kafka

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
#: What needs no Spark.
PURE = HERE / "pure"

#: Tests are short: compiling well costs more than it saves.
QUICKLY_COMPILED = "-XX:TieredStopAtLevel=1"
#: Where the JVM says why it crashed, below the folder of the session.
CRASH_REPORT = "hs_err.log"

#: What every test here may rely on, whichever broker serves it.
PROPERTIES = {
    "num.partitions": "2",
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
}
METRICS = "metrics.listeners"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test also pays for the JVM and, on a fresh machine, for the download of the connector."""
    ours = [item for item in items if HERE in item.path.parents and PURE not in item.path.parents]
    reason = why_spark_cannot_run() if ours else None
    for item in ours:
        item.add_marker(pytest.mark.timeout(900))
        # PySpark leaves the sockets and pipes of its JVM to the garbage collector.
        item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
        item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def why_spark_cannot_run() -> str | None:
    """None when it can. On CI a missing JVM is a failure, because there it would hide every test of this
    folder.
    """
    java = shutil.which("java")
    if java:
        probe = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=False)
        # Spark starts its JVM with --add-modules=jdk.incubator.vector: a trimmed runtime does not have it.
        if probe.returncode == 0 and "jdk.incubator.vector" in probe.stdout:
            return None
    reason = "Spark needs a full Java 17 on the path (Debian: apt-get install openjdk-17-jre-headless)"
    if os.environ.get("CI"):
        pytest.exit(reason, returncode=1)
    return reason


class Broker:
    """The broker under test: its address, and the process where the tests own it."""

    def __init__(self, address: str, process: BrokerProcess | None) -> None:
        self.address = address
        self._process = process

    @property
    def data_dir(self) -> Path:
        if self._process is None:
            pytest.skip("the folders of a broker given by PYKAFKA_BROKER_TEST_BOOTSTRAP are not known")
        return self._process.data_dir

    @property
    def page(self) -> str | None:
        """The URL of its metrics; None for a broker that serves none."""
        listener = None if self._process is None else self._process.properties.get(METRICS)
        return listener and f"{listener}/metrics"

    def restart(self) -> None:
        if self._process is None:
            pytest.skip("a broker given by PYKAFKA_BROKER_TEST_BOOTSTRAP is not ours to restart")
        self._process.restart()


@pytest.fixture(scope="package")
def broker() -> Iterator[Broker]:
    external = os.environ.get("PYKAFKA_BROKER_TEST_BOOTSTRAP")
    if external:
        yield Broker(external, None)
        return
    process: BrokerProcess
    if os.environ.get("PYKAFKA_BROKER_TEST_BROKER") == "apache":
        from pykafka_broker.testing.apache.broker import ApacheBroker

        process = ApacheBroker(PROPERTIES)
    else:
        process = PykafkaBroker({**PROPERTIES, METRICS: f"http://127.0.0.1:{free_port()}"})
    with process:
        yield Broker(process.address, process)


@pytest.fixture(scope="package")
def kafka(broker: Broker) -> Iterator[Kafka]:
    client = Kafka(broker.address)
    yield client
    client.close()


def connector_jars() -> Path:
    """The folder of the connector that fits the installed Spark; fetched on a fresh machine."""
    return jars_of("jars", lambda spark, scala: [connector(spark, scala)])


def table_jars() -> Path:
    """As `connector_jars`, with those of Delta and Iceberg."""
    return jars_of("jars-tables", lambda spark, scala: packages(spark, scala, TABLES))


def jars_of(name: str, wanted: Callable[[str, str], Sequence[Coordinates]]) -> Path:
    """A folder of the cache with these packages and what they need. It is there only once all of them are:
    several test processes want it at the same time.
    """
    installation = look()
    folder = CACHE / f"spark-{installation.spark}" / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with alone(CACHE / "spark.lock"):
            if not folder.is_dir():
                unfinished = folder.with_name(f"{name}.unfinished")
                asked = wanted(installation.spark, installation.scala)
                fetch_jars(unfinished, asked, installation.jars, Repository())
                unfinished.rename(folder)
    return folder


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark import SparkContext

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    scratch = tmp_path_factory.mktemp("spark")
    on_interrupt = signal.getsignal(signal.SIGINT)
    session = kafka_session(
        "pykafka-broker tests",
        master="local[2]",
        tables=TABLES,
        jars=table_jars(),
        conf={
            # Where tables of Iceberg are: `lake.<namespace>.<table>`.
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": str(scratch / "lake"),
            "spark.databricks.delta.snapshotPartitions": "2",
            "spark.local.dir": str(scratch / "local"),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.pollingDelay": "10ms",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.extraJavaOptions": f"{QUICKLY_COMPILED} -XX:ErrorFile={scratch / CRASH_REPORT}",
        },
    )
    # Spark's own handler would outlive it, and meet the tests that follow.
    signal.signal(signal.SIGINT, on_interrupt)
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    end_jvm(SparkContext)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails because its JVM has ended shows how that ended."""
    report = yield
    if report.failed and HERE in item.path.parents and (told := how_the_jvm_ended(item)):
        report.sections.append(("Spark's JVM", told))
    return report


def how_the_jvm_ended(item: pytest.Item) -> str | None:
    """The status of the JVM of this process's session, as of `subprocess` (-9: killed, perhaps for want of
    memory; 0: it lost this process's end of a pipe), and the head of its report where it crashed. None while
    it runs.
    """
    from pyspark import SparkContext

    try:
        status = SparkContext._gateway.proc.wait(1) if SparkContext._gateway else None
    except subprocess.TimeoutExpired:
        return None
    if status is None:
        return None
    factory: pytest.TempPathFactory = vars(item.config)["_tmp_path_factory"]
    reports = factory.getbasetemp().glob(f"spark*/{CRASH_REPORT}")
    return "\n".join([f"it ended with status {status}", *(path.read_text()[:4_000] for path in reports)])


def end_jvm(context: type[SparkContext]) -> None:
    """PySpark keeps its JVM and the sockets to it until the interpreter ends, where they count as leaks of
    ours.
    """
    gateway, context._gateway, context._jvm = context._gateway, None, None
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del gateway
        gc.collect()
