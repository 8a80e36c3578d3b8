"""Apache Kafka 4.3.1, the broker that decides what is right: its jars, its broker and its command-line tools.

The jars are fetched with Maven once, into `.cache/kafka-4.3.1/libs` below the repository
(`interop/oracle/pom.xml` names them), with a Maven repository of their own so that nothing is left in the
home folder. Needs Java 17 and Maven.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from interop.brokers import CACHE, BrokerProcess, free_port

VERSION = "4.3.1"
POM = Path(__file__).parent / "oracle" / "pom.xml"
CLIENTS_POM = POM.with_name("clients.pom.xml")
STREAMS_PROGRAMS_POM = POM.with_name("streams-programs.pom.xml")

#: Heap of a broker, as Kafka's own start script sets it.
BROKER_HEAP = "1g"
#: For processes that live for seconds: neither the optimising compiler nor a parallel collector pays there.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


class OracleUnavailableError(Exception):
    """Java, Maven or the jars cannot be had on this machine; the message says which."""


class ToolError(Exception):
    """A Java tool ended with a non-zero status; the message holds what it printed."""


def java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if not found:
        raise OracleUnavailableError("no java on the path (Debian: apt-get install openjdk-17-jre-headless)")
    return found


def libs(version: str = VERSION) -> Path:
    """The folder of Kafka's jars, fetched on first use. Of another release than the oracle's: clients and
    tools alone.
    """
    return fetched("libs", POM if version == VERSION else CLIENTS_POM, version)


def streams_programs() -> Path:
    """The folder of Kafka Streams' own test programs, fetched on first use; they run with `libs` beside."""
    return fetched("streams-programs", STREAMS_PROGRAMS_POM, VERSION, "-DexcludeTransitive=true")


def fetched(name: str, pom: Path, version: str, *options: str) -> Path:
    """The folder of the jars that a POM names."""
    folder = CACHE / f"kafka-{version}" / name
    if not folder.is_dir():
        CACHE.mkdir(exist_ok=True)
        with alone(CACHE / "maven.lock"):
            if not folder.is_dir():
                fetch(folder, pom, version, *options)
    return folder


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other process is at it: tests in several want the same jars at the same time."""
    import fcntl  # Windows has none, and reads the rest of this module

    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fetch(folder: Path, pom: Path, version: str, *options: str) -> None:
    maven = shutil.which("mvn")
    if not maven:
        raise OracleUnavailableError(
            "no mvn on the path to fetch Apache Kafka's jars (Debian: apt-get install maven)"
        )
    java()
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    done = subprocess.run(
        [
            *(maven, "-q", "-B", "-f", str(pom), f"-Dkafka.version={version}", *options),
            f"-Dmaven.repo.local={CACHE / 'm2'}",
            *("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={unfinished}"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise OracleUnavailableError(
            f"Maven could not fetch Apache Kafka's jars:\n{done.stdout}{done.stderr}"
        )
    unfinished.rename(folder)


def command(
    main_class: str, *arguments: str, jvm_options: tuple[str, ...] = (), version: str = VERSION
) -> list[str]:
    """The command line of a main class of Kafka's, or of a program in Java that needs its jars."""
    return [java(), *jvm_options, "-cp", f"{libs(version)}/*", main_class, *arguments]


def run_tool(
    main_class: str,
    *arguments: str,
    stdin: str = "",
    timeout_s: float = 120,
    expect_failure: bool = False,
    version: str = VERSION,
) -> str:
    """Run one of Kafka's tools and return what it printed on stdout."""
    options = (*SHORT_LIVED, "-Dlog4j2.level=WARN")
    done = subprocess.run(
        command(main_class, *arguments, jvm_options=options, version=version),
        input=stdin.encode(),
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
    printed = done.stdout.decode(errors="replace")
    if (done.returncode != 0) != expect_failure:
        raise ToolError(
            f"{main_class} ended with {done.returncode}:\n{printed}{done.stderr.decode(errors='replace')}"
        )
    return printed


class ApacheBroker(BrokerProcess):
    """A single node, broker and controller in one process, formatted at its first start."""

    name = "apache"
    #: They halve the processor time of a start; what measures Kafka's speed takes none.
    jvm_options: tuple[str, ...] = SHORT_LIVED

    def __init__(self, properties: Mapping[str, str] | None = None, folder: Path | None = None) -> None:
        super().__init__(properties, folder)
        self.controller_port = free_port()

    @property
    def properties_file(self) -> Path:
        return self.folder / "server.properties"

    def prepare(self) -> None:
        super().prepare()
        controller = f"127.0.0.1:{self.controller_port}"
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
