"""Who has a port, and what that process is called."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from pykafka_broker.system.processes import SHOWN_COMMAND, described, listening_on

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
        assert described(process.pid).startswith(f"process {process.pid} ({sys.executable} -c ")
        process.communicate()


@linux_only
def test_a_port_at_another_address_is_another_port() -> None:
    with socket.create_server(("127.0.0.2", 0)) as other:
        assert listening_on("127.0.0.1", other.getsockname()[1]) is None
        assert listening_on("127.0.0.2", other.getsockname()[1]) == os.getpid()


def test_a_long_command_is_cut_in_its_middle() -> None:
    arguments = [sys.executable, "-c", LISTENER, "127.0.0.1", *["x" * 50] * 5, "server.properties"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        shown = described(process.pid)
        process.communicate()
    assert shown.startswith(f"process {process.pid} ({sys.executable}")
    assert shown.endswith(" server.properties)")
    assert len(shown) <= SHOWN_COMMAND + len(f"process {process.pid} ( ... )")


def test_what_is_not_known_is_not_said() -> None:
    assert described(0) == "another process"
    assert described(os.getpid()) == f"this very process ({os.getpid()})"
    assert described(2**22 + 1) == f"process {2**22 + 1}"
