"""An application of Kafka Streams that copies the ledger while nodes fail: each record is in the committed
copy, and once.
"""

from __future__ import annotations

import io
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic

from pykafka_broker.testing.apache.tools import command
from tests.torture.clients import PATIENCE_S, QUIET, TOPIC
from tests.torture.history import Value
from tests.torture.users import ANYBODY, Users

COPY = "ledger-copy"
PARTITIONS = 2
JVM_OPTIONS = ("-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
#: The most characters of its log that a failed test shows: several stack traces.
MOST_SHOWN = 50_000
BYTES = "org.apache.kafka.common.serialization.Serdes$ByteArraySerde"


class StreamsApplication:
    """Runs in a `with` statement, once the ledger is there.

    With `exactly_once_v2` the copies of 100 ms and the offsets of what was copied are one transaction. The
    protocol of its group is "classic" or "streams" (KIP-1071).
    """

    def __init__(
        self, address: str, folder: Path, replicas: int, users: Users = ANYBODY, protocol: str = "streams"
    ) -> None:
        self._address = address
        #: What it and its JVM say, which is errors alone, and with them why it has ended if it has.
        self.log = folder / "streams.log"
        self._users = users
        self._replicas = replicas
        self._settings = {
            "application.id": "copyists",
            "bootstrap.servers": address,
            "group.protocol": protocol,
            "processing.guarantee": "exactly_once_v2",
            "num.stream.threads": "2",
            "commit.interval.ms": "100",
            "replication.factor": str(replicas),
            "default.key.serde": BYTES,
            "default.value.serde": BYTES,
            "state.dir": str(folder / "streams"),
            **users.of_java("copyist"),
        }

    def __enter__(self) -> StreamsApplication:
        from py4j.java_gateway import GatewayParameters, JavaGateway

        admin = self._users.admin("clerk", {"bootstrap.servers": self._address, **QUIET})
        admin.create_topics([NewTopic(COPY, PARTITIONS, self._replicas)])[COPY].result(PATIENCE_S)
        gateway = command("py4j.GatewayServer", "--die-on-broken-pipe", "0", jvm_options=JVM_OPTIONS)
        with self.log.open("ab") as errors:
            self._process = subprocess.Popen(
                gateway, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        stdout = self._process.stdout
        assert isinstance(stdout, io.BufferedReader)
        port = int(stdout.readline())
        self._keeping = threading.Thread(target=self._keep, args=(stdout,))
        self._keeping.start()
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
        jvm: Any = self._gateway.jvm
        settings = jvm.java.util.Properties()
        for key, value in self._settings.items():
            settings.setProperty(key, value)
        streams = jvm.org.apache.kafka.streams
        builder = streams.StreamsBuilder()
        builder.stream(TOPIC).to(COPY)
        self._application = streams.KafkaStreams(builder.build(), settings)
        self._application.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._application.close(self._gateway.jvm.java.time.Duration.ofSeconds(30))
        self._gateway.shutdown()
        self._process.kill()
        self._keeping.join()
        with self._process:
            pass  # it closes the pipes

    def _keep(self, said: io.BufferedReader) -> None:
        with self.log.open("ab", buffering=0) as log:
            for some in iter(said.read1, b""):
                log.write(some)

    @property
    def end(self) -> tuple[str, str] | None:
        """The state in which it has ended, and the beginning of its log: what comes later follows from that.
        None while it runs.
        """
        state = str(self._application.state().toString())
        if state in ("RUNNING", "REBALANCING"):
            return None
        return state, self.log.read_text(errors="replace")[:MOST_SHOWN]

    def wrong(self, acknowledged: Collection[Value], patience_s: float) -> dict[str, object]:
        """What is not in the copy after so long without new records, what is there twice, and its end."""
        missing, copied = set(acknowledged), Counter[Value]()
        consumer = self._users.consumer(
            "auditor",
            {
                "bootstrap.servers": self._address,
                "group.id": "checkers",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                **QUIET,
            },
        )
        consumer.assign([TopicPartition(COPY, partition, 0) for partition in range(PARTITIONS)])
        deadline = time.monotonic() + patience_s
        # After the last of them, what was copied twice would follow soon.
        quiet_since = None
        while time.monotonic() < deadline and (quiet_since is None or time.monotonic() < quiet_since + 2):
            messages = [each for each in consumer.consume(5000, timeout=0.5) if each.error() is None]
            values = [Value.parse(message.value()) for message in messages]
            copied.update(values)
            missing.difference_update(values)
            if messages or missing:
                quiet_since = None
            elif quiet_since is None:
                quiet_since = time.monotonic()
        consumer.close()
        found = copy_anomalies(acknowledged, copied)
        end = self.end
        return found if end is None else {**found, "end": end}


def copy_anomalies(acknowledged: Collection[Value], copied: Counter[Value]) -> dict[str, object]:
    """Acknowledged records that are not in the copy, and records that are there twice."""
    found = {
        "missed": sorted(set(acknowledged) - copied.keys())[:10],
        "twice": [value for value, times in copied.items() if times > 1][:10],
    }
    return {name: what for name, what in found.items() if what}
