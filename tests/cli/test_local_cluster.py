"""`cluster`: nodes as processes, found again from their folder; and what is refused before any starts."""

from __future__ import annotations

import errno
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from pykafka_broker.cli import local_cluster
from pykafka_broker.cli.local_cluster import nodes
from pykafka_broker.cli.local_cluster.in_sync import Replica, not_in_sync
from pykafka_broker.cli.local_cluster.nodes import loss_by_stop
from pykafka_broker.cli.local_cluster.processes import NodeState, states_of
from pykafka_broker.cli.local_cluster.status import ASK_CONTROLLERS, NO_QUORUM
from pykafka_broker.cli.output import Output
from pykafka_broker.local_cluster.folder import ClusterFolder
from pykafka_broker.local_cluster.layout import Layout
from pykafka_broker.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from tests.cli.conftest import Result, run_command


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where a cluster may be made; its nodes are killed after the test."""
    path = tmp_path / "cluster"
    yield path
    cluster = ClusterFolder(path)
    if made := cluster.node_ids():
        run_command("cluster", "kill", *map(str, made), "-d", str(path))


def is_free(port: int) -> bool:
    with suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False


def test_a_port_that_is_taken_is_told_before_a_node_is_made(folder: Path) -> None:
    port = next(port for port in range(47_000, 60_000) if is_free(port))
    with socket.create_server(("127.0.0.1", port)):
        started = run_command("cluster", "start", "-p", str(port), "-n", "1", "-d", str(folder))
    assert started.status == 1
    assert re.fullmatch(
        rf"Error: Port {port} is taken by this very process \(\d+\): start with --port \d+\n", started.err
    )
    assert not folder.exists()


def test_nodes_keep_their_ports(folder: Path) -> None:
    ClusterFolder(folder).create(Layout(combined=1), 0, {})
    port = ClusterFolder(folder).ports(1)[1]
    with socket.create_server(("127.0.0.1", port)):
        started = run_command("cluster", "start", "-p", "7777", "-d", str(folder))
    assert started.status == 1
    assert started.err.startswith(f"Error: Port {port} of node 1 is taken by this very process (")


def test_nodes_are_stopped_where_their_addresses_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    stopped: list[list[int]] = []
    monkeypatch.setattr(local_cluster, "start_nodes", lambda *_: None)
    monkeypatch.setattr(local_cluster, "stop_nodes", lambda _, node_ids, *others: stopped.append(node_ids))
    monkeypatch.setattr(Output, "show_all", full)

    started = run_command("cluster", "start", "-n", "2", "-p", "0", "-d", str(folder))
    assert (started.status, started.err) == (1, "Error: No space left on device\n")
    assert stopped == [[1, 2]]


def test_nodes_get_nothing_that_the_environment_says_of_another_broker(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLUSTER_ID", "KAFKA_NODE_ID", "KAFKA_LOG4J_LOGGERS"):
        monkeypatch.setenv(name, "of another")
    spawned: list[dict[str, str]] = []

    def popen(_: list[str], *, env: dict[str, str], **others: object) -> SimpleNamespace:
        spawned.append(env)
        return SimpleNamespace(pid=0, poll=lambda: 0)

    monkeypatch.setattr(subprocess, "Popen", popen)
    ClusterFolder(folder).create(Layout(combined=1), 0, {})
    nodes._spawn(ClusterFolder(folder), 1)
    [env] = spawned
    assert [name for name, value in env.items() if value == "of another"] == ["KAFKA_LOG4J_LOGGERS"]


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

    assert states(cluster("kill", "2")) == {1: "up", 2: "died", 3: "died"}
    assert cluster("stop", "1").err == f"Warning: {LOST}\n"
    alone = cluster("restart", "1", "--timeout", "0.1")
    assert json.loads(alone.err)["error"] == (
        f"Not up within 0.1 s: 1; their logs are in {folder}. "
        "Nodes 2, 3 must run too: it takes a majority of controllers to lead"
    )
    assert states(cluster("start", "--nodes", "3", "--detach")) == {1: "up", 2: "up", 3: "up"}
    before = json.loads(cluster("nodes").out)["nodes"]
    restarted = cluster("restart", "1")
    assert states(restarted) == {1: "up", 2: "up", 3: "up"}
    after = json.loads(restarted.out)["nodes"]
    assert [node["address"] for node in before] == [node["address"] for node in after]
    assert [old["pid"] == new["pid"] for old, new in zip(before, after, strict=True)] == [False, True, True]
    assert run_command("topics", "list", "-b", bootstrap).out == "orders\n"

    assert states(cluster("stop")) == {1: "stopped", 2: "stopped", 3: "stopped"}
    assert states(cluster("stop")) == {1: "stopped", 2: "stopped", 3: "stopped"}


def node(node_id: int, state: str = "up", *roles: str) -> NodeState:
    pid = None if state in ("died", "stopped") else 100 + node_id
    return NodeState(node_id, state, list(roles or ("broker", "controller")), "127.0.0.1:9092", pid, None)


MAJORITY = "until more than half of the 3 controllers run"
LOST = f"No controller leads: once stopped, node 1 will not serve {MAJORITY}. Nodes 2, 3 do not"
ONLY = "No controller leads: once stopped, node 2 will not serve until the only controller runs. Node 1 does"
LAST = f"Without node 2 no controller leads, {MAJORITY}: "


@pytest.mark.parametrize(
    ("there", "stopped", "restart", "loss"),
    [
        ([node(1), node(2), node(3)], [1], False, None),
        ([node(1), node(2), node(3)], [1, 2, 3], False, None),
        ([node(1), node(2), node(3)], [1, 2, 3], True, None),
        ([node(1), node(2), node(3, "died")], [2], True, None),
        ([node(1), node(2), node(3, "died")], [2], False, LAST),
        ([node(1), node(2, "died"), node(3, "stopped")], [1], True, LOST),
        ([node(1), node(2, "died"), node(3, "stopped")], [1], False, LOST),
        ([node(1), node(2, "paused"), node(3, "paused")], [1], False, LOST),
        ([node(1), node(2, "died"), node(3, "stopped")], [1, 2], True, None),
        ([node(1), node(2, "died"), node(3, "stopped")], [3], False, None),
        ([node(1, "died", "controller"), node(2, "up", "broker")], [2], True, ONLY),
    ],
)
def test_the_stop_of_nodes_that_cannot_come_back_alone_is_not_silent(
    there: list[NodeState], stopped: list[int], restart: bool, loss: str | None
) -> None:
    said = loss_by_stop(there, stopped, restart=restart)
    assert said == loss if loss is None else (said or "").startswith(loss)


def test_a_restart_starts_the_nodes_that_are_down_together_and_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without them, none that it stops before could serve again."""
    done: list[tuple[str, object]] = []
    for step in ("stop_nodes", "_await_up", "_spawn"):
        monkeypatch.setattr(nodes, step, lambda _, what, *others, step=step: done.append((step, what)))
    monkeypatch.setattr(nodes, "pid_of", lambda _, node_id: 4711 if node_id == 1 else None)
    monkeypatch.setattr(nodes, "lagging", lambda *asked: set())
    monkeypatch.setattr(nodes, "await_in_sync", lambda *asked: None)
    ClusterFolder(folder).create(Layout(combined=3), 0, {})
    nodes.restart_nodes(ClusterFolder(folder), [1, 2, 3], 1.0, print, print)
    assert [step for step in done if step[0] != "stop_nodes"] == [
        ("_spawn", 2),
        ("_spawn", 3),
        ("_await_up", [2, 3]),
        ("_spawn", 1),
        ("_await_up", [1]),
    ]


@pytest.mark.slow
def test_a_node_that_waits_for_the_others_is_told_by_its_controller(folder: Path) -> None:
    """Nothing listened for clients, so `cluster status` knew nothing but "Connection refused"."""

    def cluster(*words: str) -> Result:
        return run_command("cluster", *words, "-d", str(folder))

    assert cluster("start", "--nodes", "3", "--port", "0", "--detach").status == 0
    assert cluster("kill", "1", "2", "3").status == 0
    gone = cluster("status", "--json")
    assert (gone.status, json.loads(gone.out)["voters"]) == (1, [1, 2, 3])
    assert gone.err.endswith("Node 1 has died, node 2 has died, node 3 has died. No controller answers.\n")

    assert cluster("restart", "3", "--timeout", "3").status == 1, "it waits for a majority"
    made = ClusterFolder(folder)
    pid = json.loads(cluster("nodes", "--json").out)["nodes"][2]["pid"]
    controller = made.controller_address(3)
    finds = (
        f"ontroller 3 at {controller} finds no controller that leads: until one leads, nothing is created, "
        "changed or elected; a request without an answer may be carried out then. "
        "Of the controllers (1, 2, 3) these do not answer from here: 1, 2. Start them: "
        "more than half of the voters must run.\n"
    )
    shown = cluster("status")
    assert shown.status == NO_QUORUM
    assert shown.err == (
        "No broker answers, and only brokers tell of topics, partitions and the epoch of a quorum without a "
        f"leader. Node 1 has died, node 2 has died, node 3 is starting (process {pid}). C{finds}"
    )
    first, quorum, *brokers = shown.out.splitlines()
    assert first == f"ClusterId: {made.cluster_id}"
    assert quorum.startswith("Quorum: none\tVoters: 1,2,3\tSilent: 1,2\tMetadataFrom: \t")
    assert [line.split("\t")[:2] for line in brokers] == [
        [f"Broker: {node_id}", "State: silent"] for node_id in (1, 2, 3)
    ]
    found = json.loads(cluster("status", "--json").out)
    assert (found["has_quorum"], found["metadata_from"], found["silent_voters"]) == (False, None, [1, 2])

    for command in ("cluster status", "topics list"):
        refused = run_command(*command.split(), "-b", made.address(3))
        assert refused.status == 1
        assert refused.err.startswith(f"Error: Cannot connect to {made.address(3)}: ")
        assert f"process {pid} (" in refused.err
        assert refused.err.endswith(f"is still starting; c{finds}")
    nowhere = run_command("cluster", "status", "-b", made.address(1))
    assert nowhere.err.endswith(f"; {ASK_CONTROLLERS}\n")


@pytest.mark.slow
def test_a_restart_of_all_waits_for_each_to_be_in_sync_again(folder: Path) -> None:
    def cluster(*words: str) -> Result:
        return run_command("cluster", *words, "-d", str(folder))

    # A fetch has one batch at a time: the throttle counts what has been fetched.
    keys = ("default.replication.factor=3", "min.insync.replicas=2", "replica.fetch.max.bytes=1")
    overrides = [word for key in keys for word in ("-o", key)]
    assert cluster("start", "-p", "0", "--detach", *overrides).status == 0
    bootstrap = ClusterFolder(folder).bootstrap_servers()

    def run(*words: str, stdin: bytes = b"") -> Result:
        result = run_command(*words, "-b", bootstrap, stdin=stdin)
        assert result.status == 0, result.err
        return result

    run("topics", "create", "orders", "-p", "4")
    run("produce", "orders", "-p", "0", "one")
    restarted = cluster("restart")
    assert (restarted.status, restarted.err) == (0, "")
    assert "\tUnderReplicated: 0\t" in run("cluster", "status").out

    # A replica that may copy a byte a second is not in sync soon.
    run("configs", "alter", "--topic", "orders", "--set", "follower.replication.throttled.replicas=*")
    run("configs", "alter", "--broker", "2", "--set", "follower.replication.throttled.rate=1")
    assert cluster("kill", "2").status == 0
    for value in ("two", "three", "four"):
        run("produce", "orders", "-p", "0", value)
    slow = cluster("restart", "2", "--timeout", "12")
    assert (slow.status, slow.err) == (0, "Node 2 is up, but not in sync again within 12 s: orders-0\n")
    assert cluster("restart", "1").err == "", "what was not in sync before is not waited for"


def test_a_restart_waits_where_brokers_ask_for_a_login_if_it_has_one(folder: Path) -> None:
    jaas = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="node" password="node-secret" user_node="node-secret";'
    )
    keys = (
        "listener.security.protocol.map=PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN",
        "sasl.mechanism.inter.broker.protocol=PLAIN",
        f"listener.name.plaintext.plain.sasl.jaas.config={jaas}",
    )
    overrides = [word for key in keys for word in ("-o", key)]
    started = run_command("cluster", "start", "-n", "1", "-p", "0", "--detach", *overrides, "-d", str(folder))
    assert started.status == 0, started.err
    restarted = run_command("cluster", "restart", "-d", str(folder))
    assert restarted.status == 0
    text = "No node waits for the replicas of the one before: no broker tells which are in sync: "
    assert restarted.err.startswith(text)
    assert restarted.err.count("\n") == 1
    logged_in = run_command("cluster", "restart", "-d", str(folder), "--user", "node:node-secret")
    assert (logged_in.status, logged_in.err) == (0, "")


def test_the_replicas_that_are_not_in_sync_are_those_of_brokers_that_run() -> None:
    def partition(index: int, replicas: list[int], in_sync: list[int]) -> MetadataResponsePartition:
        return MetadataResponsePartition(
            error_code=0, partition_index=index, leader_id=1, replica_nodes=replicas, isr_nodes=in_sync
        )

    partitions = [partition(0, [1, 2, 3], [1]), partition(1, [1, 2], [1, 2])]
    topic = MetadataResponseTopic(error_code=0, name="orders", partitions=partitions)
    assert not_in_sync([topic], [1, 2]) == {Replica("orders-0", 2)}


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
    assert "is not empty, and holds no cluster" in refused("start", "-p", "0")


@pytest.mark.slow
def test_a_node_that_lost_its_disk_is_another_voter_when_it_comes_back(folder: Path) -> None:
    def cluster(*words: str) -> Result:
        return run_command("cluster", *words, "-d", str(folder), "--json")

    started = cluster("start", "-p", "0", "--detach", "-o", "controller.quorum.fetch.timeout.ms=1000")
    bootstrap = ",".join(node["address"] for node in json.loads(started.out)["nodes"])

    def voters() -> dict[int, str]:
        described = json.loads(run_command("quorum", "describe", "-b", bootstrap, "--json").out)
        return {
            replica["node_id"]: replica["directory_id"]
            for replica in described["replicas"]
            if replica["status"] != "Observer"
        }

    before = voters()
    cluster("kill", "2")
    shutil.rmtree(folder / "node-2" / "data")
    again = cluster("start", "--detach")
    assert states(again) == {1: "up", 2: "up", 3: "up"}
    assert "Node 2 has lost its directory: it begins with an empty one\n" in again.err
    while set(now := voters()) != {1, 2, 3} or now[2] == before[2]:
        pass  # it joins again
    assert (now[1], now[3]) == (before[1], before[3])

    cluster("kill", "1", "2")
    shutil.rmtree(folder / "node-1" / "data")
    shutil.rmtree(folder / "node-2" / "data")
    assert (
        "The directories of nodes 1, 2 are empty, and the metadata is lost with them" in cluster("start").err
    )


@pytest.mark.slow
def test_a_node_more_serves_and_votes(folder: Path) -> None:
    def cluster(*words: str) -> Result:
        return run_command("cluster", *words, "-d", str(folder), "--json")

    timeout = "controller.quorum.fetch.timeout.ms=1000"
    assert states(cluster("start", "-n", "1", "-p", "0", "--detach", "-o", timeout)) == {1: "up"}
    assert states(cluster("add-node")) == {1: "up", 2: "up"}
    bootstrap = ClusterFolder(folder).bootstrap_servers()
    made = run_command("topics", "create", "orders", "--replication-factor", "2", "-b", bootstrap)
    assert made.status == 0, made.err
    while "\tVoters: 1,2\t" not in run_command("cluster", "status", "-b", bootstrap).out:
        pass  # it joins
    assert states(cluster("stop")) == {1: "stopped", 2: "stopped"}
    more = cluster("add-node", "--role", "broker")
    assert states(more) == {1: "stopped", 2: "stopped", 3: "stopped"}
    assert json.loads(more.out)["nodes"][-1]["roles"] == ["broker"]
    assert states(cluster("start", "--detach")) == {1: "up", 2: "up", 3: "up"}
    bootstrap = ClusterFolder(folder).address(3)
    made = run_command("topics", "create", "payments", "--replication-factor", "3", "-b", bootstrap)
    assert made.status == 0, made.err
