"""`completion`: bash runs the script, and completes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import run_command

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
        ("pykafka-broker", "con", ["consume", "configs"]),
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
