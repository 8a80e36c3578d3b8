"""What commands say of a broker that has lost the quorum: two of three nodes are down."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from pykafka_broker import Cluster
from pykafka_broker.cli.health import DEGRADED_STATUS
from pykafka_broker.cli.local_cluster.status import NO_QUORUM
from tests.cli.conftest import run_command
from tests.support.waiting import until


@pytest.fixture(scope="module")
def survivor() -> Iterator[tuple[str, list[str]]]:
    """The address of the one that is left, and those of the others."""
    with Cluster(nodes=3) as cluster:
        assert run_command("topics", "create", "orders", "-b", cluster.bootstrap_servers).status == 0
        cluster.leader("orders")
        dead = [cluster.address(node_id) for node_id in (1, 2)]
        cluster.kill(1, 2)
        # If it leads, it goes on until its followers have not fetched for a while.
        until(
            lambda: run_command("health", cluster.address(3)).status == DEGRADED_STATUS,
            "it misses the quorum",
        )
        yield cluster.address(3), dead


def test_status_shows_the_metadata_of_one_broker(survivor: tuple[str, list[str]]) -> None:
    asked = ("cluster", "status", "--topics", "-b", survivor[0], "--timeout", "1")
    shown = run_command(*asked)
    assert shown.status == NO_QUORUM
    assert "\nQuorum: none\nBroker: 1\t" in shown.out
    assert "\nTopic: orders\t" in shown.out
    assert shown.err.startswith("No quorum: the broker that answers finds no controller that leads.")
    found = json.loads(run_command(*asked, "--json").out)
    assert (found["has_quorum"], found["leader_id"], found["voters"]) == (False, None, None)
    assert [topic["topic"] for topic in found["topics"]] == ["orders"]


def test_the_doctor_says_so_first_and_vouches_for_nothing(survivor: tuple[str, list[str]]) -> None:
    address, dead = survivor
    examined = run_command("doctor", address, "--timeout", "1", "--json")
    assert examined.status == 1
    found = [json.loads(line) for line in examined.out.splitlines()]
    told = [(one["level"], one["check"]) for one in found]
    assert told == [
        ("ok", "connection"),
        ("problem", "quorum"),
        ("problem", "brokers"),
        ("problem", "brokers"),
        ("ok", "brokers"),
        ("skipped", "topics"),
        ("skipped", "topics"),
    ]
    assert found[1]["message"].startswith(
        f"No quorum: the broker at {address} finds no controller that leads."
    )
    for broker_id, one, down in zip((1, 2), found[2:4], dead, strict=True):
        assert one["message"].startswith(f"Broker {broker_id} does not answer at {down}, where no process")
        assert address not in one["message"] + one["remedy"], "it is another broker's"
    assert "from before the quorum was lost" in found[5]["message"]


def test_it_is_degraded(survivor: tuple[str, list[str]]) -> None:
    checked = run_command("health", survivor[0], "--json")
    found = json.loads(checked.out)
    assert (checked.status, found["status"]) == (DEGRADED_STATUS, "degraded")
    assert found["problems"] == [
        {
            "log_dir": None,
            "usable_bytes": None,
            "problem": "no quorum",
            "text": "no controller that leads answers within 1 s",
        }
    ]
