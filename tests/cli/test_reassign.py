"""`reassign` and `elections` at three nodes: partitions move, and get their leaders back."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_broker.testing.apache.nodes import Node, Nodes
from tests.cli.conftest import Result, run_command


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Three combined nodes."""
    folder = tmp_path_factory.mktemp("nodes")
    with Nodes(folder, {1: "ours", 2: "ours", 3: "ours"}, roles="broker,controller") as running:
        running.leader()
        yield running


@pytest.fixture
def run(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands talk to these nodes."""
    monkeypatch.setenv("PYKAFKA_BROKER_BOOTSTRAP_SERVER", ",".join(node.address for node in nodes))


def ask(words: str) -> Result:
    result = run_command(*words.split())
    assert result.status == 0, result.err
    return result


def create(nodes: Nodes, words: str) -> None:
    """Create a topic, and wait until every node has heard of it: any of them may be asked next."""
    ask(f"topics create {words}")
    topic = words.split()[0]

    def is_known(node: Node) -> bool:
        return run_command("topics", "describe", topic, "--bootstrap-server", node.address).status == 0

    nodes.comes(lambda: all(map(is_known, nodes)), "the topic is not known everywhere")


def replicas_of(topic: str) -> dict[int, list[int]]:
    [described] = json.loads(ask(f"topics describe {topic} --json").out)["topics"]
    return {partition["partition"]: partition["replicas"] for partition in described["partitions"]}


def configs_of(resource: str) -> dict[str, str]:
    entries = json.loads(ask(f"configs describe {resource} --json").out)["configs"]
    return {entry["name"]: entry["value"] for entry in entries if "throttled" in entry["name"]}


@pytest.mark.usefixtures("run")
def test_a_broker_is_emptied_by_a_plan_and_the_plan_before_brings_everything_back(
    nodes: Nodes, tmp_path: Path
) -> None:
    create(nodes, "orders --partitions 4 --replication-factor 2")
    ask("produce orders a b c d")
    before = replicas_of("orders")
    file = tmp_path / "plan.json"

    planned = json.loads(ask(f"reassign plan orders --remove 3 -o {file} --json").out)["partitions"]
    assert {one["partition"] for one in planned} == {index for index, held in before.items() if 3 in held}
    assert all(len(one["copied_to"]) == 1 and 3 in one["current_replicas"] for one in planned)
    moved = ask(f"reassign run {file} --wait")
    assert moved.out.startswith("Reassignment of partitions orders-") and moved.out.endswith(
        " is completed.\n"
    )

    # A move ends at the controller; the node that is asked hears of it after that.
    nodes.comes(
        lambda: all(3 not in held for held in replicas_of("orders").values()), "the moves are not known"
    )
    assert ask(f"reassign status {file}").out.splitlines()[1:-3] == [
        f"Reassignment of partition orders-{one['partition']} is completed." for one in planned
    ]
    back = tmp_path / "back.json"
    back.write_text(moved.err[moved.err.index("{") :])
    ask(f"reassign run {back} --wait")
    nodes.comes(lambda: replicas_of("orders") == before, "the way back is not known")
    assert sorted(ask("consume orders --until end").out.split()) == ["a", "b", "c", "d"]


@pytest.mark.usefixtures("run")
def test_a_throttle_is_set_for_the_moves_and_taken_off_after_them(nodes: Nodes, tmp_path: Path) -> None:
    create(nodes, "slow --partitions 1 --replication-factor 1")
    [[held]] = replicas_of("slow").values()
    other = next(node.node_id for node in nodes if node.node_id != held)
    file = tmp_path / "plan.json"
    plan = {"version": 1, "partitions": [{"topic": "slow", "partition": 0, "replicas": [other]}]}
    file.write_text(json.dumps(plan))
    ask(f"reassign run {file} --throttle 5000")
    while ask("reassign list").out != "No partition reassignments found.\n":
        pass
    rates = {"leader.replication.throttled.rate": "5000", "follower.replication.throttled.rate": "5000"}
    assert configs_of(f"--broker {other}") == rates
    throttled = {
        "leader.replication.throttled.replicas": f"0:{held}",
        "follower.replication.throttled.replicas": f"0:{other}",
    }
    nodes.comes(lambda: configs_of("--topic slow") == throttled, "the throttle is not known")

    assert "Clearing topic-level throttles on topic slow" in ask(f"reassign status {file}").out
    both = (f"--broker {other}", "--topic slow")
    nodes.comes(lambda: not any(map(configs_of, both)), "the throttle is not taken off")
    nothing = ask(f"reassign cancel {file}").out
    assert nothing == "None of the specified partition reassignments are active.\n"


@pytest.mark.usefixtures("run")
def test_records_move_under_a_throttle_to_the_end_and_the_throttle_goes_with_the_move(
    nodes: Nodes, tmp_path: Path
) -> None:
    create(nodes, "full --partitions 1 --replication-factor 1")
    values = [f"{number}-{'x' * 1000}" for number in range(300)]
    ask("produce full " + " ".join(values))
    [[held]] = replicas_of("full").values()
    other = next(node.node_id for node in nodes if node.node_id != held)
    file = tmp_path / "plan.json"
    plan = {"version": 1, "partitions": [{"topic": "full", "partition": 0, "replicas": [other]}]}
    file.write_text(json.dumps(plan))
    moved = ask(f"reassign run {file} --throttle 100000 --wait")
    assert moved.out == "Reassignment of partitions full-0 is completed.\n"
    nodes.comes(lambda: replicas_of("full") == {0: [other]}, "the move is not known")
    copied = nodes[other].data_dir / "full-0" / f"{0:020d}.log"
    assert copied.stat().st_size > len("".join(values))
    throttled = [f"--broker {node.node_id}" for node in nodes] + ["--topic full"]
    nodes.comes(lambda: not any(map(configs_of, throttled)), "the throttle is not taken off")
    assert ask("consume full --until end").out.split() == values


def test_a_move_that_is_under_way_is_listed_and_called_off(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYKAFKA_BROKER_BOOTSTRAP_SERVER", nodes[nodes.leader()].address)
    create(nodes, "stays --partitions 1 --replication-factor 1")
    [[held]] = replicas_of("stays").values()
    frozen = next(node for node in nodes if node.node_id not in (held, nodes.leader()))
    file = tmp_path / "plan.json"
    plan = {"partitions": [{"topic": "stays", "partition": 0, "replicas": [frozen.node_id]}]}
    file.write_text(json.dumps(plan))
    os.kill(frozen.pid, signal.SIGSTOP)  # its session goes on for some seconds
    try:
        [started] = json.loads(ask(f"reassign run {file} --json").out)["partitions"]
        [listed] = json.loads(ask("reassign list --json").out)["partitions"]
        described = ask("topics describe stays").out.splitlines()
        lacking = ask("topics describe stays --under-replicated-partitions").out
        another = run_command("reassign", "run", str(file))
        [state] = json.loads(ask(f"reassign status {file} --preserve-throttles --json").out)["partitions"]
        # The frozen broker may be asked for its throttle; what was cancelled is told before.
        cancelled = run_command("reassign", "cancel", str(file), "--timeout", "1", "--json")
    finally:
        os.kill(frozen.pid, signal.SIGCONT)

    place = {"topic": "stays", "partition": 0}
    both = [frozen.node_id, held]
    assert started == {**place, "state": "started", "replicas": [frozen.node_id]}
    moving = {"adding_replicas": [frozen.node_id], "removing_replicas": [held]}
    assert listed == {**place, "replicas": both, **moving}
    assert "\tReplicationFactor: 1\t" in described[0]
    assert (
        f"\tIsr: {held}\tAdding Replicas: {frozen.node_id}\tRemoving Replicas: {held}\tElr: " in described[1]
    )
    assert lacking == "", "a replica that is still to come is not missing"
    assert another.err == (
        "Error: Cannot execute because there is an existing partition assignment. "
        "Use --additional to override this.\n"
    )
    assert state == {**place, "state": "in progress", "replicas": both}
    assert json.loads(cancelled.out) == {"partitions": [{**place, "state": "cancelled", "replicas": [held]}]}
    assert replicas_of("stays") == {0: [held]}


@pytest.mark.usefixtures("run")
def test_a_plan_that_does_not_fit_the_cluster_is_refused(nodes: Nodes, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    create(nodes, "fits")
    for partition, replicas, why in (
        (0, [1, 9], "Error: Unknown broker id 9.\n"),
        (7, [1, 2], "Error: Partition fits-7 does not exist.\n"),
    ):
        file.write_text(
            json.dumps({"partitions": [{"topic": "fits", "partition": partition, "replicas": replicas}]})
        )
        refused = run_command("reassign", "run", str(file))
        assert (refused.status, refused.err) == (1, why)


@pytest.mark.usefixtures("run")
def test_leaders_come_back_to_the_preferred_replicas(nodes: Nodes) -> None:
    create(nodes, "led --partitions 3 --replication-factor 3")
    leader_id = nodes.leader()
    restarted = next(node for node in nodes if node.node_id != leader_id)
    restarted.restart()
    while ask("topics describe led --under-replicated-partitions").out:
        pass

    elected = json.loads(ask("elections preferred led --json").out)["partitions"]

    def preferred_lead() -> bool:
        """Whether the broker that is asked has heard of the election."""
        [described] = json.loads(ask("topics describe led --json").out)["topics"]
        return all(partition["leader"] == partition["replicas"][0] for partition in described["partitions"])

    nodes.comes(preferred_lead, "the preferred replicas do not lead")
    [described] = json.loads(ask("topics describe led --json").out)["topics"]
    moved = [one["partition"] for one in elected if one["elected"]]
    assert moved == [p["partition"] for p in described["partitions"] if p["replicas"][0] == restarted.node_id]
    again = ask("elections preferred led:0 led:1 led:2").out
    assert again == "Valid replica already elected for partitions led-0, led-1, led-2\n"
    unclean = ask("elections unclean led:0").out
    assert unclean == "Valid replica already elected for partitions led-0\n"
    absent = run_command("elections", "preferred", "led:9")
    assert absent.status == 1 and absent.err.startswith("Error: led-9: ")
