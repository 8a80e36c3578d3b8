"""`--json`: every command has it, and prints what its result declares; docs/cli.md names every field."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import click
import pytest

from pykafka_broker.cli import COMMANDS, cli
from pykafka_broker.cli.output import JsonOption
from tests.cli.conftest import Run, run_command

APACHE = Path(__file__).parent / "apache" / "f-demo-0"

#: What is run to see the JSON of each command; `{folder}` is an empty one. Each may be run in any order.
EXAMPLES: dict[str, str] = {
    "format": "format --data-dir {folder}/d",
    "topics create": "topics create made kept --if-not-exists",
    "topics list": "topics list",
    "topics describe": "topics describe kept",
    "topics alter": "topics alter growing --partitions 5",
    "topics delete": "topics delete nothing --if-exists",
    "groups list": "groups list",
    "groups describe": "groups describe readers",
    "groups delete": "groups delete leavers",
    "groups reset-offsets": "groups reset-offsets readers --all-topics --to-earliest",
    "produce": "produce kept a b",
    "consume": "consume kept --until 1",
    "configs describe": "configs describe --topic kept --all",
    "configs alter": "configs alter --topic kept --set retention.ms=5000",
    "dump-log": f"dump-log {APACHE} --print-data-log",
    "log dump": f"log dump {APACHE}",
    "log verify": f"log verify {APACHE}",
    "log repair": f"log repair --dry-run {APACHE}",
    "log stats": f"log stats {APACHE}",
    "health": "health",
    "doctor": "doctor --watch 0.1",
    "version": "version",
    "completion": "completion bash",
}


def commands(command: click.Command = cli, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that is no group, by its words."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    with click.Context(command) as context:
        for part in command.list_commands(context):
            found = command.get_command(context, part)
            assert found is not None
            yield from commands(found, f"{name} {part}".strip())


ALL = dict(commands())


def json_option_of(name: str) -> JsonOption:
    [option] = [option for option in ALL[name].params if isinstance(option, JsonOption)]
    return option


@pytest.fixture(autouse=True, scope="module")
def filled(broker: str) -> None:
    """What the examples are about."""
    for command in (
        "topics create kept --config retention.ms=60000",
        "topics create growing",
        "produce kept first --header h=x",
        "consume kept --group readers --until end",
        "consume kept --group leavers --until end",
    ):
        assert run_command(*command.split(), "--bootstrap-server", broker).status == 0


def test_every_command_has_the_option_and_an_example() -> None:
    assert {name.split()[0] for name in ALL} == set(COMMANDS)
    for name in ALL:
        assert json_option_of(name).opts == ["--json"]
    assert set(EXAMPLES) | {"start"} == set(ALL)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_json_of_every_command_has_the_declared_fields(run: Run, tmp_path: Path, name: str) -> None:
    result = run(*EXAMPLES[name].format(folder=tmp_path).split(), "--json")
    assert (result.status, result.err.replace("Processed a total of 1 messages\n", "")) in (
        (0, ""),
        (0, "\nConsumer group 'readers' has no active members.\n"),
        (0, "\nNothing is changed yet: repeat with --execute.\n"),
    )
    option = json_option_of(name)
    values = [json.loads(line) for line in result.out.splitlines()]
    assert values
    if option.key is not None:
        [value] = values
        assert list(value) == [option.key]
        values = value[option.key]
        assert values
    if option.result is not None:
        for value in values:
            check(value, option.result)


def test_a_broker_that_serves_is_said_as_an_object_alone_on_standard_output(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pykafka_broker", "start", "--json", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        process.terminate()
        out, err = process.communicate(timeout=120)
    check(started, json_option_of("start").result)
    assert (started["node_id"], started["log_dirs"]) == (1, [str(tmp_path / "pykafka-data")])
    assert (process.returncode, out) == (0, "")
    assert f"Awaiting socket connections on {started['bootstrap_servers']}" in err
    assert "Kafka Server started" in err


def check(value: Any, declared: Any) -> None:
    """Compare a JSON value with the type of a result's field, all the way down."""
    origin = get_origin(declared)
    if hasattr(declared, "_fields"):
        hints = get_type_hints(declared)
        assert list(value) == list(hints)
        for name, hint in hints.items():
            check(value[name], hint)
    elif origin in (Union, UnionType):
        if value is not None:
            [some] = [part for part in get_args(declared) if part is not type(None)]
            check(value, some)
        else:
            assert type(None) in get_args(declared)
    elif origin in (list, tuple):
        assert isinstance(value, list)
        for entry in value:
            check(entry, get_args(declared)[0])
    elif origin is not None:
        assert isinstance(value, dict)
        for entry in value.values():
            check(entry, get_args(declared)[1])
    else:
        assert type(value) is declared or issubclass(declared, type(value))


def fields_of(declared: Any) -> Iterator[str]:
    """The names of the fields of a result, and of those inside."""
    if hasattr(declared, "_fields"):
        for name, hint in get_type_hints(declared).items():
            yield name
            yield from fields_of(hint)
    else:
        for part in get_args(declared):
            yield from fields_of(part)
