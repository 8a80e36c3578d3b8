"""Commands of ours that a text proposes: each asks the same cluster as the running one, as the same user.

A proposed command is a line that begins with spaces and `pykafka-broker`, or stands in backticks. An address
or option that it names itself stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import click
from click.core import ParameterSource

from pykafka_broker.system.wording import argument

_PROPOSED = re.compile(
    r"^ +pykafka-broker (?P<line>.+)$|`pykafka-broker (?P<inline>[^`]+)(?=`)", re.MULTILINE
)


def addressed(text: str, given: Mapping[str, str | None]) -> str:
    """The text; each command in it has those of the options `given` to the running command that it takes.

    Args:
        text: What a person is told.
        given: By the names of `Cluster`: `bootstrap_server`, `bootstrap_controller`, `command_config`,
            `login`, whose password is left out, and `ca`.
    """

    def completed(proposed: re.Match[str]) -> str:
        words = (proposed["line"] or proposed["inline"]).split()
        return " ".join([proposed[0], *_lacking(words, given)])

    return _PROPOSED.sub(completed, text)


def _lacking(words: list[str], given: Mapping[str, str | None]) -> list[str]:
    command, arguments = _found(words)
    if command is None:
        return []
    context = command.make_context(words[0], arguments, resilient_parsing=True)
    named = [
        parameter
        for parameter in command.params
        if context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    ]
    values = dict.fromkeys(("-b", "--bootstrap-controller"), None) | {
        "--command-config": given["command_config"],
        "--user": (given["login"] or "").partition(":")[0],
        "--ca": given["ca"],
    }
    if not any("HOST:PORT" in (parameter.metavar or "") for parameter in named):
        at_controllers = given["bootstrap_controller"]
        values["--bootstrap-controller"] = at_controllers
        values["-b"] = None if at_controllers else given["bootstrap_server"]
    lacking = []
    for flag, value in values.items():
        option = _option(command, flag)
        if value and option is not None and option not in named:
            lacking += [option.opts[0], argument(value)]
    return lacking


def _found(words: list[str]) -> tuple[click.Command | None, list[str]]:
    """The command that the words name, and its arguments."""
    from pykafka_broker.cli import cli

    command: click.Command | None = cli
    while isinstance(command, click.Group) and words:
        command = command.get_command(click.Context(command), words[0])
        words = words[1:]
    return command, words


def _option(command: click.Command, flag: str) -> click.Parameter | None:
    """A command's option with this flag; instead of `--user`, the one that logs in."""
    for parameter in command.params:
        if parameter.name == "login" if flag == "--user" else flag in parameter.opts:
            return parameter
    return None
