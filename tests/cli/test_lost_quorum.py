"""What commands say of a broker that has lost the quorum: two of three nodes are down."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Iterator

import pytest

from pykafka_broker import Cluster
from pykafka_broker.cli.health import DEGRADED_STATUS
from pykafka_broker.cli.local_cluster.status import NO_QUORUM
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.quorum import LostQuorum, quorum_status
from pykafka_broker.spark.doctor import Question, examine
from pykafka_broker.testing.home import until as arrives
from tests.cli.conftest import run_command
from tests.support.quorums import Quorum
from tests.support.waiting import until

#: Each broker led one partition of both topics. The survivor has the only replica of one that it leads.
TAKEN = (
    "Of 6 partitions, 1 can be written with acks=all, 1 with acks=1 at most (in-sync replicas do not answer, "
    "or are too few), 4 not at all (no leader answers). Idempotent and transactional producers that "
    "start now may wait for a controller."
)

#: The check and the level of what the doctor finds of a quorum without a leader.
NO_LEADER = ("quorum", "problem")


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
    asked = ("cluster", "status", "--topics", "-b", address, "--timeout", "30")
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
    untold = ("UnderReplicated", "AtMinIsr", "UnderMinIsr", "Offline")
    counts = "\t".join(f"{name}: unknown" for name in untold) + "\tMaxLag: 0 (nodes 1, 2 do not tell)\n"
    assert shown.out.count(counts) == 3, "in all, of orders and of payments"
    assert since(shown.err, address) == (
        "No quorum: no controller leads, and none answers broker 3 since then. What it tells of brokers and "
        f"topics is from then. Of the voters (1, 2, 3) these do not answer from here: 1, 2. {TAKEN}\n"
    )
    found = json.loads(run_command(*asked, "--json").out)
    assert (found["has_quorum"], found["leader_id"], found["voters"]) == (False, None, [1, 2, 3])
    assert (found["metadata_from"], found["silent_voters"]) == (address, [1, 2])
    keys = ("topic", "acks", "max_lag", "silent_replicas")
    led = [[one[key] for key in keys] for one in found["partitions"] if one["leader"] == 3]
    assert led == [["orders", "all", 0, []], ["payments", "1", 0, [1, 2]]]
    assert {one["acks"] for one in found["partitions"] if one["leader"] != 3} == {None}
    assert [one["is_well"] for one in found["partitions"]].count(True) == 1


def test_the_doctor_says_so_first_and_what_can_be_written(survivor: tuple[str, list[str]]) -> None:
    address, dead = survivor
    examined = run_command("doctor", address, "--timeout", "30", "--json")
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


def test_the_doctor_of_spark_says_so_before_it_looks_at_the_brokers(survivor: tuple[str, list[str]]) -> None:
    address, _ = survivor
    asked = Question(address, master=None, timeout_s=30.0)
    found = [one for one in examine(asked) if one.check in ("quorum", "brokers")]
    assert [(one.level.value, one.check) for one in found] == [
        ("problem", "quorum"),
        ("problem", "brokers"),
        ("problem", "brokers"),
        ("ok", "brokers"),
    ]
    assert since(found[0].message, address).startswith("No quorum: no controller leads, and none answers")


def test_it_is_degraded(survivor: tuple[str, list[str]]) -> None:
    checked = run_command("health", survivor[0], "--timeout", "30", "--json")
    found = json.loads(checked.out)
    assert (checked.status, found["status"], found["node_id"]) == (DEGRADED_STATUS, "degraded", 3)
    [problem] = found["problems"]
    assert (problem["problem"], problem["log_dir"]) == ("no quorum", None)
    assert re.fullmatch(r"no controller leads, and none has answered this broker for \d+ s", problem["text"])


def test_it_is_alive_and_serving_and_not_ready(survivor: tuple[str, list[str]]) -> None:
    address, _ = survivor
    asked = {
        stage: run_command("health", address, "--timeout", "30", f"--{stage}")
        for stage in ("alive", "serving", "ready")
    }
    assert {stage: shown.status for stage, shown in asked.items()} == {"alive": 0, "serving": 0, "ready": 3}
    assert asked["alive"].out == f"alive: a broker or controller answers at {address}\n"
    assert asked["serving"].out.startswith("serving: broker 3 of cluster ")
    first, *problems = asked["ready"].out.splitlines()
    assert first.startswith("serving, not ready: broker 3 of cluster ")
    assert len(problems) == 1


def test_brokers_that_do_not_answer_are_not_listed_as_up(survivor: tuple[str, list[str]]) -> None:
    address, _ = survivor
    listed = run_command("brokers", "list", "-b", address)
    assert listed.status == 0
    fields = [line.split("\t") for line in listed.out.splitlines()]
    assert [[broker[at] for at in (0, 1, 4, 6)] for broker in fields] == [
        ["Broker: 1", "State: silent", "Leaders: unknown", "InSync: unknown"],
        ["Broker: 2", "State: silent", "Leaders: unknown", "InSync: unknown"],
        ["Broker: 3", "State: up", "Leaders: 2", "InSync: 4"],
    ]
    assert since(listed.err, address).startswith(
        "No quorum: no controller leads, and none answers broker 3 since"
    )


def test_a_topic_is_said_to_be_described_from_before(survivor: tuple[str, list[str]]) -> None:
    address, _ = survivor
    described = run_command("topics", "describe", "payments", "-b", address)
    assert (described.status, described.out.count("Isr: ")) == (0, 3)
    assert since(described.err, address).startswith(
        "No quorum: no controller leads, and none answers broker 3 since"
    )


def reason_for(address: str) -> str:
    """Why the cluster does not do what it is asked for."""
    return (
        rf"no controller leads, and none has answered broker 3 at {address} for \d+ s: until one leads, "
        r"nothing is created, changed or elected; a request without an answer may be carried out then\. "
        r"Of the voters \(1, 2, 3\) these do not answer from here: "
        r"1, 2\. Start them: more than half of the voters must run\. "
        rf"`pykafka-broker cluster status -b {address}` shows what can be written meanwhile\.\n"
    )


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("topics create invoices", "{address} did not answer CreateTopics in time"),
        ("produce payments x", "The coordinator is loading and cannot process requests yet"),
        ("consume payments --until end", "Cannot connect to 127.0.0.1:.*"),
        ("quorum describe", "Only the leader of the quorum describes it"),
        ("brokers unregister 1", "Broker 1 stays registered"),
    ],
)
def test_a_command_that_waits_in_vain_says_why(
    survivor: tuple[str, list[str]], command: str, error: str
) -> None:
    address, _ = survivor
    ended = run_command(*command.split(), "-b", address, "--timeout", "2")
    assert ended.status == 1
    assert re.fullmatch(f"Error: {error.format(address=address)}; {reason_for(address)}", ended.err)


def test_a_controller_says_what_it_knows(survivor: tuple[str, list[str]]) -> None:
    address, _ = survivor
    with Client(address) as client:
        lost = quorum_status(client)
    assert isinstance(lost, LostQuorum)
    assert lost.voters is not None
    [controller] = lost.voters[3]
    for command, timeout_s in (("quorum describe", "30"), ("metadata shell ls /", "1")):
        at = ("--bootstrap-controller", str(controller), "--timeout", timeout_s)
        ended = run_command(*command.split(), *at)
        assert ended.status == 1
        assert ended.err.endswith(reason_at(controller))


def reason_at(controller: Address, node_id: int = 3, silent: str = "1, 2") -> str:
    """The same, as a controller tells it."""
    return (
        f"; controller {node_id} at {controller} finds no controller that leads: until one leads, nothing is "
        "created, changed or elected; a request without an answer may be carried out then. "
        f"Of the controllers (1, 2, 3) these do not answer from here: {silent}. "
        "Start them: more than half of the voters must run.\n"
    )


@pytest.fixture(scope="module")
def observer() -> Iterator[str]:
    """The address of a broker, node 3, that is no controller. Of two controllers the one that led is gone."""
    with Cluster(controllers=2, brokers=1) as cluster:
        leader = cluster.controller()
        cluster.kill(leader)
        until(
            lambda: "none has answered this broker for" in run_command("health", cluster.address(3)).out,
            "it knows that none leads",
        )
        yield cluster.address(3)


def test_a_broker_that_is_no_controller_tells_as_much(observer: str) -> None:
    status = json.loads(run_command("cluster", "status", "-b", observer, "--json").out)
    assert (status["has_quorum"], status["voters"]) == (False, [1, 2])
    assert len(status["silent_voters"]) == 1
    assert status["metadata_age_ms"] >= 0
    examined = run_command("doctor", observer, "--json")
    [lost] = [
        one for one in map(json.loads, examined.out.splitlines()) if (one["check"], one["level"]) == NO_LEADER
    ]
    [silent] = status["silent_voters"]
    assert "none answers broker 3 since then. " in since(lost["message"], observer)
    assert lost["remedy"].startswith(f"Start the controllers that are down ({silent}): ")
    ended = run_command("topics", "create", "invoices", "-b", observer, "--timeout", "2")
    assert f"Of the voters (1, 2) these do not answer from here: {silent}. Start them" in ended.err


@pytest.mark.parametrize("is_dynamic", [False, True], ids=["voters of the configuration", "of the log"])
async def test_a_controller_that_waits_since_its_start_says_what_it_knows(*, is_dynamic: bool) -> None:
    quorum = Quorum(is_dynamic=is_dynamic)
    starting = asyncio.ensure_future(quorum.homes[1].new_broker().start())
    controller = Address("127.0.0.1", quorum.ports[1])

    def is_listening() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(controller) == 0

    await arrives(is_listening)
    for command in ("quorum describe", "features describe", "configs describe --broker 2"):
        ended = await asyncio.to_thread(
            run_command, *command.split(), "--bootstrap-controller", str(controller)
        )
        assert ended.status == 1
        silent = reason_at(controller, node_id=1, silent="2, 3")
        assert ended.err.endswith(silent)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
