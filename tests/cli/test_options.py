"""Options that take a list: none of it is lost where such an option is given twice."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from pykafka_broker.cli import cli
from tests.cli.test_security import leaves


def parsed(words: str) -> dict[str, object]:
    """The options of a command, whose name is two words."""
    group, verb, *options = words.split(" ")
    return dict(leaves(cli))[f"{group} {verb}"].make_context(verb, options).params


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ("reassign plan --without 4 --without 5", "without", (4, 5)),
        ("reassign plan --remove 4,5 --without 6", "without", (4, 5, 6)),
        ("reassign plan --brokers 1 --brokers 2,3", "brokers", (1, 2, 3)),
        ("reassign plan", "brokers", None),
        ("topics list -b a:1 --bootstrap-server b:2", "bootstrap_server", "a:1,b:2"),
    ],
)
def test_the_lists_of_an_option_that_is_given_twice_follow_each_other(
    words: str, name: str, value: object
) -> None:
    """Only the last was taken: broker 4 stayed in the plan."""
    assert parsed(words)[name] == value


def test_a_list_from_the_environment_may_have_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYKAFKA_BROKER_BOOTSTRAP_SERVER", "a:1, b:2")
    assert parsed("topics list")["bootstrap_server"] == "a:1, b:2"
    assert parsed("topics list -b c:3")["bootstrap_server"] == "c:3"


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(click.BadParameter, match="'' is no list of broker ids"):
        parsed("reassign plan --without ")


def test_every_option_with_a_list_may_be_given_twice() -> None:
    lists = dict(options_with_lists())
    assert {"consume --print", "format -I", "health -b", "metadata shell -b", "console -b"} <= lists.keys()
    assert [name for name, option in lists.items() if not option.multiple] == []


def options_with_lists() -> Iterator[tuple[str, click.Option]]:
    """By command and flag; `health` takes a list to refuse it."""
    for command_name, command in leaves(cli):
        for option in command.params:
            if isinstance(option, click.Option) and (
                "," in (option.metavar or "") or "--bootstrap-server" in option.opts
            ):
                yield f"{command_name} {option.opts[0]}", option
