"""`brokers`: what brokers there are, what they hold, and brokers that are forgotten."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path

import pytest

from pykafka_broker import Cluster
from tests.cli.conftest import Run, run_command


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


def test_a_broker_that_has_stopped_is_forgotten(tmp_path: Path) -> None:
    with Cluster(controllers=1, brokers=2, data_dir=tmp_path) as cluster:
        *_, last = cluster.node_ids
        at = ("-b", cluster.bootstrap_servers.split(",")[0])
        refused = run_command("brokers", "unregister", str(last), *at)
        assert refused.status == 1
        assert refused.err.startswith(f"Error: Broker {last} is up: stop it first, or say --yes.")
        assert f"Broker: {last}\tState: up\t" in run_command("brokers", "list", *at).out
        cluster.stop(last)
        listed = run_command("brokers", "list", *at)
        assert f"Broker: {last}\tState: fenced\t" in listed.out
        forgotten = run_command("brokers", "unregister", str(last), *at)
        assert forgotten.out == f"Broker {last} is no longer registered.\n"
        assert f"Broker: {last}\t" not in run_command("brokers", "list", *at).out
        again = run_command("brokers", "unregister", str(last), *at)
        assert (again.status, again.err) == (1, f"Error: Broker ID {last} is not currently registered\n")


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
