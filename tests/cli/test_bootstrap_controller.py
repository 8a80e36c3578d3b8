"""`--bootstrap-controller`: commands that controllers serve by themselves, asked at their own listeners."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_broker import BlockingCluster, Cluster
from pykafka_broker.cli import cli
from pykafka_broker.config.authorizer import STANDARD_AUTHORIZER
from tests.cli.conftest import Result, run_command
from tests.cli.test_security import leaves
from tests.support.pages import REPOSITORY
from tests.support.waiting import until

BROKER = 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[BlockingCluster]:
    """Three controllers, whose only broker has gone."""
    acls = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with Cluster(brokers=1, controllers=3, overrides=acls) as running:
        at = ("-b", running.bootstrap_servers)
        assert run_command("topics", "create", "orders", *at).status == 0
        running.stop(BROKER)
        yield running


@pytest.fixture
def follower(cluster: BlockingCluster) -> str:
    """The address of a controller that is not the active one."""
    active = cluster.controller()
    return cluster.address(next(one for one in (1, 2, 3) if one != active))


def asked(follower: str, *words: str) -> Result:
    return run_command(*words, "--bootstrap-controller", follower)


def test_without_any_broker_the_active_controller_is_asked(cluster: BlockingCluster, follower: str) -> None:
    quorum = asked(follower, "quorum", "describe", "--json")
    assert quorum.status == 0, quorum.err
    assert json.loads(quorum.out)["leader_id"] == cluster.controller()
    assert "transaction.version" in asked(follower, "features", "describe").out
    added = asked(follower, "acls", "add", "--allow-principal", "User:bob", "--topic", "orders")
    assert added.status == 0, added.err
    assert "User:bob" in asked(follower, "acls", "list").out
    assert asked(follower, "reassign", "list").out == "No partition reassignments found.\n"


def test_controllers_configure_brokers_and_describe_themselves(follower: str) -> None:
    for whom in (("--broker-defaults",), ("--broker", str(BROKER)), ("--broker", "2")):
        altered = asked(follower, "configs", "alter", *whom, "--set", "log.cleaner.backoff.ms=12345")
        assert altered.status == 0, altered.err
    described = ("configs", "describe", "--broker", "2")
    until(
        lambda: "log.cleaner.backoff.ms=12345" in asked(follower, *described).out,
        "controller 2 has what the active one has committed",
    )
    assert asked(follower, "configs", "describe", "--broker", str(BROKER)) == (
        1,
        "",
        f"Error: Controller {BROKER} is not available.\n",
    )


def test_a_plan_is_cancelled_and_its_throttle_taken_off(follower: str, tmp_path: Path) -> None:
    throttles = {
        ("--broker", str(BROKER)): "leader.replication.throttled.rate=5000",
        ("--topic", "orders"): "leader.replication.throttled.replicas=*",
    }
    for resource, throttle in throttles.items():
        assert asked(follower, "configs", "alter", *resource, "--set", throttle).status == 0
    described = ("configs", "describe", "--topic", "orders")
    assert "leader.replication.throttled.replicas=*" in asked(follower, *described).out
    file = tmp_path / "plan.json"
    place = {"topic": "orders", "partition": 0, "replicas": [BROKER]}
    file.write_text(json.dumps({"version": 1, "partitions": [place]}))

    cancelled = asked(follower, "reassign", "cancel", str(file))

    assert cancelled.status == 0, cancelled.err
    assert cancelled.out == "None of the specified partition reassignments are active.\n"
    assert asked(follower, *described).out == "Dynamic configs for topic orders are:\n"


def test_a_broker_is_forgotten_unchecked_alone(follower: str) -> None:
    unknown = asked(follower, "brokers", "unregister", "9", "--force")
    assert (unknown.status, unknown.err) == (1, "Error: Broker ID 9 is not currently registered\n")
    checked = asked(follower, "brokers", "unregister", "9")
    assert checked.status == 2
    assert checked.err.endswith("name a broker with --bootstrap-server, or give --force.\n")


def test_only_one_of_both_is_named(follower: str) -> None:
    for words in (("-b", "127.0.0.1:1"), ("--bootstrap-server", "127.0.0.1:1")):
        for around in (
            (*words, "--bootstrap-controller", follower),
            ("--bootstrap-controller", follower, *words),
        ):
            result = run_command("quorum", "describe", *around)
            assert result.status == 2
            assert result.err.endswith("Name either --bootstrap-server or --bootstrap-controller.\n")


def test_who_names_a_controller_as_a_broker_is_told_so(follower: str) -> None:
    assert run_command("topics", "list", "-b", follower) == (
        1,
        "",
        f"Error: {follower} is for controllers, which do not serve Metadata: name a broker's address\n",
    )


def test_the_page_names_the_commands_that_have_the_option() -> None:
    page = (REPOSITORY / "docs" / "cli.md").read_text()
    [said] = re.findall(r"^The option goes with (.*?)\.", page, re.MULTILINE | re.DOTALL)
    names = re.findall("`(.*?)`", said)
    having = {
        name
        for name, command in leaves(cli)
        if any("--bootstrap-controller" in parameter.opts for parameter in command.params)
    }
    assert having == {
        name for name, _ in leaves(cli) if any(f"{name} ".startswith(f"{one} ") for one in names)
    }
