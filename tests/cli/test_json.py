"""`--json`: every command has it, and prints what its result declares; docs/cli.md names every field."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import click
import pytest

from pykafka_broker.cli import COMMANDS, cli
from pykafka_broker.cli.log_files import BATCH, UNKNOWN_FILE
from pykafka_broker.cli.output import JsonOption
from tests.cli.conftest import Run, formatted_controller, run_command
from tests.support.checkpoints import make_checkpoint
from tests.support.maven import CONNECTOR_4_0, make_repository
from tests.support.pages import REPOSITORY, blocks, matches
from tests.support.pages import commands as commands_of

APACHE = Path(__file__).parent / "apache" / "f-demo-0"
METADATA = Path(__file__).parent / "apache" / "__cluster_metadata-0"

#: What is run to see the JSON of each command; `{folder}` is an empty one, `{maven}` a repository with the
#: connector of Spark, `{checkpoint}` one of a query that reads `kept`, `{logs}` a copy of `APACHE` for the
#: command that keeps others out of its log directory, `{controller}` the configuration of a formatted
#: controller, `{plan}` a plan that moves nothing, `{password}` a file with a password. Each may be run in any
#: order, and beside the others.
EXAMPLES: dict[str, str] = {
    "format": "format --data-dir {folder}/d",
    "topics create": "topics create made kept --if-not-exists",
    "topics list": "topics list",
    "topics describe": "topics describe kept",
    "topics profile": "topics profile kept",
    "topics alter": "topics alter growing --partitions 5",
    "topics delete": "topics delete nothing --if-exists",
    "groups list": "groups list",
    "groups describe": "groups describe readers",
    "groups delete": "groups delete leavers",
    "groups reset-offsets": "groups reset-offsets readers --all-topics --to-earliest",
    "share-groups list": "share-groups list",
    "share-groups describe": "share-groups describe sharers",
    "share-groups delete": "share-groups delete share-leavers",
    "share-groups reset-offsets": "share-groups reset-offsets sharers --all-topics --to-earliest",
    "share-groups delete-offsets": "share-groups delete-offsets forgetters --topic kept",
    "produce": "produce kept a b",
    "consume": "consume kept --until 1",
    "configs describe": "configs describe --topic kept --all",
    "configs alter": "configs alter --topic kept --set retention.ms=5000",
    "quotas describe": "quotas describe",
    "quotas set": "quotas set --user kept request_percentage=90",
    "quotas remove": "quotas remove --user kept producer_byte_rate",
    "acls list": "acls list",
    "acls add": "acls add --allow-principal User:kept --operation read --topic kept",
    "acls remove": "acls remove --topic kept --dry-run",
    "users list": "users list",
    "users set": "users set kept --password-file {password}",
    "users delete": "users delete leaver",
    "certs": "certs {folder}/certs",
    "features describe": "features describe",
    "features upgrade": "features upgrade transaction.version=2",
    "features downgrade": "features downgrade transaction.version=1 --dry-run",
    "brokers list": "brokers list",
    "brokers disks": "brokers disks",
    "elections preferred": "elections preferred kept",
    "elections unclean": "elections unclean kept:0",
    "reassign status": "reassign status {plan}",
    "cluster status": "cluster status",
    "metadata shell": f"metadata shell --folder {METADATA} ls /image/topics",
    "quorum describe": "quorum describe",
    "quorum add-controller": "quorum add-controller --config {controller} --dry-run",
    "quorum remove-controller": "quorum remove-controller -i 9 -d AAECAwQFBgcICQoLDA0ODw --dry-run",
    "dump-log": f"dump-log {APACHE} --print-data-log",
    "log dump": f"log dump {APACHE}",
    "log verify": f"log verify {APACHE}",
    "log repair": "log repair --dry-run {logs}",
    "log stats": f"log stats {APACHE}",
    "health": "health",
    "doctor": "doctor --watch 0.1",
    "explain group": "explain group readers",
    "explain producer": "explain producer payments",
    "explain partition": "explain partition kept-0",
    "explain request": "explain request kept",
    "spark conf": "spark conf --table delta",
    "spark jars": "spark jars --repository {maven} --dest {folder}/jars",
    "spark doctor": "spark doctor --no-session --topic kept",
    "spark checkpoint inspect": "spark checkpoint inspect {checkpoint}",
    "spark checkpoint repair": "spark checkpoint repair {checkpoint}",
    "version": "version",
    "completion": "completion bash",
}

#: What needs several nodes; test_local_cluster.py, test_reassign.py and test_brokers.py run them.
OF_CLUSTER = ("start", "stop", "restart", "add-node", "kill", "pause", "resume", "nodes")
NEED_NODES = {f"cluster {verb}" for verb in OF_CLUSTER}
NEED_NODES |= {"brokers unregister"}
NEED_NODES |= {f"reassign {verb}" for verb in ("plan", "run", "list", "cancel")}

#: What needs a listener that asks who somebody is; test_tokens.py runs them.
NEED_USERS = {f"tokens {verb}" for verb in ("create", "renew", "expire", "describe")}

#: What needs a session of Spark; tests/spark runs them.
NEED_SPARK = {"spark archive", "spark audit", "spark compact", "spark dead-letters", "spark replay"}


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
        *(
            f"share-groups reset-offsets {group} --topic kept --to-earliest --execute"
            for group in ("sharers", "share-leavers", "forgetters")
        ),
        "quotas set --user kept request_percentage=90",
        "acls add --allow-principal User:kept --topic kept",
    ):
        assert run_command(*command.split(), "--bootstrap-server", broker).status == 0
    for user in ("kept", "leaver"):
        words = ("users", "set", user, "--password-file", "-", "--bootstrap-server", broker)
        assert run_command(*words, stdin=b"secret").status == 0


def test_every_command_has_the_option_and_an_example() -> None:
    assert {name.split()[0] for name in ALL} == set(COMMANDS)
    for name in ALL:
        assert json_option_of(name).opts == ["--json"]
    assert set(EXAMPLES) | {"start", "console"} | NEED_NODES | NEED_USERS | NEED_SPARK == set(ALL)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_json_of_every_command_has_the_declared_fields(run: Run, tmp_path: Path, name: str) -> None:
    maven = make_repository(tmp_path / "maven", CONNECTOR_4_0)
    checkpoint = make_checkpoint(tmp_path / "checkpoint", [{("kept", 0): 1}])
    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"kept","partition":0,"replicas":[1]}]}')
    (tmp_path / "password").write_text("secret")
    logs = shutil.copytree(APACHE, tmp_path / "logs" / APACHE.name)
    places = {
        "folder": tmp_path,
        "maven": maven,
        "checkpoint": checkpoint,
        "logs": logs,
        "plan": plan,
        "password": tmp_path / "password",
        "controller": formatted_controller(tmp_path / "controller"),
    }
    result = run(*EXAMPLES[name].format(**places).split(), "--json")
    assert (result.status, result.err.replace("Processed a total of 1 messages\n", "")) in (
        (0, ""),
        (0, "\nConsumer group 'readers' has no active members.\n"),
        (0, "\nNothing is changed yet: repeat with --execute.\n"),
        (0, "Nothing is to be repaired.\n"),
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


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_tables_fit_the_terminal(run: Run, terminal: Callable[[int], None], width: int) -> None:
    terminal(width)
    for command in (
        *(
            "topics list",
            "topics describe",
            "topics profile kept",
            "groups list",
            "groups describe",
            "groups describe --members",
        ),
        *(
            "groups describe --members",
            "groups describe --state",
            EXAMPLES["groups reset-offsets"],
            "configs describe --topic kept --all",
        ),
        *("share-groups list", "share-groups describe", "share-groups describe --state"),
        EXAMPLES["share-groups reset-offsets"],
        "configs describe --broker 1 --all --documentation",
        f"log verify --all {APACHE}",
        f"log stats {APACHE}",
    ):
        result = run(*command.split())
        assert result.status == 0
        lines = result.out.splitlines()
        assert len(lines) > 1
        assert max(map(len, lines)) <= width, command


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


def fields_of(declared: Any, path: str = "") -> Iterator[str]:
    """The fields of a result, those inside as `outer.inner`."""
    if hasattr(declared, "_fields"):
        for name, hint in get_type_hints(declared).items():
            yield f"{path}{name}"
            yield from fields_of(hint, f"{path}{name}.")
    else:
        for part in get_args(declared):
            yield from fields_of(part, path)


def keys_of(value: Any, path: str = "") -> Iterator[str]:
    """The keys of a JSON value, those inside as `outer.inner`."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield f"{path}{key}"
            yield from keys_of(entry, f"{path}{key}.")
    elif isinstance(value, list):
        for entry in value:
            yield from keys_of(entry, path)


PAGE = (REPOSITORY / "docs" / "cli.md").read_text()
#: Command -> what docs/cli.md says of it.
SECTIONS = {
    name: text
    for heading, text in re.findall(r"^### (.*?)\n(.*?)(?=^### |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    for name in re.findall(r"`(.*?)`", heading)
}


def test_the_page_has_every_command_and_no_other() -> None:
    assert set(SECTIONS) == set(ALL)


@pytest.mark.parametrize("name", [name for name in ALL if json_option_of(name).result is not None])
def test_the_page_has_the_declared_fields_in_their_order(name: str) -> None:
    option = json_option_of(name)
    assert re.findall(r"^\| `(.*?)` \|", SECTIONS[name], re.MULTILINE) == list(fields_of(option.result))
    said = re.findall(r'\{"(\w+)": \[\.\.\.\]\}', SECTIONS[name])
    assert said == ([] if option.key is None else [option.key])


def test_the_page_has_the_fields_of_records(run: Run) -> None:
    for header, key, value in (("h=x", "k", "v"), ("h=\udcff", "\udcff", "\udcff")):
        assert run("produce", "shown", "-H", header, "-k", key, value).status == 0
    shown = run("consume", "shown", "--until", "end", "--json").out.splitlines()
    keys = {key for line in shown for key in keys_of(json.loads(line))}
    assert set(re.findall(r"^\| `(.*?)` \|", SECTIONS["consume"], re.MULTILINE)) == keys


def test_the_page_has_the_kinds_that_dumps_have() -> None:
    source = (REPOSITORY / "src" / "pykafka_broker" / "cli" / "log_files.py").read_text()
    kinds = {*re.findall(r'"kind": "([a-z ]+)"', source), BATCH, UNKNOWN_FILE}
    assert kinds == set(re.findall(r"`([a-z ]+)`", SECTIONS["dump-log"])) - {"file", "kind"}


def test_what_the_page_shows_of_a_terminal_is_what_a_terminal_shows(
    run: Run, terminal: Callable[[int], None]
) -> None:
    run("topics", "create", "orders", "--partitions", "2", "--config", "retention.ms=3600000")
    run("produce", "orders", "--key-separator", ":", "alice:10", "bob:20", "alice:30")
    run("consume", "orders", "--group", "billing", "--until", "end")
    terminal(80)
    [session] = blocks("docs/cli.md", "text")
    for command in commands_of(session):
        printed = "".join(f"{line.rstrip()}\n" for line in run(*command.line.split()[1:]).out.splitlines())
        assert matches(printed, command.shown), f"$ {command.line}\n{printed}\nis not\n{command.shown}"
