"""The command line as a whole: help, exit statuses, one line for what a user can cause."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pykafka_broker import __version__
from pykafka_broker.cli import COMMANDS, cli
from tests.cli.conftest import run_command


def unused_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def test_help_names_every_command_and_shell_completion() -> None:
    result = run_command("--help")
    assert result.status == 0
    for name in COMMANDS:
        assert f"  {name} " in result.out
    assert "_PYKAFKA_BROKER_COMPLETE=bash_source" in result.out


def test_help_imports_no_command() -> None:
    script = (
        "import sys, click; from pykafka_broker.cli import cli\n"
        "cli.main(['--help'], standalone_mode=False)\n"
        "sys.exit(any(name.startswith('pykafka_broker.cli.') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    result = run_command(name, "--help")
    assert result.status == 0
    command = cli.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    assert command.name == name


def test_the_version_is_the_packages() -> None:
    pyproject = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'version = "{__version__}"' in pyproject


def test_an_unknown_command_is_wrong_usage() -> None:
    result = run_command("fly")
    assert result.status == 2
    assert "No such command 'fly'" in result.err


def test_a_broker_that_is_away_is_one_line_and_status_1() -> None:
    address = unused_address()
    result = run_command("topics", "list", "-b", address)
    assert result == (1, "", f"Error: Cannot connect to {address}: Connection refused\n")


def test_an_address_without_a_port_is_wrong_usage() -> None:
    result = run_command("topics", "list", "-b", "localhost")
    assert result.status == 2
    assert "'localhost' is not HOST:PORT" in result.err


def test_python_m_runs_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pykafka_broker", "fly"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "Usage: pykafka-broker" in done.stderr
