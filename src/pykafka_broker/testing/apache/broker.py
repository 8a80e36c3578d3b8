"""Apache Kafka's broker as a process, to be compared with or taken over from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pykafka_broker.testing.apache.tools import SHORT_LIVED, command, run_tool
from pykafka_broker.testing.processes import BrokerProcess, free_port

#: Heap of a broker, as Kafka's own start script sets it.
BROKER_HEAP = "1g"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


class ApacheBroker(BrokerProcess):
    """A single node, broker and controller in one process, formatted at its first start."""

    name = "apache"
    #: These options halve the processor time of a start; a measurement of Kafka's speed sets none.
    jvm_options: tuple[str, ...] = SHORT_LIVED

    def __init__(self, properties: Mapping[str, str] | None = None, folder: Path | None = None) -> None:
        super().__init__(properties, folder)
        self.controller_port = free_port()

    @property
    def controller_address(self) -> str:
        return f"127.0.0.1:{self.controller_port}"

    @property
    def properties_file(self) -> Path:
        return self.folder / "server.properties"

    def prepare(self) -> None:
        super().prepare()
        controller = self.controller_address
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": controller,
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address},CONTROLLER://{controller}",
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.data_dir),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **self.properties,
        }
        self.properties_file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        if not (self.data_dir / "meta.properties").exists():
            self.format()

    def format(self) -> None:
        run_tool(
            "kafka.tools.StorageTool",
            "format",
            "--standalone",
            "-t",
            CLUSTER_ID,
            "-c",
            str(self.properties_file),
        )

    def command(self) -> list[str]:
        options = (*self.jvm_options, f"-Xmx{BROKER_HEAP}")
        return command("kafka.Kafka", str(self.properties_file), jvm_options=options)
