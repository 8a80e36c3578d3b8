"""The commands that errors, notes and remedies propose: all ask the cluster that the running command asks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import pykafka_broker
from pykafka_broker.cli import cli
from pykafka_broker.cli.proposals import addressed
from pykafka_broker.client.blocking import FrameSocket
from tests.cli.conftest import Run
from tests.cli.lines import asking, lines_in, options_of
from tests.cli.test_security import leaves

SOURCE = Path(pykafka_broker.__file__).parent
GIVEN = {
    "bootstrap_server": "kafka:9094",
    "bootstrap_controller": None,
    "command_config": "my client.properties",
    "login": "alice:secret",
    "ca": None,
}
AT_CONTROLLERS = GIVEN | {"bootstrap_controller": "kafka:9095", "login": None}


def proposed(text: str) -> list[str]:
    """The proposed commands."""
    return re.findall(r"(?m)(?:^ +|`)(pykafka-broker [^`\n]+)", text)


@pytest.mark.parametrize(
    ("text", "given", "told"),
    [
        (
            "Move:\n  pykafka-broker reassign plan --without 2\nthen\n  pykafka-broker reassign run f",
            GIVEN,
            "Move:\n  pykafka-broker reassign plan --without 2 -b kafka:9094 --command-config "
            "'my client.properties' --user alice\nthen\n  pykafka-broker reassign run f -b kafka:9094 "
            "--command-config 'my client.properties' --user alice",
        ),
        (
            "`pykafka-broker doctor other:9092` may tell why",
            GIVEN,
            "`pykafka-broker doctor other:9092 --command-config 'my client.properties' --user alice` may "
            "tell why",
        ),
        (
            "  pykafka-broker users list --user root -b other:9092",
            GIVEN,
            "  pykafka-broker users list --user root -b other:9092 --command-config 'my client.properties'",
        ),
        (
            "  pykafka-broker quotas describe --user bob",
            GIVEN,
            "  pykafka-broker quotas describe --user bob -b kafka:9094 --command-config "
            "'my client.properties' --login alice",
        ),
        (
            "  pykafka-broker quorum describe",
            AT_CONTROLLERS,
            "  pykafka-broker quorum describe --bootstrap-controller kafka:9095 --command-config "
            "'my client.properties'",
        ),
        (
            "  pykafka-broker topics list",
            AT_CONTROLLERS,
            "  pykafka-broker topics list --command-config 'my client.properties'",
        ),
        (
            "  pykafka-broker groups delete 'a`b'",
            GIVEN | {"command_config": None, "login": None},
            "  pykafka-broker groups delete 'a`b' -b kafka:9094",
        ),
        ("  pykafka-broker start --listen :9092", GIVEN, "  pykafka-broker start --listen :9092"),
        ("a pykafka-broker with `spark doctor`", GIVEN, "a pykafka-broker with `spark doctor`"),
    ],
)
def test_a_command_gets_what_it_takes_and_does_not_say_itself(
    text: str, given: dict[str, str | None], told: str
) -> None:
    assert addressed(text, given) == told


def written() -> Iterator[str]:
    """Every text of the package but docstrings, with X for what is filled in."""
    for path in {*SOURCE.rglob("*.py")} - {SOURCE / "cli" / "proposals.py"}:
        tree = ast.parse(path.read_text())
        # Docstrings, and the parts of texts that have something filled in.
        others = {
            part
            for node in ast.walk(tree)
            for part in (
                node.values
                if isinstance(node, ast.JoinedStr)
                else [node.value]
                if isinstance(node, ast.Expr)
                else ()
            )
        }
        for node in ast.walk(tree):
            match node:
                case ast.JoinedStr(values=parts):
                    yield "".join(
                        str(part.value) if isinstance(part, ast.Constant) else "X" for part in parts
                    )
                case ast.Constant(value=str(text)) if node not in others:
                    yield text


def test_every_command_that_a_text_proposes_exists_and_gets_the_options() -> None:
    commands = dict(leaves(cli))
    lacking = []
    for line in {line for text in written() for line in proposed(addressed(text, GIVEN))}:
        words = line.split()[1:]
        command = next((commands[name] for n in (3, 2, 1) if (name := " ".join(words[:n])) in commands), None)
        if command is None:
            # A group, or a name and no command to paste.
            assert isinstance(cli.get_command(click.Context(cli), words[0]), click.Group), line
            continue
        takes = options_of(command)
        has_address = "-b" in words or "--bootstrap-controller" in words or "HOST:PORT" in line
        has_address |= words[:2] == ["doctor", "X"]
        if "--command-config" in takes and not ("--command-config" in words and has_address):
            lacking.append(line)
    assert lacking == []


def test_the_error_of_any_command_proposes_commands_about_the_cluster_it_was_given(
    run: Run, broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=PLAINTEXT\n")
    lines = lines_in(tmp_path)

    def broken_off(_: FrameSocket) -> bytes:
        raise ConnectionResetError

    monkeypatch.setattr(FrameSocket, "receive", broken_off)
    told = {name: run(*lines[name], "-b", broker, "--command-config", str(config)) for name, _ in asking()}
    proposals = {name: proposed(result.out + result.err) for name, result in told.items()}

    assert [
        name
        for name, found in proposals.items()
        if not all(
            # Where the controllers are, nothing tells.
            (broker in line or "--bootstrap-controller HOST:PORT" in line)
            and f"--command-config {config}" in line
            for line in found
        )
    ] == []
    # They find out by themselves.
    assert {name for name, found in proposals.items() if not found} == {"doctor"}


@pytest.mark.parametrize(
    "words",
    [
        ("doctor", "--watch", "0.1", "--topic", "not-there"),
        ("doctor", "--watch", "0.1", "--topic", "not-there", "--json"),
        ("reassign", "plan", "--brokers", "1", "--output-file", "moves.json"),
        ("brokers", "unregister", "1"),
    ],
    ids=" ".join,
)
def test_what_a_remedy_and_a_note_propose_is_about_that_cluster_too(
    run: Run, broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    run("topics", "create", "kept", "--if-not-exists")
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=PLAINTEXT\n")

    result = run(*words, "-b", broker, "--command-config", str(config))

    # In JSON, lines end with an escape.
    lines = proposed((result.out + result.err).replace("\\n", "\n").replace('"', "\n"))
    assert lines
    assert [line for line in lines if not line.endswith(f" -b {broker} --command-config {config}")] == []
