"""Who has a port, and what that process is called."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pykafka_broker.system.processes import (
    SHOWN_COMMAND,
    broker_processes,
    command_line,
    described,
    is_ending,
    listening_on,
    waited_for_core_ns,
)
from tests.support.waiting import until

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

LISTENER = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
sock = socket.create_server((sys.argv[1], 0), family=family)
print(sock.getsockname()[1], flush=True)
sys.stdin.read()
"""


@linux_only
@pytest.mark.parametrize(
    ("bound", "wanted"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "::"), ("::1", "::1")],
)
def test_the_process_that_listens_on_a_port_is_found(bound: str, wanted: str) -> None:
    command = [sys.executable, "-c", LISTENER, bound]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        assert listening_on(wanted, port) == process.pid
        assert described(process.pid) == f"process {process.pid} ({sys.executable})"
        process.communicate()


@linux_only
def test_a_port_at_another_address_is_another_port() -> None:
    with socket.create_server(("127.0.0.2", 0)) as other:
        assert listening_on("127.0.0.1", other.getsockname()[1]) is None
        assert listening_on("127.0.0.2", other.getsockname()[1]) == os.getpid()


@linux_only
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["-m", "pykafka_broker", "start", "--config=a"], ["-m", "pykafka_broker", "start", "--config", "a"]),
        (
            ["/bin/pykafka-broker", "start", "-o", "--config", "-d", "x"],
            ["/bin/pykafka-broker", "start", "-d", "x"],
        ),
        (["-Dpassword=secret", "kafka.Kafka", "server.properties"], ["kafka.Kafka", "server.properties"]),
        (["--password", "secret"], []),
        (["x" * 200], []),
    ],
    ids=lambda words: " ".join(words)[:60],
)
def test_of_the_arguments_those_of_a_broker_that_hold_no_secret_are_shown(
    arguments: list[str], shown: list[str]
) -> None:
    with sleeping(arguments) as process:
        assert described(process.pid) == f"process {process.pid} ({' '.join([sys.executable, *shown])})"


@linux_only
def test_brokers_are_found_with_their_options_and_surroundings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA_NODE_ID", "4")
    with sleeping(["-m", "pykafka_broker", "start", "-c", "a"]) as broker, sleeping(["start"]) as other:
        found = {process.process_id: process for process in broker_processes()}
    assert other.pid not in found
    assert found[broker.pid].arguments == ["-c", "a"]
    assert found[broker.pid].environ["KAFKA_NODE_ID"] == "4"
    assert found[broker.pid].directory == str(tmp_path)


@linux_only
def test_a_long_command_is_cut_in_its_middle() -> None:
    with sleeping(["kafka.Kafka", "x" * 200 + "/server.properties"]) as process:
        shown = described(process.pid)
    assert shown.startswith(f"process {process.pid} ({sys.executable}"[:50])
    assert shown.endswith("/server.properties)")
    assert len(shown) <= SHOWN_COMMAND + len(f"process {process.pid} ( ... )")


@contextmanager
def sleeping(arguments: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process with these arguments."""
    command = [sys.executable, "-c", LISTENER, "127.0.0.1", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.communicate()


def test_what_is_not_known_is_not_said() -> None:
    assert described(0) == "another process"
    assert described(os.getpid()) == f"this very process ({os.getpid()})"
    assert described(2**22 + 1) == f"process {2**22 + 1}"


def test_a_process_that_runs_or_has_ended_is_not_about_to_end() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert not is_ending(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_ending(process.pid)  # nobody has asked for its status yet
    assert not is_ending(process.pid)


@linux_only
def test_a_process_whose_first_thread_has_ended_is_about_to_end_until_the_last_has() -> None:
    """Its command line is empty, and its sockets are open."""
    program = (
        "import ctypes, threading, sys\n"
        "threading.Thread(target=sys.stdin.read).start()\n"
        "print(flush=True)\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        until(lambda: command_line(process.pid) == "", "its first thread has ended")
        assert is_ending(process.pid)
        process.kill()


@pytest.mark.parametrize(("told", "waited_ns"), [("50 70 9\n", 70), ("50\n", 0), (None, 0)])
def test_the_wait_for_a_core_is_what_linux_tells(tmp_path: Path, told: str | None, waited_ns: int) -> None:
    if told is not None:
        (tmp_path / "schedstat").write_text(told)

    assert waited_for_core_ns(str(tmp_path / "schedstat")) == waited_ns
