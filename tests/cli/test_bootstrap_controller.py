"""`--bootstrap-controller`: commands that controllers serve by themselves, asked at their own listeners."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafka_broker import BlockingCluster, Cluster
from pykafka_broker.apis.controller_apis import CONTROLLER_APIS
from pykafka_broker.cli import cli
from pykafka_broker.client.core.connection import ConnectionState
from pykafka_broker.config.authorizer import STANDARD_AUTHORIZER
from pykafka_broker.protocol.fields import api_key_of
from pykafka_broker.protocol.messages import API_NAMES
from tests.cli.conftest import Result, Run, run_command
from tests.cli.lines import LINES, asking, lines_in, options_of
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


def test_users_quotas_and_elections_are_for_controllers_too(follower: str, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret\n")
    for words in (
        ("users", "set", "carol", "--password-file", str(password)),
        ("users", "delete", "carol"),
        ("quotas", "set", "--user", "carol", "producer_byte_rate=1000"),
        ("quotas", "remove", "--user", "carol", "producer_byte_rate"),
    ):
        done = asked(follower, *words)
        assert done.status == 0, done.err
    elected = asked(follower, "elections", "preferred", "orders:0")
    assert elected.err == "Error: orders-0: The preferred leader was not available.\n"


@pytest.mark.parametrize(
    ("words", "api"),
    [
        (("elections", "preferred", "orders"), "Metadata"),
        (("quotas", "remove", "--user", "carol", "--all"), "DescribeClientQuotas"),
    ],
)
def test_what_controllers_do_not_look_up_is_said_to_need_a_broker(
    follower: str, words: tuple[str, ...], api: str
) -> None:
    result = asked(follower, *words)

    assert result.status == 1
    assert f"do not serve {api}: name a broker's address" in result.err


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


def test_a_command_has_the_option_if_controllers_serve_what_it_asks_for(
    follower: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far as the listener of controllers serves it: Apache's own tools offer it for fewer commands."""
    assert {name for name, _ in asking()} == {*LINES}
    run("topics", "create", "orders", "--if-not-exists")
    sent: set[str] = set()
    send = ConnectionState.send

    def sending(self: ConnectionState, request: object, version: int | None = None) -> Any:
        sent.add(API_NAMES[api_key_of(request)])
        return send(self, request, version)

    monkeypatch.setattr(ConnectionState, "send", sending)
    served = {api.name for api in CONTROLLER_APIS}
    wrong = {}
    lines = lines_in(tmp_path)
    for name, command in asking():
        sent.clear()
        words = lines[name]
        has_option = "--bootstrap-controller" in options_of(command)
        result = asked(follower, *words) if has_option else run(*words)
        assert sent and result.status != 2, f"{name}: {result.err}"
        if has_option != (sent <= served):
            wrong[name] = sent - served
    assert wrong == {}


def test_the_page_names_the_commands_that_have_the_option() -> None:
    page = (REPOSITORY / "docs" / "cli.md").read_text()
    [said] = re.findall(r"^The option goes with (.*?)\.", page, re.MULTILINE | re.DOTALL)
    names = re.findall("`(.*?)`", " ".join(said.split()))
    having = {name for name, command in leaves(cli) if "--bootstrap-controller" in options_of(command)}
    assert having == {
        name for name, _ in leaves(cli) if any(f"{name} ".startswith(f"{one} ") for one in names)
    }
