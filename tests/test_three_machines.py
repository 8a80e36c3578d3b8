"""The files for clusters of three: those of packaging/ for machines, docker/compose.yaml for containers; and
what docs/cluster.md has done with them: a lost disk, a lost volume, and a new release.

Here all three run on this machine: names are put in the place of names, and ports in that of ports.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest
import yaml
from confluent_kafka import KafkaError, Message, Producer

from pykafka_broker.config.sources import load_config
from pykafka_broker.testing.processes import free_port
from tests.support.pages import REPOSITORY, run
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.slow

PAGE = (REPOSITORY / "docs" / "cluster.md").read_text()
PROPERTIES = REPOSITORY / "packaging" / "cluster.properties"
COMPOSE = REPOSITORY / "docker" / "compose.yaml"
PROGRAM = str(Path(sys.executable).with_name("pykafka-broker"))
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
NODES = ("1", "2", "3")
UP = r"(?s)Voters: 1,2,3\t.*" + "State: up.*" * len(NODES)
REPLICATED = UP + r"\nTopics: \d+\tPartitions: \d+\tUnderReplicated: 0\t"


@dataclass
class Machine:
    """A node as a process, as its service starts and stops it, with environment variables of its own."""

    command: list[str]
    data: Path
    log: Path
    address: str
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            environment = {**os.environ, **self.environment}
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=environment)

    def restart(self) -> None:
        """As `systemctl restart` does it."""
        assert self.process is not None
        self.process.terminate()
        assert self.process.wait(PATIENCE_S) == 0, self.log.read_text()
        self.start()

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def lose_its_disk(self) -> None:
        self.end()
        shutil.rmtree(self.data)

    def directory_id(self) -> str:
        text = (self.data / "meta.properties").read_text()
        [found] = re.findall("^directory.id=(.*)$", text, re.MULTILINE)
        return str(found)


@contextmanager
def running(machines: list[Machine]) -> Iterator[str]:
    """The addresses of machines that run, once all of them are up and vote."""
    with ExitStack() as ended:
        for machine in machines:
            machine.start()
            ended.callback(machine.end)
        addresses = ",".join(machine.address for machine in machines)
        status(addresses, UP)
        yield addresses


def status(addresses: str, pattern: str) -> str:
    """What `cluster status` shows, once it shows this."""
    shown = [""]

    def is_shown() -> bool:
        asking = [PROGRAM, "cluster", "status", "-b", addresses, "--timeout", "5"]
        shown[0] = subprocess.run(asking, capture_output=True, text=True, check=False).stdout
        return re.search(pattern, shown[0]) is not None

    until(is_shown, f"cluster status shows {pattern!r}")
    return shown[0]


def until_it_votes(addresses: str, directory: str) -> None:
    """Until the leader of the quorum counts this directory among the voters."""
    asking = [PROGRAM, "quorum", "describe", "-b", addresses, "--json", "--timeout", "5"]
    voter = r'{[^{}]*"(?:Leader|Follower)"[^{}]*}'

    def votes() -> bool:
        shown = subprocess.run(asking, capture_output=True, text=True, check=False).stdout
        return any(directory in replica for replica in re.findall(voter, shown))

    until(votes, f"{directory} votes")


# -- machines --------------------------------------------------------------------------------------------


def formatted(folder: Path, *options: str) -> list[Machine]:
    """Three machines with the file beside the unit, formatted as the page says."""
    ports = {(node, port): free_port() for node in NODES for port in ("9092", "9093")}
    machines = []
    for node in NODES:
        text = PROPERTIES.read_text().replace("node.id=1", f"node.id={node}")
        text = text.replace("//node-1.example.org", f"//node-{node}.example.org")
        text = text.replace("//:9092", f"//127.0.0.1:{ports[node, '9092']}")
        text = text.replace("//:9093", f"//127.0.0.1:{ports[node, '9093']}")
        text = re.sub(
            r"node-(\d)\.example\.org:(\d+)", lambda found: f"127.0.0.1:{ports[found[1], found[2]]}", text
        )
        file = folder / f"{node}.properties"
        file.write_text(text.replace("/var/lib/pykafka-broker", str(folder / node)))
        config = load_config(file=str(file))
        assert (config.unknown, config.unheeded) == ([], [])
        format_machine(file, "--standalone" if node == "1" else "--no-initial-controllers", *options)
        machines.append(
            Machine(
                [PROGRAM, "start", "--config", str(file)],
                data=folder / node / "data",
                log=folder / f"{node}.log",
                address=f"127.0.0.1:{ports[node, '9092']}",
            )
        )
    return machines


def format_machine(file: Path, *options: str) -> None:
    subprocess.run([PROGRAM, "format", "-c", str(file), "--cluster-id", CLUSTER_ID, *options], check=True)


def test_three_machines_with_the_file_beside_the_unit_become_a_cluster(tmp_path: Path) -> None:
    machines = formatted(tmp_path)
    with running(machines) as addresses:
        # The first one, whose quorum it was.
        machines[0].lose_its_disk()
        format_machine(tmp_path / "1.properties", "--no-initial-controllers")
        machines[0].start()
        until_it_votes(addresses, machines[0].directory_id())
        status(addresses, UP)


class Records:
    """A stock producer that writes numbered records to `orders`, one after the other, until it is over."""

    def __init__(self, addresses: str) -> None:
        self._producer = Producer({"bootstrap.servers": addresses, "enable.idempotence": True})
        self._thread = threading.Thread(target=self._write)
        self._is_over = threading.Event()
        self._told = threading.Condition()
        self._newest = -1
        self._failed: list[KafkaError] = []
        self.asked = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._is_over.is_set():
            self._producer.produce("orders", b"%d" % self.asked, on_delivery=self._delivered)
            self.asked += 1
            self._producer.poll(0.005)
        self._producer.flush(PATIENCE_S)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        with self._told:
            if error is not None:
                self._failed.append(error)
            else:
                self._newest = max(self._newest, int(message.value() or b""))
            self._told.notify_all()

    def go_on(self) -> None:
        """Return when a record is acknowledged that is asked for from now on."""
        asked = self.asked
        with self._told:
            assert self._told.wait_for(lambda: self._failed or self._newest >= asked, PATIENCE_S)
        assert self._failed == []


def test_a_new_release_comes_to_one_machine_after_the_other_while_records_are_written(
    tmp_path: Path,
) -> None:
    # As a cluster that has come from the release before.
    machines = formatted(tmp_path, "--release-version", "4.2")
    [upgrade] = re.findall(r"`(pykafka-broker features upgrade metadata\.version=[^`]*)`", PAGE)
    with running(machines) as addresses:
        run("pykafka-broker topics create orders", addresses, tmp_path)
        with Records(addresses) as records:
            for machine in machines:
                records.go_on()
                machine.restart()
                status(addresses, REPLICATED)
            assert "4.2-IV1" in finalized(addresses, tmp_path)
            run(upgrade, addresses, tmp_path)
            records.go_on()
        assert upgrade.partition("=")[2] in finalized(addresses, tmp_path)
        *read, _ = run("pykafka-broker consume orders --until end", addresses, tmp_path).splitlines()
        # None is lost, and none is there twice.
        assert sorted(map(int, read)) == list(range(records.asked))


def finalized(addresses: str, folder: Path) -> str:
    """The metadata.version that the cluster uses."""
    described = run("pykafka-broker features describe", addresses, folder)
    [found] = re.findall(r"Feature: metadata\.version.*FinalizedVersionLevel: (\S+)", described)
    return str(found)


# -- containers ------------------------------------------------------------------------------------------


def test_the_containers_of_the_compose_file_become_a_cluster(tmp_path: Path) -> None:
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    assert list(services) == [f"node-{node}" for node in NODES]
    ports: dict[tuple[str, str], int] = {}

    def here(found: re.Match[str]) -> str:
        """This machine, and a port for that of a container or of its host."""
        host, port = found[1], found[2]
        node = host.removeprefix("node-") if host.startswith("node-") else port[-1]
        return f"127.0.0.1:{ports.setdefault((node, port), free_port())}"

    machines = []
    for node in NODES:
        environment: dict[str, str] = services[f"node-{node}"]["environment"]
        host_port = f"2909{node}"
        assert services[f"node-{node}"]["ports"] == [f"{host_port}:{host_port}"]
        listeners = environment["KAFKA_LISTENERS"]
        listeners = re.sub(r"//:(909\d)", rf"//node-{node}:\1", listeners)
        listeners = listeners.replace("//:29", "//localhost:29")
        moved = {**environment, "KAFKA_LISTENERS": listeners}
        keys = {name: re.sub(r"(node-\d|localhost):(\d+)", here, value) for name, value in moved.items()}
        data = tmp_path / node
        machines.append(
            Machine(
                [PROGRAM, "start", "--data-dir", str(data)],
                data=data,
                log=tmp_path / f"{node}.log",
                address=f"127.0.0.1:{ports[node, host_port]}",
                environment=keys,
            )
        )
    with running(machines) as addresses:
        assert "node-" not in status(addresses, UP)
        first = machines[0]
        first.lose_its_disk()
        [format_again] = re.findall("run --rm node-1 pykafka-broker (format .*)", PAGE)
        command = shlex.split(format_again.replace("/var/lib/kafka/data", str(first.data)))
        subprocess.run([PROGRAM, *command], env={**os.environ, **first.environment}, check=True)
        assert first.directory_id() not in first.environment["KAFKA_INITIAL_CONTROLLERS"]
        first.start()
        until_it_votes(addresses, first.directory_id())
        status(addresses, UP)
