"""An application of Kafka Streams that counts the records of each key, exactly once: its group is a streams
group (KIP-1071), and what it needs between its two subtopologies is created by the broker.
"""

from __future__ import annotations

import io
import subprocess
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
)
from pykafka_broker.testing.apache.tools import command
from tests.support.waiting import PATIENCE_S, until

APPLICATION = "counters"
SOURCE, RESULT, SOURCE_PARTITIONS, TASKS_OF_COUNTS = "words", "counts", 4, 3
REPARTITION = f"{APPLICATION}-by-key-repartition"
CHANGELOG = f"{APPLICATION}-store-changelog"
TASKS = SOURCE_PARTITIONS + TASKS_OF_COUNTS

#: A member that is killed is missed soon.
BROKER_SETTINGS = {
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
}
JVM_OPTIONS = ("-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
BYTES = "org.apache.kafka.common.serialization.Serdes$ByteArraySerde"
QUIET: dict[str, Any] = {"log_level": 0, "reconnect.backoff.max.ms": 200}


class Instance:
    """One process of the application, started by `with` or `start`; it can be killed and started again."""

    def __init__(self, address: str, folder: Path, name: str, settings: Mapping[str, str] | None = None):
        self.name = name
        #: The last of its log: why it has failed, if it has.
        self._said = deque[bytes](maxlen=60)
        self._settings = {
            "application.id": APPLICATION,
            "client.id": name,
            "bootstrap.servers": address,
            "group.protocol": "streams",
            "processing.guarantee": "exactly_once_v2",
            "num.stream.threads": "2",
            "commit.interval.ms": "100",
            "statestore.cache.max.bytes": "0",
            "default.key.serde": BYTES,
            "default.value.serde": BYTES,
            "state.dir": str(folder / name),
            **(settings or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        from py4j.java_gateway import GatewayParameters, JavaGateway

        gateway = command("py4j.GatewayServer", "--die-on-broken-pipe", "0", jvm_options=JVM_OPTIONS)
        self._process = subprocess.Popen(
            gateway, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        stdout = self._process.stdout
        assert isinstance(stdout, io.BufferedReader)
        port = int(stdout.readline())
        said = iter(lambda: stdout.read1(), b"")
        self._reader = threading.Thread(target=self._said.extend, args=(said,), daemon=True)
        self._reader.start()
        # The process may be gone before the objects that stand for its own.
        parameters = GatewayParameters(port=port, enable_memory_management=False)
        self._gateway = JavaGateway(gateway_parameters=parameters)
        jvm: Any = self._gateway.jvm
        settings = jvm.java.util.Properties()
        for key, value in self._settings.items():
            settings.setProperty(key, value)
        self._application = jvm.org.apache.kafka.streams.KafkaStreams(_topology(jvm), settings)
        self._application.start()
        return self

    def kill(self) -> None:
        """End the process at once, as `kill -9`."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            self._gateway.close()
            self._reader.join()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                stream.close()
            process.wait()

    def close(self) -> None:
        """Let the application leave, and end the process."""
        if self._process is not None:
            self._application.close(self._gateway.jvm.java.time.Duration.ofSeconds(30))
            self.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def state(self) -> str:
        """As Kafka Streams names it."""
        return str(self._application.state().toString())

    @property
    def said(self) -> str:
        """The end of its log."""
        return b"".join(self._said).decode(errors="replace")

    def runs(self) -> None:
        """Wait until all its tasks run."""

        def is_running() -> bool:
            state = self.state
            assert state in ("CREATED", "REBALANCING", "RUNNING"), f"{self.name} is {state}:\n{self.said}"
            return state == "RUNNING"

        until(is_running, f"{self.name} runs")


def _topology(jvm: Any) -> Any:
    streams = jvm.org.apache.kafka.streams
    serdes = jvm.org.apache.kafka.common.serialization.Serdes
    kstream = streams.kstream
    builder = streams.StreamsBuilder()
    # Words that are keywords of Python.
    by_key = getattr(kstream.Repartitioned, "as")("by-key").withNumberOfPartitions(TASKS_OF_COUNTS)
    store = getattr(kstream.Materialized, "as")("store")
    counted = getattr(kstream.Produced, "with")(serdes.ByteArray(), serdes.Long())
    builder.stream(SOURCE).repartition(by_key).groupByKey().count(store).toStream().to(RESULT, counted)
    return builder.build()


class Counted:
    """The records that were written, and what the application has made of them."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.written: dict[bytes, int] = {}
        self._producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, **QUIET})

    def create_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.address, **QUIET})
        wanted = [NewTopic(SOURCE, SOURCE_PARTITIONS, 1), NewTopic(RESULT, 1, 1)]
        for created in admin.create_topics(wanted).values():
            created.result(PATIENCE_S)

    def write(self, count: int) -> None:
        """Write so many records more; they are acknowledged when this returns."""
        for number in range(count):
            key = b"key %d" % (number % 17)
            self._producer.produce(SOURCE, b"x", key, partition=number % SOURCE_PARTITIONS)
            self.written[key] = self.written.get(key, 0) + 1
            self._producer.poll(0)
        assert self._producer.flush(PATIENCE_S) == 0

    def counts(self) -> dict[bytes, list[int]]:
        """All results of each key, in their order, as a reader of committed records sees them."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": "auditors",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                **QUIET,
            }
        )
        consumer.assign([TopicPartition(RESULT, 0, 0)])
        found: dict[bytes, list[int]] = {}
        while (message := consumer.poll(PATIENCE_S)) is not None and message.error() is None:
            key, value = message.key(), message.value()
            assert key is not None and value is not None
            found.setdefault(key, []).append(int.from_bytes(value, "big"))
        consumer.close()
        return found

    def is_counted(self) -> bool:
        """Has the application counted everything that was written?"""
        return {key: counts[-1] for key, counts in self.counts().items()} == self.written

    def check(self) -> None:
        """Every record was counted, and once: each key was counted up one by one."""
        until(self.is_counted, "all is counted")
        assert self.counts() == {key: list(range(1, count + 1)) for key, count in self.written.items()}


def described(address: str, group_id: str = APPLICATION) -> DescribedGroup:
    """The application's group."""
    request = StreamsGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=False)
    with Client(address) as client:
        found: DescribedGroup = client.at_coordinator(
            group_id, lambda node_id: client.send(request, node_id).groups[0]
        )
    return found


def active_tasks(group: DescribedGroup) -> dict[str, int]:
    """How many active tasks the threads of each instance have, by its client id."""
    found: dict[str, int] = {}
    for member in group.members:
        # A client id of Kafka Streams is "<client.id>-StreamThread-1-consumer".
        name = member.client_id.partition("-StreamThread")[0]
        count = sum(len(tasks.partitions) for tasks in member.assignment.active_tasks)
        found[name] = found.get(name, 0) + count
    return found


def is_settled(address: str, *names: str) -> bool:
    """Have these instances, and no others, all tasks among them?"""
    group = described(address)
    tasks = active_tasks(group)
    return (
        group.group_state == "Stable"
        and sorted(tasks) == sorted(names)
        and sum(tasks.values()) == TASKS
        and all(tasks.values())
    )
