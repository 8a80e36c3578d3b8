"""`completion`: bash runs the script, and completes; which names of a cluster it is given."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete

from pykafka_broker.cli import cli, names
from pykafka_broker.cli.completion import PROGRAM, VARIABLE
from tests.cli.conftest import Run, run_command
from tests.cli.test_security import leaves

#: What bash does at a Tab: it calls the function of the command with the words so far.
TAB = """
eval "$(pykafka-broker completion bash)"
COMP_WORDS=({words} '{incomplete}')
COMP_CWORD={number}
$(complete -p pykafka-broker | sed 's/.*-F \\([^ ]*\\).*/\\1/') pykafka-broker
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(words: str, incomplete: str) -> list[str]:
    """What bash suggests for an incomplete word behind others."""
    script = TAB.format(words=words, incomplete=incomplete, number=len(words.split()))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "incomplete", "suggested"),
    [
        ("pykafka-broker", "con", ["consume", "configs", "console"]),
        ("pykafka-broker topics", "de", ["delete", "describe"]),
        ("pykafka-broker produce", "--comp", ["--compression"]),
        ("pykafka-broker produce --compression", "l", ["lz4"]),
    ],
)
def test_bash_completes_commands_options_and_choices(
    words: str, incomplete: str, suggested: list[str]
) -> None:
    assert completed(words, incomplete) == suggested


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str) -> None:
    script = run_command("completion", shell).out
    assert f"_PYKAFKA_BROKER_COMPLETE={shell}_complete" in script
    assert json.loads(run_command("completion", shell, "--json").out) == {
        "shell": shell,
        "script": script.removesuffix("\n"),
    }


def test_completing_a_command_imports_none() -> None:
    script = (
        "import sys\nfrom pykafka_broker.cli import main\n"
        "try: main([])\nexcept SystemExit: pass\n"
        "sys.exit(', '.join(name for name in sys.modules if name.startswith('pykafka_broker.cli.')"
        " and name.rpartition('.')[2] not in ('output', 'cells', 'terminal', 'wording')) or 0)"
    )
    environ = {
        "_PYKAFKA_BROKER_COMPLETE": "bash_complete",
        "COMP_WORDS": "pykafka-broker t",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "plain,topics\nplain,tokens\n", "")


# --- names of a cluster -------------------------------------------------------------------------------


def suggested_names(line: str) -> list[str]:
    """What is suggested for the last word of a line."""
    *words, incomplete = line.split(" ")
    found = BashComplete(cli, {}, PROGRAM, VARIABLE).get_completions(words, incomplete)
    return [one.value for one in found]


@pytest.fixture
def filled(run: Run) -> None:
    assert run("topics", "create", "orders", "orders-eu", "payments", "--if-not-exists").status == 0
    for group in ("readers", "reporters", "no; rm -r ~", "$(reboot)"):
        assert run("consume", "orders", "--group", group, "--until", "end").status == 0


@pytest.mark.parametrize(
    ("line", "suggested"),
    [
        ("topics describe or", ["orders", "orders-eu"]),
        ("topics delete orders or", ["orders-eu"]),
        ("consume pay", ["payments"]),
        ("elections preferred pay", ["payments"]),
        ("acls list --topic pay", ["payments"]),
        ("configs describe --broker ", ["1"]),
        ("brokers unregister ", ["1"]),
        ("groups describe re", ["readers", "reporters"]),
        ("consume orders --group rea", ["readers"]),
        ("doctor --group rep", ["reporters"]),
        ("reassign plan --without ", ["1"]),
        ("reassign plan --brokers 7,", ["7,1"]),
        ("reassign plan --brokers 1,", []),
        ("reassign plan --brokers 1 --brokers ", []),
        ("groups delete no", []),
        ("groups delete $", []),
    ],
)
def test_names_of_the_cluster_are_suggested(filled: None, line: str, suggested: list[str]) -> None:
    assert suggested_names(line) == suggested


def test_the_cluster_is_the_one_that_the_line_names(filled: None, broker: str) -> None:
    assert suggested_names("topics describe -b 127.0.0.1:1 pay") == []
    assert suggested_names(f"topics describe -b {broker} pay") == ["payments"]
    assert suggested_names("doctor -b 127.0.0.1:1 --topic pay") == []
    assert suggested_names("brokers unregister --bootstrap-controller 127.0.0.1:1 ") == []


def test_nothing_is_suggested_without_an_answer_in_time(
    filled: None, monkeypatch: pytest.MonkeyPatch, broker: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(names, "WITHIN_S", 0.1)
        assert suggested_names(f"topics describe -b 127.0.0.1:{silent.getsockname()[1]} pay") == []
    assert suggested_names("topics describe -b nonsense pay") == []


def test_nobody_is_asked_for_a_password(filled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYKAFKA_BROKER_PASSWORD", raising=False)
    monkeypatch.setattr("click.prompt", lambda *_, **__: pytest.fail("a password is asked for"))
    assert suggested_names("topics describe --user bob pay") == []


#: What takes names of the cluster, by the option, or by how `--help` calls the value.
NAMING = {"--topic", "--group", "--broker", "--broker-logger", "--share"}
METAVARS = re.compile(r"\[?(TOPIC|GROUP)(\[:.*|…|\.\.\.)?\]?|ID,…")
ARGUMENTS = ("topic", "topics", "broker_id", "broker_ids")


def places() -> Iterator[tuple[str, click.Parameter]]:
    """The arguments and options that take names of the cluster, each behind the words of its command."""
    for name, command in leaves(cli):
        for parameter in command.params:
            is_argument = parameter.param_type_name == "argument"
            if (
                NAMING & set(parameter.opts)
                or (is_argument and parameter.name in ARGUMENTS)
                or METAVARS.fullmatch(parameter.metavar or "")
            ):
                yield f"{name} " if is_argument else f"{name} {parameter.opts[0]} ", parameter


def test_every_argument_and_option_that_takes_such_a_name_completes_it() -> None:
    lacking = [line for line, parameter in places() if parameter._custom_shell_complete is None]

    # It is a topic of another cluster.
    assert lacking == ["spark audit --source-topic "]


def test_a_command_on_groups_is_suggested_those_of_its_kind(filled: None, run: Run) -> None:
    assert run("consume", "orders", "--share", "sharers", "--idle", "0.1").status == 0
    of_any_kind = {"acls", "configs", "doctor", "explain"}
    found = {
        line: suggested_names(line)
        for line, parameter in places()
        if "--group" in parameter.opts or "GROUP" in (parameter.metavar or "")
    }

    assert found == {
        line: ["readers", "reporters", "sharers"]
        if line.split()[0] in of_any_kind
        else ["sharers"]
        if "share" in line
        else ["readers", "reporters"]
        for line in found
    }
    assert {line.split()[0] for line in found} == of_any_kind | {"consume", "groups", "share-groups"}
