"""`cluster`: nodes as processes, found again from their folder; and what is refused before any starts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pykafka_broker.cli.local_cluster.processes import states_of
from pykafka_broker.local_cluster.folder import ClusterFolder
from pykafka_broker.local_cluster.layout import Layout
from tests.cli.conftest import Result, run_command


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where a cluster may be made; its nodes are killed after the test."""
    path = tmp_path / "cluster"
    yield path
    cluster = ClusterFolder(path)
    if nodes := cluster.node_ids():
        run_command("cluster", "kill", *map(str, nodes), "-d", str(path))


def states(result: Result) -> dict[int, str]:
    assert result.status == 0, result.err
    return {node["node_id"]: node["state"] for node in json.loads(result.out)["nodes"]}


def test_nodes_are_killed_frozen_restarted_and_stopped_by_their_folder(folder: Path) -> None:
    def cluster(*words: str) -> Result:
        return run_command("cluster", *words, "-d", str(folder), "--json")

    started = cluster("start", "--nodes", "3", "--port", "0", "--detach")
    assert states(started) == {1: "up", 2: "up", 3: "up"}
    assert started.err.count(" is up at 127.0.0.1:") == 3
    bootstrap = ",".join(node["address"] for node in json.loads(started.out)["nodes"])
    made = run_command("topics", "create", "orders", "--replication-factor", "3", "-b", bootstrap)
    assert made.status == 0, made.err

    assert states(cluster("kill", "3")) == {1: "up", 2: "up", 3: "died"}
    [_, _, third] = json.loads(cluster("nodes").out)["nodes"]
    assert third["reason"].startswith("it ended without a word, as by kill -9; its log is ")
    assert states(cluster("kill", "3")) == {1: "up", 2: "up", 3: "died"}

    assert states(cluster("pause", "2")) == {1: "up", 2: "paused", 3: "died"}
    assert states(cluster("resume", "2")) == {1: "up", 2: "up", 3: "died"}

    before = json.loads(cluster("nodes").out)["nodes"]
    assert states(cluster("start", "--nodes", "3", "--detach")) == {1: "up", 2: "up", 3: "up"}
    restarted = cluster("restart", "1")
    assert states(restarted) == {1: "up", 2: "up", 3: "up"}
    after = json.loads(restarted.out)["nodes"]
    assert [node["address"] for node in before] == [node["address"] for node in after]
    assert [old["pid"] == new["pid"] for old, new in zip(before, after, strict=True)] == [False, True, False]
    assert run_command("topics", "list", "-b", bootstrap).out == "orders\n"

    assert states(cluster("stop")) == {1: "stopped", 2: "stopped", 3: "stopped"}
    assert states(cluster("stop")) == {1: "stopped", 2: "stopped", 3: "stopped"}


def test_ctrl_c_stops_all_nodes_in_good_order(folder: Path) -> None:
    command = [sys.executable, "-m", "pykafka_broker", "cluster", "start", "-d", str(folder), "-p", "0"]
    with ExitStack() as at_end:
        process = at_end.enter_context(
            subprocess.Popen(
                [*command, "--brokers", "1", "--controllers", "1"], stdout=subprocess.PIPE, text=True
            )
        )
        at_end.callback(process.kill)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        assert sorted(line.split(" at ")[0] for line in lines[:2]) == ["Node 1 is up", "Node 2 is up"]
        address = ClusterFolder(folder).address(2)
        assert lines[2] == f"Bootstrap servers: {address} (data in {folder})\n"
        assert run_command("cluster", "kill", "2", "-d", str(folder)).status == 0
        assert process.stdout.readline().startswith("Node 2 died: it ended without a word")
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=120)
    assert (process.returncode, rest) == (0, "Node 2 has stopped\nNode 1 has stopped\n")
    assert [state.state for state in states_of(ClusterFolder(folder))] == ["stopped", "stopped"]
    assert "[KafkaRaftServer nodeId=1] Stopping Kafka server" in (folder / "node-1" / "node.log").read_text()


def test_a_node_that_cannot_start_says_why(folder: Path) -> None:
    result = run_command(
        *("cluster", "start", "-n", "1", "-p", "0", "--detach", "-d", str(folder), "-o", "num.partitions=x")
    )
    assert result.status == 1
    assert "num.partitions" in result.err


def test_another_folder_another_shape_and_another_node_are_refused(folder: Path) -> None:
    def refused(*words: str) -> str:
        result = run_command("cluster", *words, "-d", str(folder))
        assert result.status in (1, 2) and not result.out
        return result.err

    assert "There is no cluster in" in refused("nodes")
    ClusterFolder(folder).create(Layout(combined=3), 0, {})
    assert f"{folder} holds a cluster of 3 nodes, not of 4 nodes" in refused("start", "--nodes", "4")
    assert "There is no node 7; the cluster has 1, 2, 3." in refused("kill", "7")
    assert "both --brokers and --controllers" in refused("start", "--brokers", "2")
    (folder / "cluster.properties").unlink()
    assert "is not empty, and holds no cluster" in refused("start")
