"""The files for clusters of three: those of packaging/ for machines, docker/compose.yaml for containers.

Here all three run on this machine: names are put in the place of names, and ports in that of ports.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from pykafka_broker.config.sources import load_config
from pykafka_broker.testing.processes import free_port
from tests.support.pages import REPOSITORY

pytestmark = pytest.mark.slow

PROPERTIES = REPOSITORY / "packaging" / "cluster.properties"
COMPOSE = REPOSITORY / "docker" / "compose.yaml"
PROGRAM = str(Path(sys.executable).with_name("pykafka-broker"))
NODES = ("1", "2", "3")
PATIENCE_S = 60.0


@contextmanager
def running(
    commands: list[list[str]], folder: Path, keys: Sequence[Mapping[str, str]]
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Nodes as processes, each with environment variables of its own."""
    processes = []
    with ExitStack() as ended:
        for number, (command, more) in enumerate(zip(commands, keys, strict=True), 1):
            log = ended.enter_context((folder / f"{number}.log").open("wb"))
            process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **more})
            ended.callback(process.wait)
            ended.callback(process.terminate)
            processes.append(process)
        yield processes


def status(address: str) -> str:
    """What `cluster status` says once three brokers are up, and three controllers vote."""
    give_up = time.monotonic() + PATIENCE_S
    while True:
        asked = subprocess.run(
            [PROGRAM, "cluster", "status", "-b", address, "--timeout", "5"],
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.stdout.count("State: up") == len(NODES) and "Voters: 1,2,3" in asked.stdout:
            return asked.stdout
        assert time.monotonic() < give_up, asked


def until_it_votes(address: str, directory: str) -> None:
    """Until the leader of the quorum counts this directory among the voters."""
    give_up = time.monotonic() + PATIENCE_S
    asking = [PROGRAM, "quorum", "describe", "-b", address, "--json", "--timeout", "5"]
    while True:
        asked = subprocess.run(asking, capture_output=True, text=True, check=False)
        if any(
            directory in replica
            for replica in re.findall(r'{[^{}]*"(?:Leader|Follower)"[^{}]*}', asked.stdout)
        ):
            return
        assert time.monotonic() < give_up, asked


def test_three_machines_with_the_file_beside_the_unit_become_a_cluster(tmp_path: Path) -> None:
    ports = {(node, port): free_port() for node in NODES for port in ("9092", "9093")}
    commands = []
    for node in NODES:
        text = PROPERTIES.read_text().replace("node.id=1", f"node.id={node}")
        text = text.replace("//node-1.example.org", f"//node-{node}.example.org")
        text = text.replace("//:9092", f"//127.0.0.1:{ports[node, '9092']}")
        text = text.replace("//:9093", f"//127.0.0.1:{ports[node, '9093']}")
        text = re.sub(
            r"node-(\d)\.example\.org:(\d+)", lambda found: f"127.0.0.1:{ports[found[1], found[2]]}", text
        )
        file = tmp_path / f"{node}.properties"
        file.write_text(text.replace("/var/lib/pykafka-broker", str(tmp_path / node)))
        config = load_config(file=str(file))
        assert (config.unknown, config.unheeded) == ([], [])
        cluster_id = "5L6g3nShT-eMCtK--X86sw"
        quorum = "--standalone" if node == "1" else "--no-initial-controllers"
        subprocess.run([PROGRAM, "format", "-c", str(file), "--cluster-id", cluster_id, quorum], check=True)
        commands.append([PROGRAM, "start", "--config", str(file)])
    with running(commands, tmp_path, [{}] * len(NODES)) as processes:
        address = f"127.0.0.1:{ports['2', '9092']}"
        status(address)
        # The first one, whose quorum it was, loses its disk.
        processes[0].kill()
        processes[0].wait()
        shutil.rmtree(tmp_path / "1")
        first = str(tmp_path / "1.properties")
        again = [PROGRAM, "format", "-c", first, "--cluster-id", cluster_id, "--no-initial-controllers"]
        subprocess.run(again, check=True)
        [directory] = re.findall(
            "^directory.id=(.*)$", (tmp_path / "1/data/meta.properties").read_text(), re.MULTILINE
        )
        (tmp_path / "again").mkdir()
        with running(commands[:1], tmp_path / "again", [{}]):
            until_it_votes(address, directory)
            status(address)


def test_the_containers_of_the_compose_file_become_a_cluster(tmp_path: Path) -> None:
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    assert list(services) == [f"node-{node}" for node in NODES]
    ports: dict[tuple[str, str], int] = {}

    def here(found: re.Match[str]) -> str:
        """This machine, and a port for that of a container or of its host."""
        host, port = found[1], found[2]
        node = host.removeprefix("node-") if host.startswith("node-") else port[-1]
        return f"127.0.0.1:{ports.setdefault((node, port), free_port())}"

    commands, keys = [], []
    for node in NODES:
        environment: dict[str, str] = services[f"node-{node}"]["environment"]
        host_port = f"2909{node}"
        assert services[f"node-{node}"]["ports"] == [f"{host_port}:{host_port}"]
        listeners = environment["KAFKA_LISTENERS"]
        listeners = re.sub(r"//:(909\d)", rf"//node-{node}:\1", listeners)
        listeners = listeners.replace("//:29", "//localhost:29")
        moved = {**environment, "KAFKA_LISTENERS": listeners}
        keys.append(
            {name: re.sub(r"(node-\d|localhost):(\d+)", here, value) for name, value in moved.items()}
        )
        commands.append([PROGRAM, "start", "--data-dir", str(tmp_path / node)])
    with running(commands, tmp_path, keys):
        shown = status(f"127.0.0.1:{ports['3', '29093']}")
        assert "node-" not in shown
