"""`quotas`: the quotas of users, client ids and addresses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def nothing_stays(run: Run) -> Iterator[None]:
    yield
    for whose in ("--user alice", "--user alice --client-id-defaults", "--ip 10.1.2.3"):
        run("quotas", "remove", *whose.split(), "--all")


def test_quotas_are_set_described_and_removed(run: Run) -> None:
    values = ("producer_byte_rate=1048576", "request_percentage=12.5")
    updated = run("quotas", "set", "--user", "alice", *values)
    assert updated.out == "Completed updating config for user-principal 'alice'.\n"
    described = run("quotas", "describe", "--user", "alice")
    assert described.out == (
        "Quota configs for user-principal 'alice' are producer_byte_rate=1048576.0, request_percentage=12.5\n"
    )

    run("quotas", "remove", "--user", "alice", "producer_byte_rate")
    left = run("quotas", "describe", "--user", "alice")
    assert left.out == "Quota configs for user-principal 'alice' are request_percentage=12.5\n"
    run("quotas", "remove", "--user", "alice", "--all")
    assert run("quotas", "describe", "--user", "alice").out == ""


def test_an_entity_may_be_both_a_user_and_client_ids(run: Run) -> None:
    run("quotas", "set", "--user", "alice", "--client-id-defaults", "consumer_byte_rate=5")

    described = run("quotas", "describe", "--user", "alice", "--client-id-defaults")
    assert described.out == (
        "Quota configs for user-principal 'alice', the default client-id are consumer_byte_rate=5.0\n"
    )
    assert run("quotas", "describe", "--user", "alice").out == ""
    found = json.loads(run("quotas", "describe", "--json").out)["quotas"]
    assert {"entity": {"user": "alice", "client-id": None}, "quotas": {"consumer_byte_rate": 5.0}} in found


def test_addresses_have_a_rate_of_connections(run: Run) -> None:
    run("quotas", "set", "--ip", "10.1.2.3", "connection_creation_rate=5")

    described = run("quotas", "describe", "--ip", "10.1.2.3")
    assert described.out == "Quota configs for ip '10.1.2.3' are connection_creation_rate=5.0\n"


def test_at_a_terminal_quotas_are_a_table(run: Run, terminal: Callable[[int], None]) -> None:
    run("quotas", "set", "--user", "alice", "producer_byte_rate=1048576")
    terminal(80)

    described = run("quotas", "describe", "--user", "alice").out.split()
    assert described == [
        *("WHO", "QUOTA", "VALUE"),
        *("user-principal", "'alice'", "producer_byte_rate", "1048576"),
    ]


def test_a_dry_run_changes_nothing(run: Run) -> None:
    tried = run("quotas", "set", "--user", "alice", "producer_byte_rate=1", "--dry-run")

    assert tried.out == "The change for user-principal 'alice' would be accepted.\n"
    assert run("quotas", "describe", "--user", "alice").out == ""


def test_a_refusal_tells_the_reason(run: Run) -> None:
    refused = run("quotas", "set", "--user", "alice", "connection_creation_rate=5")

    assert (refused.status, refused.out) == (1, "")
    assert "Invalid configuration key connection_creation_rate" in refused.err


@pytest.mark.parametrize(
    "arguments",
    [
        "set producer_byte_rate=5",
        "set --user alice",
        "set --user alice producer_byte_rate",
        "set --user alice producer_byte_rate=many",
        "set --user alice --user-defaults producer_byte_rate=5",
        "remove --user alice",
        "remove --user alice --all producer_byte_rate",
        "remove --all",
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(run: Run, arguments: str) -> None:
    assert run("quotas", *arguments.split()).status == 2
