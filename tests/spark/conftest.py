"""One broker and one SparkSession for all Spark tests.

The broker is ours, in a process of its own. `PYKAFKA_BROKER_TEST_BROKER=apache` takes Apache Kafka 4.3.1
instead (the tests' own truth: they pass there first), `PYKAFKA_BROKER_TEST_BOOTSTRAP=host:port` a broker that
runs already.

Spark's connector is resolved by Ivy into `.cache/ivy` below the repository: a folder of its own, because a
POM without its jar in a shared Maven repository makes Ivy give up, and so that nothing is left in the home
folder.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pykafka_broker.testing.cache import CACHE
from pykafka_broker.testing.processes import BrokerProcess, PykafkaBroker
from tests.spark.kafka import Kafka

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent

#: What every test here may rely on, whichever broker serves it.
PROPERTIES = {
    "num.partitions": "2",
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test also pays for the JVM and, on a fresh machine, for the download of the connector."""
    ours = [item for item in items if HERE in item.path.parents]
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
        process = PykafkaBroker(PROPERTIES)
    with process:
        yield Broker(process.address, process)


@pytest.fixture(scope="package")
def kafka(broker: Broker) -> Iterator[Kafka]:
    client = Kafka(broker.address)
    yield client
    client.close()


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    import pyspark
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    scratch = tmp_path_factory.mktemp("spark")
    on_interrupt = signal.getsignal(signal.SIGINT)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("pykafka-broker tests")
        .config("spark.jars.packages", f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}")
        .config("spark.jars.ivy", str(CACHE / "ivy"))
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.pollingDelay", "10ms")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        # Tests are short: compiling well costs more than it saves.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .getOrCreate()
    )
    # Spark's own handler would outlive it, and meet the tests that follow.
    signal.signal(signal.SIGINT, on_interrupt)
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    end_jvm(SparkContext)


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
