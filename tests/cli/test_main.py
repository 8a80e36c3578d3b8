"""The command line as a whole: help, exit statuses, one line for what a user can cause."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from pykafka_broker import __version__
from pykafka_broker.cli import COMMANDS, cli
from pykafka_broker.testing.processes import free_port
from tests.cli.conftest import Run, run_command
from tests.cli.test_security import leaves


def unused_address() -> str:
    return f"127.0.0.1:{free_port()}"


def test_help_names_every_command_and_shell_completion() -> None:
    result = run_command("--help")
    assert result.status == 0
    for name in COMMANDS:
        assert f"  {name} " in result.out
    assert '    eval "$(pykafka-broker completion bash)"' in result.out.splitlines()


def test_help_imports_no_command() -> None:
    script = (
        "import sys, click; from pykafka_broker.cli import cli\n"
        "cli.main(['--help'], standalone_mode=False)\n"
        "sys.exit(any(name.startswith('pykafka_broker.cli.') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False, capture_output=True).returncode == 0


def test_a_start_imports_nothing_of_what_is_not_configured(tmp_path: Path) -> None:
    script = (
        "import sys; from pykafka_broker import Broker, load_config\n"
        f"with Broker(load_config(data_dir={str(tmp_path)!r}, listen='127.0.0.1:0')): pass\n"
        "package = 'pykafka_broker.'\n"
        "late = (package + 'config.sasl_listeners', package + 'broker.security.declared', 'urllib.parse',"
        "        package + 'network.slow_requests', package + 'broker.tracing', 'opentelemetry')\n"
        "sys.exit(', '.join(name for name in late if name in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    result = run_command(name, "--help")
    assert result.status == 0
    command = cli.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    assert command.name == name


def test_the_version_is_the_packages() -> None:
    assert run_command("--version").out == f"pykafka-broker, version {__version__}\n"


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


@pytest.mark.parametrize(
    "arguments",
    [
        ["health", "a..b:9092"],
        ["topics", "list", "-b", "a..b:9092"],
        ["topics", "list", "-b", f"{'a' * 64}.org:9092"],
    ],
)
def test_an_address_whose_host_is_no_name_is_one_line_and_status_1(arguments: list[str]) -> None:
    address = arguments[-1]
    host = address.partition(":")[0]
    line = f"Error: Cannot connect to {address}: {host!r} is no host name\n"
    assert run_command(*arguments) == (1, "", line)


def refused_start(*arguments: str) -> str:
    """What a broker that does not start says last; a process of its own, for a start changes its process."""
    command = [sys.executable, "-m", "pykafka_broker", "start", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr + done.stdout
    return done.stderr.splitlines()[-1]


def test_a_listener_whose_host_is_no_name_is_refused(tmp_path: Path) -> None:
    line = refused_start("--listen", "a..b:0", "-d", str(tmp_path / "data"))
    assert line == (
        "Error: Error creating broker listeners from '[PLAINTEXT://a..b:0]': "
        "'a..b' of listener PLAINTEXT is no host name"
    )
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("topics create x --partitions 2147483648", "is not in the range 1<=x<=2147483647"),
        ("topics create x --replication-factor 32768", "is not in the range 1<=x<=32767"),
        ("topics create x --timeout 2147484", "is not in the range 0.1<=x<=2147483"),
        ("topics create x --timeout nan", "'nan' is no time"),
        ("topics alter x --partitions 2147483648", "is not in the range 1<=x<=2147483647"),
        ("topics list -b 127.0.0.1:65536", "'127.0.0.1:65536' is not HOST:PORT"),
        ("users set x --iterations 2147483648", "is not in the range 1<=x<=2147483647"),
        ("produce x v --partition 2147483648", "is not in the range 0<=x<=2147483647"),
        ("consume x --partition -1", "is not in the range 0<=x<=2147483647"),
        ("consume x --idle nan", "'nan' is no time"),
        ("consume x --idle inf", "inf is not in the range 0<=x<=2147483"),
        ("consume x --idle -1", "-1.0 is not in the range 0<=x<=2147483"),
        ("health 127.0.0.1:1 --timeout nan", "'nan' is no time"),
    ],
)
def test_numbers_that_the_protocol_cannot_carry_are_wrong_usage(arguments: str, complaint: str) -> None:
    result = run_command(*arguments.split())
    assert result.status == 2
    assert complaint in result.err.splitlines()[-1]


@pytest.mark.parametrize("name", ["x" * 40_000, "no text \udcff"], ids=["too long", "no text"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["topics", "create", "{}"],
        ["topics", "describe", "{}"],
        ["groups", "describe", "{}"],
        ["groups", "delete", "{}"],
        ["produce", "{}", "value"],
        ["consume", "{}"],
        ["configs", "describe", "--topic", "{}"],
        ["configs", "alter", "--broker-defaults", "--set", "log.retention.ms={}"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_names_that_the_protocol_cannot_carry_are_one_line_and_status_1(
    run: Run, arguments: list[str], name: str
) -> None:
    result = run(*(argument.format(name) for argument in arguments))
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith("Error: Kafka's ")
    assert len(result.err.splitlines()) == 1


def test_an_unknown_host_among_limits_of_connections_keeps_a_broker_from_starting(tmp_path: Path) -> None:
    override = "max.connections.per.ip.overrides=no.such.invalid:5"
    line = refused_start("-l", "127.0.0.1:0", "-d", str(tmp_path), "-o", override)
    assert line.startswith("Error: Unknown host in max.connections.per.ip.overrides: no.such.invalid: ")


@pytest.mark.parametrize(
    "arguments",
    [
        "--help",
        "topics list --help",
        "version",
        "topics list",
        "consume endless",
        "consume endless --json",
        "consume endless --group readers",
        "log stats data",
        "log verify data --all --json",
        "dump-log data/__cluster_metadata-0",
    ],
)
def test_a_reader_of_the_output_that_goes_away_ends_a_command_with_status_141(
    run: Run, broker: str, tmp_path: Path, arguments: str
) -> None:
    if run("topics", "create", "endless").status == 0:
        run("produce", "endless", "one", "two")
    run("format", "-d", str(tmp_path / "data"))
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "pykafka_broker", *arguments.split()],
        cwd=tmp_path,
        # Buffered, as where the variable is not set: what is left in the buffer fails again at the end.
        env={**os.environ, "PYKAFKA_BROKER_BOOTSTRAP_SERVER": broker, "PYTHONUNBUFFERED": ""},
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    os.close(writing)
    told = "Processed a total of 2 messages\n" if "consume" in arguments else ""
    assert (done.returncode, done.stderr) == (141, told)


def test_every_option_says_what_it_is_for() -> None:
    silent = [
        f"{name} {parameter.opts[0]}"
        for name, command in leaves(cli)
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.help
    ]

    assert silent == []
