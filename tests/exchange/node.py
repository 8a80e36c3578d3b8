"""One node's folder and its server.properties, which either broker can run: Apache Kafka 4.3.1 or ours.

Both read the very same file and listen on the same addresses, so clients notice an exchange as a restart.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Literal

from pykafka_broker.testing.apache.broker import CLUSTER_ID, ApacheBroker
from pykafka_broker.testing.apache.tools import run_tool

Software = Literal["apache", "ours"]

#: Short starts, also after kill -9 (so long Apache Kafka waits for a broker that was killed before it takes
#: another of its name), and metadata snapshots on both sides; everything else is as Kafka's own file has it.
PROPERTIES = {
    "broker.session.timeout.ms": "5000",
    "broker.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "metadata.log.max.record.bytes.between.snapshots": "4000",
}

LOGGING = """
status=error
appender.file.type=Console
appender.file.name=file
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=INFO
rootLogger.appenderRef.file.ref=file
"""

#: What Apache Kafka complains of at every start or stop on a folder of its own too.
ALWAYS_SAID = (
    # A stop that comes while the partitions of internal topics are still being loaded.
    r"Failed to load metadata from __\w+-\d+ with epoch \d+ due to Stopped loading records",
    r"\[MetadataLoader id=1\] .*",
    r"\[RaftManager id=1\] .*",
    r"\[BrokerLifecycleManager id=1\] .*",
    r"\[NodeToControllerChannelManager .*",
    r"\[QuorumController id=1\] Performing controller activation\..*",
    # On a busy machine.
    r"Exceptionally slow controller event .*EventPerformanceMonitor",
    # A controller that registers itself between its election and its first record; it tries again.
    r"Unexpected error .*\(apiKey=CONTROLLER_REGISTRATION,.*NotControllerException",
    # A broker that registers itself once more while it tells its directories; it tries again.
    r"\(apiKey=ASSIGN_REPLICAS_TO_DIRS,.*StaleBrokerEpochException",
    r"AssignmentsManager.* STALE_BROKER_EPOCH\. Retrying",
)


class Node(ApacheBroker):
    """The folder, with one of the two brokers on it, or none."""

    def __init__(self, folder: Path, properties: dict[str, str] | None = None) -> None:
        super().__init__({**PROPERTIES, **(properties or {})}, folder)
        self.software: Software = "apache"
        self.release: str | None = None
        #: Where the log of the running, or the last, process begins.
        self._log_start = 0

    def command(self) -> list[str]:
        if self.software == "ours":
            return [sys.executable, "-m", "pykafka_broker", "start", "--config", str(self.properties_file)]
        logging = self.folder / "log4j2.properties"
        logging.write_text(LOGGING)
        java, *rest = super().command()
        return [java, f"-Dlog4j2.configurationFile={logging}", *rest]

    def format(self) -> None:
        if self.software == "ours":
            return
        if "controller.quorum.voters" not in self.properties:
            super().format()
            return
        options = () if self.release is None else ("--release-version", self.release)
        properties_file = str(self.properties_file)
        run_tool("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", properties_file, *options)

    def use_static_voters(self, release: str | None = None) -> None:
        """Name the quorum in the configuration, as clusters before KIP-853 do: kraft.version 0.

        Apache Kafka formats the folder for this release; None: for its own.
        """
        self.release = release
        self.properties["controller.quorum.voters"] = f"1@127.0.0.1:{self.controller_port}"
        self.properties["controller.quorum.bootstrap.servers"] = ""

    def run(self, software: Software) -> None:
        self.software = software
        self._log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
        self.start()

    @contextmanager
    def running(self, software: Software) -> Iterator[Node]:
        """A broker from its start to a stop in order."""
        self.run(software)
        try:
            yield self
            self.stop()
        finally:
            self.kill()

    def log_lines(self) -> list[str]:
        """What the last process has said."""
        with self.log_file.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace").splitlines()

    def complaints(self) -> list[str]:
        """WARN and ERROR lines of the last process, each with the exception that follows it.

        Those that every start has are left out.
        """
        said = [
            f"{line} {behind}" if behind and not behind.startswith("[") else line
            for line, behind in pairwise([*self.log_lines(), ""])
            if re.search(r"\] (WARN|ERROR|FATAL|CRITICAL) ", line)
        ]
        return [line for line in said if not any(re.search(known, line) for known in ALWAYS_SAID)]
