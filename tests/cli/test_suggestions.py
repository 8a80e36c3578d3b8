"""What may be meant by a name that is none."""

from __future__ import annotations

import pytest

from pykafka_broker.config.suggestions import MOST_NAMES, did_you_mean
from tests.cli.conftest import Run, run_command


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("topcs", "Error: No such command 'topcs'. Did you mean 'topics'?"),
        ("topics descrbe", "Error: No such command 'descrbe'. Did you mean 'describe'?"),
        ("groups reset-offset", "Error: No such command 'reset-offset'. Did you mean 'reset-offsets'?"),
        ("configs altr", "Error: No such command 'altr'. Did you mean 'alter'?"),
        ("log verfy", "Error: No such command 'verfy'. Did you mean 'verify'?"),
        ("fly", "Error: No such command 'fly'."),
    ],
)
def test_a_command_that_is_none_is_answered_with_the_one_meant(arguments: str, complaint: str) -> None:
    result = run_command(*arguments.split())
    assert (result.status, result.err.splitlines()[-1]) == (2, complaint)


def test_an_option_that_is_none_is_answered_with_the_one_meant() -> None:
    result = run_command("produce", "t", "--kye-separator", ":")
    assert result.status == 2
    assert "--key-separator" in result.err.splitlines()[-1]


@pytest.mark.parametrize(
    "command",
    [
        "topics describe {}",
        "topics delete {}",
        "topics alter {} --partitions 7",
        "consume {}",
        "configs describe --topic {}",
        "configs alter --topic {} --set retention.ms=1",
    ],
)
def test_a_topic_that_is_none_is_answered_with_the_one_meant(run: Run, command: str) -> None:
    run("topics", "create", "orders", "--if-not-exists")
    told = "Error: Topic 'ordres' does not exist. Did you mean 'orders'?\n"
    assert run(*command.format("ordres").split()) == (1, "", told)
    alone = "Error: Topic 'entirely-different' does not exist.\n"
    assert run(*command.format("entirely-different").split()) == (1, "", alone)


def test_a_group_that_is_none_is_answered_with_the_one_meant(run: Run) -> None:
    run("topics", "create", "read", "--if-not-exists")
    run("produce", "read", "x")
    run("consume", "read", "--group", "billing", "--until", "end")
    described = run("groups", "describe", "biling")
    assert (described.status, described.err) == (
        1,
        "Error: Group biling not found. Did you mean 'billing'?\n",
    )
    deleted = run("groups", "delete", "biling")
    assert deleted.err.splitlines()[-1] == (
        "* Group 'biling' could not be deleted due to: The group id does not exist. Did you mean 'billing'?"
    )


@pytest.mark.parametrize(
    "command",
    [
        "configs alter --topic configured --set retention.msx=5",
        "topics create badly-configured --config retention.msx=5",
    ],
)
def test_a_key_that_is_none_is_answered_with_the_one_meant(run: Run, command: str) -> None:
    run("topics", "create", "configured", "--if-not-exists")
    result = run(*command.split())
    assert result.status == 1
    assert result.err == "Error: Unknown topic config name: retention.msx. Did you mean 'retention.ms'?\n"


def test_deleting_a_key_that_is_none_is_done_and_remarked_upon(run: Run) -> None:
    run("topics", "create", "reconfigured")
    assert run("configs", "alter", "--topic", "reconfigured", "--delete", "retention.msx") == (
        0,
        "Completed updating config for topic reconfigured.\n",
        "'retention.msx' is no configuration key of a topic. Did you mean 'retention.ms'?\n",
    )


def test_a_refused_value_of_a_known_key_needs_no_suggestion(run: Run) -> None:
    result = run("topics", "create", "badly-valued", "--config", "retention.ms=soon")
    assert "Did you mean" not in result.err


def test_looking_for_a_name_among_very_many_has_an_end() -> None:
    names = [f"topic-{number}" for number in range(MOST_NAMES)]
    assert did_you_mean("ordres", [*names[1:], "orders"]) == " Did you mean 'orders'?"
    assert did_you_mean("ordres", [*names, "orders"]) == ""
