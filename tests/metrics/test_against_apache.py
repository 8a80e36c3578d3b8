"""The same load on Apache Kafka under the JMX exporter, and here: the same names, labels and values."""

from __future__ import annotations

import asyncio
import contextlib
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.metrics.families import FAMILIES
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.testing.apache.broker import ApacheBroker
from pykafka_broker.testing.apache.jars import VERSION, fetched
from pykafka_broker.testing.apache.tools import SHORT_LIVED
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.processes import free_port
from pykafka_broker.testing.user import User
from tests.metrics.pages import METRICS, Samples, samples_of, scrape

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent
LOADED = ("orders", "payments", "small")

#: Names of which the values are the same after the same load; those of requests for `COUNTED`.
COUNTERS = tuple(
    f"kafka_server_brokertopicmetrics_{name}_total"
    for name in (
        *("messagesin", "bytesin", "bytesout", "bytesrejected", "totalproducerequests"),
        *("failedproducerequests", "totalfetchrequests", "failedfetchrequests"),
        *("replicationbytesin", "replicationbytesout"),
    )
)
REQUESTS = (
    "kafka_network_requestmetrics_requests_total",
    "kafka_network_requestmetrics_errors_total",
    *(
        f"kafka_network_requestmetrics_{stage}_count"
        for stage in (
            *("requestbytes", "requestqueuetimems", "localtimems", "remotetimems", "throttletimems"),
            *("responsequeuetimems", "responsesendtimems", "totaltimems"),
        )
    ),
)
COUNTED = ("Produce", "Fetch", "FetchConsumer")
OF_PARTITIONS = (
    *(
        f"kafka_cluster_partition_{name}"
        for name in (
            *("underreplicated", "insyncreplicascount", "replicascount", "underminisr", "atminisr"),
            "laststableoffsetlag",
        )
    ),
    *(f"kafka_log_log_{name}" for name in ("size", "numlogsegments", "logstartoffset", "logendoffset")),
)
OF_THE_NODE = (
    *(
        f"kafka_server_replicamanager_{name}"
        for name in (
            *("partitioncount", "leadercount", "underreplicatedpartitions", "underminisrpartitioncount"),
            *("atminisrpartitioncount", "reassigningpartitions", "offlinereplicacount", "produceridcount"),
            *("isrshrinks_total", "isrexpands_total", "failedisrupdates_total"),
        )
    ),
    *(
        f"kafka_controller_kafkacontroller_{name}"
        for name in (
            *("activecontrollercount", "activebrokercount", "fencedbrokercount", "globaltopiccount"),
            *("globalpartitioncount", "offlinepartitionscount", "preferredreplicaimbalancecount"),
        )
    ),
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "kafka_log_logmanager_offlinelogdirectorycount",
    "kafka_server_raftmetrics_current_leader",
    "kafka_server_raftmetrics_current_vote",
    "kafka_server_raftmetrics_current_epoch",
    "kafka_server_raftmetrics_current_state",
    "kafka_server_raftmetrics_number_of_voters",
)


async def load(address: str) -> list[ErrorCode]:
    """Write to topics and read from them; the errors of two batches that are refused."""
    async with await User.connect(address) as user:
        await user.create_topic("orders", partitions=2)
        await user.create_topic("payments", message_timestamp_before_max_ms="1000")
        await user.create_topic("small", max_message_bytes="100")
        for topic, partitions in (("orders", 2), ("payments", 1), ("small", 1)):
            for partition in range(partitions):
                while not await is_led(user, topic, partition):
                    pass
        await user.produce("orders", b"one", b"two")
        await user.produce("orders", b"three")
        await user.produce("orders", b"a", b"b", b"c", partition=1)
        refused = [
            await user.try_to_produce("small", b"x" * 200),
            await user.try_to_produce("payments", b"one", timestamp=1),
        ]
        for offset in (0, 2, 3):
            await user.fetch("orders", offset)
    return [ErrorCode(answer.error_code) for answer in refused]


async def is_led(user: User, topic: str, partition: int) -> bool:
    """Whether the broker leads the partition already; no metric that is compared counts the question."""
    with contextlib.suppress(AssertionError):
        await user.offset_for(topic, -1, partition=partition)
        return True
    return False


@pytest.fixture(scope="module")
def apache() -> Iterator[Samples]:
    """What Apache Kafka tells after the load."""
    [agent] = fetched("jmx-exporter", FOLDER / "jmx-exporter.pom.xml", VERSION).iterdir()
    where = f"127.0.0.1:{free_port()}"
    broker = ApacheBroker()
    rules = FOLDER / "jmx-exporter.yml"
    broker.jvm_options = (*SHORT_LIVED, f"-javaagent:{agent.resolve()}={where}:{rules}")
    with broker:
        assert asyncio.run(load(broker.address)) == REFUSED
        with urllib.request.urlopen(f"http://{where}/metrics") as page:
            yield samples_of(page.read().decode())


@pytest.fixture(scope="module")
def ours() -> Samples:
    async def loaded() -> Samples:
        home = Home({"metrics.listeners": METRICS}, clock=SystemClock())
        async with home.running():
            assert await load(home.broker.bootstrap_servers) == REFUSED
            return await scrape(home.broker)

    return asyncio.run(loaded())


REFUSED = [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_TIMESTAMP]


def chosen(samples: Samples, name: str) -> dict[frozenset[tuple[str, str]], float]:
    """The samples of a name that the load decides."""
    found = {}
    for (its_name, labels), value in samples.items():
        values = dict(labels)
        is_loaded = values.get("topic") in (None, *LOADED)
        if its_name == name and is_loaded and values.get("request") in (None, *COUNTED):
            found[labels] = value
    return found


@pytest.mark.parametrize("name", [*COUNTERS, *REQUESTS, *OF_PARTITIONS, *OF_THE_NODE])
def test_what_apache_counts_we_count(apache: Samples, ours: Samples, name: str) -> None:
    theirs = chosen(apache, name)

    # Apache Kafka has a counter of a topic once it has counted.
    assert {
        labels: value for labels, value in chosen(ours, name).items() if value or labels in theirs
    } == theirs
    assert theirs


def test_what_is_declared_as_kafkas_is_kafkas(apache: Samples) -> None:
    known = {name for name, _ in apache}
    # No rule of the exporter's names these; without a client's login or commit there are none of the others.
    unknown_to_rules = (
        *("kafka_coordinator_", "kafka_server_group_coordinator_", "kafka_server_authorizer_", "jvm_"),
        *("kafka_server_produce_", "kafka_server_fetch_", "kafka_server_request_"),
        *("kafka_server_socket_server_metrics_successful", "kafka_server_socket_server_metrics_failed"),
    )
    invented = [
        family.name
        for family in FAMILIES
        if family.mbean
        and family.name not in known
        and not family.name.startswith(unknown_to_rules)
        and not family.name.endswith("connections_software")
    ]

    assert invented == []


def test_labels_are_those_of_apache(apache: Samples, ours: Samples) -> None:
    theirs = {(name, frozenset(label for label, _ in labels)) for name, labels in apache}
    own = {(name, frozenset(label for label, _ in labels)) for name, labels in ours}
    names = {name for name, _ in theirs} & {name for name, _ in own if name.startswith("kafka_")}

    assert {one for one in own - theirs if one[0] in names} == set()
