"""What commands say of a broker that has lost the quorum: two of three nodes are down."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from pykafka_broker import Cluster
from pykafka_broker.cli.health import DEGRADED_STATUS
from pykafka_broker.cli.local_cluster.status import NO_QUORUM
from tests.cli.conftest import run_command
from tests.support.waiting import until

#: Each broker led one partition of both topics. The survivor has the only replica of one that it leads.
TAKEN = (
    "Of 6 partitions, 1 can be written with acks=all, 1 with acks=1 at most (in-sync replicas do not answer, "
    "or are too few), 4 not at all (no leader answers). Idempotent and transactional producers that "
    "start now wait for a controller."
)


@pytest.fixture(scope="module")
def survivor() -> Iterator[tuple[str, list[str]]]:
    """The address of the one that is left, and those of the others."""
    with Cluster(nodes=3) as cluster:
        at = ("-b", cluster.bootstrap_servers)
        assert run_command("topics", "create", "orders", "-p", "3", *at).status == 0
        assert run_command("topics", "create", "payments", "-p", "3", "-r", "3", *at).status == 0
        assert {cluster.leader("orders", partition) for partition in range(3)} == {1, 2, 3}
        assert {cluster.leader("payments", partition) for partition in range(3)} == {1, 2, 3}
        dead = [cluster.address(node_id) for node_id in (1, 2)]
        cluster.kill(1, 2)
        # If it leads, it goes on until its followers have not fetched for a while.
        until(
            lambda: "none has answered this broker for" in run_command("health", cluster.address(3)).out,
            "it knows that none leads",
        )
        yield cluster.address(3), dead


def since(text: str, address: str) -> str:
    """The text without the numbers of the sentence that says from whom and from when all is."""
    return re.sub(
        rf"none has answered broker 3 at {address} for \d+ s\. (.*?) \(metadata offset \d+\)",
        r"none answers broker 3 since then. \1",
        text,
    )


def test_status_says_from_whom_and_from_when_it_is(survivor: tuple[str, list[str]]) -> None:
    address, _ = survivor
    asked = ("cluster", "status", "--topics", "-b", address, "--timeout", "1")
    shown = run_command(*asked)
    assert shown.status == NO_QUORUM
    _, quorum, *brokers = shown.out.splitlines()[:5]
    assert re.fullmatch(
        rf"Quorum: none\tVoters: 1,2,3\tSilent: 1,2\tMetadataFrom: {address}\tMetadataOffset: \d+\t"
        r"MetadataAgeMs: \d+",
        quorum,
    )
    assert [line.split("\t")[:2] for line in brokers] == [
        ["Broker: 1", "State: silent"],
        ["Broker: 2", "State: silent"],
        ["Broker: 3", "State: up"],
    ]
    assert since(shown.err, address) == (
        "No quorum: no controller leads, and none answers broker 3 since then. What it tells of brokers and "
        f"topics is from then. Of the voters (1, 2, 3) these do not answer from here: 1, 2. {TAKEN}\n"
    )
    found = json.loads(run_command(*asked, "--json").out)
    assert (found["has_quorum"], found["leader_id"], found["voters"]) == (False, None, [1, 2, 3])
    assert (found["metadata_from"], found["silent_voters"]) == (address, [1, 2])
    acks = [(one["topic"], one["acks"]) for one in found["partitions"] if one["leader"] == 3]
    assert acks == [("orders", "all"), ("payments", "1")]
    assert {one["acks"] for one in found["partitions"] if one["leader"] != 3} == {None}
    assert [one["is_well"] for one in found["partitions"]].count(True) == 1


def test_the_doctor_says_so_first_and_what_can_be_written(survivor: tuple[str, list[str]]) -> None:
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
        ("problem", "topics"),
        ("skipped", "topics"),
    ]
    assert since(found[1]["message"], address).startswith(
        "No quorum: no controller leads, and none answers broker 3 since then. What it tells of brokers and "
        "topics is from then. Of the voters (1, 2, 3) these do not answer from here: 1, 2. Until one leads, "
    )
    assert found[1]["remedy"].startswith("Start the controllers that are down (1, 2): ")
    for broker_id, one, down in zip((1, 2), found[2:4], dead, strict=True):
        assert one["message"].startswith(f"Broker {broker_id} does not answer at {down}, where no process")
        assert address not in one["message"] + one["remedy"], "it is another broker's"
    assert found[5]["message"].startswith(
        f"{TAKEN} All that goes by the leaders and replicas that are known from before"
    )


def test_it_is_degraded(survivor: tuple[str, list[str]]) -> None:
    checked = run_command("health", survivor[0], "--json")
    found = json.loads(checked.out)
    assert (checked.status, found["status"], found["node_id"]) == (DEGRADED_STATUS, "degraded", 3)
    [problem] = found["problems"]
    assert (problem["problem"], problem["log_dir"]) == ("no quorum", None)
    assert re.fullmatch(r"no controller leads, and none has answered this broker for \d+ s", problem["text"])


def test_it_is_alive_and_serving_and_not_ready(survivor: tuple[str, list[str]]) -> None:
    address, _ = survivor
    asked = {stage: run_command("health", address, f"--{stage}") for stage in ("alive", "serving", "ready")}
    assert {stage: shown.status for stage, shown in asked.items()} == {"alive": 0, "serving": 0, "ready": 3}
    assert asked["alive"].out == f"alive: a broker or controller answers at {address}\n"
    assert asked["serving"].out.startswith("serving: broker 3 of cluster ")
    first, *problems = asked["ready"].out.splitlines()
    assert first.startswith("serving, not ready: broker 3 of cluster ")
    assert len(problems) == 1


def test_brokers_that_are_listed_as_up_are_said_to_be_so_from_before(survivor: tuple[str, list[str]]) -> None:
    address, _ = survivor
    listed = run_command("brokers", "list", "-b", address)
    assert (listed.status, listed.out.count("State: up")) == (0, 3)
    assert since(listed.err, address).startswith(
        "No quorum: no controller leads, and none answers broker 3 since"
    )


def test_the_description_of_the_quorum_says_why_there_is_none(survivor: tuple[str, list[str]]) -> None:
    described = run_command("quorum", "describe", "-b", survivor[0])
    assert described.status == 1
    assert re.fullmatch(
        r"Error: No controller leads: none has answered broker 3 for \d+ s\.\n", described.err
    )
