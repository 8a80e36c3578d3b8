"""`brokers`: what brokers there are, what they hold, and brokers that are forgotten."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path

import pytest

from pykafka_broker import Cluster
from pykafka_broker.cli.brokers import why_it_stays
from pykafka_broker.cli.health import DEGRADED_STATUS
from tests.cli.conftest import Run, run_command
from tests.support.waiting import until


def test_brokers_are_listed_with_what_they_lead_and_hold(run: Run, broker: str) -> None:
    run("topics", "create", "orders", "--partitions", "2")
    assert run("brokers", "list").out.splitlines() == [
        f"Broker: 1\tState: up\tAddress: {broker}\tRack: \tLeaders: 2\tReplicas: 2\tInSync: 2"
    ]


def test_the_disks_of_brokers_are_shown(run: Run) -> None:
    run("topics", "create", "kept", "--partitions", "3")
    run("produce", "kept", "x" * 1_000)
    [found] = json.loads(run("brokers", "disks", "1", "--json").out)["log_dirs"]
    assert (found["broker_id"], found["state"]) == (1, "online")
    assert found["replicas"] >= 3
    assert found["replica_bytes"] > 1_000
    assert 0 < found["usable_bytes"] <= found["total_bytes"]
    [line] = run("brokers", "disks").out.splitlines()
    assert line.startswith(f"Broker: 1\tLogDir: {found['log_dir']}\tState: online\tReplicas: ")


def test_a_broker_that_is_not_there_has_no_disks(run: Run) -> None:
    asked = run("brokers", "disks", "7", "--timeout", "1")
    assert asked.status == 1
    assert "7" in asked.err


def test_why_a_broker_is_not_forgotten_and_the_way_are_said() -> None:
    assert why_it_stays(3, is_up=False, held=[]) == ""
    move = (
        "Move its replicas away:\n"
        "  pykafka-broker reassign plan --without 3 --output-file moves.json\n"
        "  pykafka-broker reassign run moves.json --wait\n"
    )
    force = "With --force it is forgotten as it is."
    assert why_it_stays(3, is_up=False, held=["orders-0"]) == (
        f"Broker 3 holds 1 replica (orders-0).\n{move}{force}"
    )
    assert why_it_stays(3, is_up=True, held=[f"orders-{n}" for n in range(7)]) == (
        "Broker 3 is up and holds 7 replicas (orders-0, orders-1, orders-2, orders-3, orders-4 and 2 more).\n"
        f"{move}Stop it; one that was killed counts as up until its session ends "
        f"(broker.session.timeout.ms).\n{force}"
    )


def listed(broker_id: int, at: tuple[str, str]) -> str:
    """The line about a broker; empty if the one that is asked does not know it."""
    lines = run_command("brokers", "list", *at).out.splitlines()
    return next((line for line in lines if line.startswith(f"Broker: {broker_id}\t")), "")


def test_a_broker_is_forgotten_when_it_has_stopped_and_holds_nothing(tmp_path: Path) -> None:
    with Cluster(controllers=1, brokers=2, data_dir=tmp_path) as cluster:
        first, last = cluster.node_ids[1:]
        at = ("-b", cluster.address(first))
        assert run_command("topics", "create", "kept", "-r", "2", *at).status == 0
        cluster.leader("kept")  # all nodes know of it
        refused = run_command("brokers", "unregister", str(last), *at)
        assert refused.status == 1
        assert refused.err.startswith(f"Error: Broker {last} is up and holds 1 replica (kept-0).\n")
        assert f"Broker: {last}\tState: up\t" in run_command("brokers", "list", *at).out
        cluster.stop(last)
        # The broker that is asked hears from the controller of this stop, and of all that follows.
        until(lambda: "\tState: fenced\t" in listed(last, at), "it knows of the stop")
        refused = run_command("brokers", "unregister", str(last), *at)
        assert (refused.status, refused.err.startswith(f"Error: Broker {last} holds 1 replica")) == (1, True)
        moves = str(tmp_path / "moves.json")
        planned = run_command("reassign", "plan", "--without", str(last), "-r", "1", "-o", moves, *at)
        assert planned.status == 0, planned.err
        assert run_command("reassign", "run", moves, "--wait", *at).status == 0
        until(lambda: "\tReplicas: 0\t" in listed(last, at), "it knows of the move")
        forgotten = run_command("brokers", "unregister", str(last), *at)
        assert forgotten.out == f"Broker {last} is no longer registered.\n"
        until(lambda: not listed(last, at), "it is gone")
        again = run_command("brokers", "unregister", str(last), *at)
        assert (again.status, again.err) == (1, f"Error: Broker ID {last} is not currently registered\n")


def test_a_broker_that_is_forgotten_by_force_is_no_longer_healthy_until_it_starts_again(
    tmp_path: Path,
) -> None:
    """It was a zombie: nothing but STALE_BROKER_EPOCH in its log, and `health` called it healthy."""
    with Cluster(controllers=1, brokers=2, data_dir=tmp_path) as cluster:
        first, last = cluster.node_ids[1:]
        at, zombie = ("-b", cluster.address(first)), cluster.address(last)
        assert run_command("topics", "create", "kept", "-r", "2", *at).status == 0
        cluster.leader("kept")  # all nodes know of it
        forced = run_command("brokers", "unregister", str(last), "--force", *at)
        assert forced.out == f"Broker {last} is no longer registered.\n"

        until(lambda: run_command("health", zombie).status == DEGRADED_STATUS, "it knows of it")
        checked = run_command("health", zombie, "--json")
        found = json.loads(checked.out)
        assert (found["stage"], found["node_id"]) == ("alive", None)
        assert [problem["problem"] for problem in found["problems"]] == ["not registered"]
        for stage, status in (("alive", 0), ("serving", DEGRADED_STATUS), ("ready", DEGRADED_STATUS)):
            assert run_command("health", zombie, f"--{stage}").status == status
        for addresses in (zombie, f"{cluster.address(first)},{zombie}"):
            examined = run_command("doctor", addresses, "--watch", "0.1")
            assert (examined.status, f"The broker at {zombie} is not registered" in examined.out) == (1, True)
        for command in (("produce", "kept", "x"), ("consume", "kept", "--group", "g", "--until", "end")):
            in_vain = run_command(*command, "-b", zombie, "--timeout", "1")
            assert in_vain.status == 1
            assert f"; the broker at {zombie} is not registered: it leads no partition" in in_vain.err
        elsewhere = run_command("brokers", "unregister", "99", "-b", zombie)
        assert elsewhere.err == "Error: Broker ID 99 is not currently registered\n"

        cluster.restart(last)
        assert run_command("health", zombie, "--ready").status == 0
        assert f"Broker: {last}\tState: up\t" in run_command("brokers", "list", *at).out


def test_a_cluster_is_watched_until_ctrl_c(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("time.sleep", sleep)
    assert threading.current_thread() is threading.main_thread()
    watched = run("cluster", "status", "--watch", "0.5", "--json")
    assert watched.status == 130
    assert slept == [0.5] * 3
    assert len({json.loads(line)["cluster_id"] for line in watched.out.splitlines()}) == 1
    assert len(watched.out.splitlines()) == 3
