"""docs/cluster.md is typed from its top to its end, in one shell, with several nodes that run beside it; and
so is the cluster of the README.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.pages import ADDRESS, blocks, commands, matches, with_commands

#: The ports of the page begin like this, and end with 1 to 9.
PORTS = "1909"
#: The controller of a node listens so much higher.
CONTROLLER_PORT_STEP = 100
END = "-- the end of a command --"


class Shell:
    """A shell in which the commands of a page are typed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._bash = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env=with_commands(ADDRESS),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def type(self, line: str) -> str:
        """The output of a command, which must end with status 0."""
        assert self._bash.stdin is not None and self._bash.stdout is not None
        self._bash.stdin.write(f"{line}\necho '{END}' $?\n")
        self._bash.stdin.flush()
        printed = ""
        while not (read := self._bash.stdout.readline()).startswith(END):
            assert read, printed
            printed += read
        assert read == f"{END} 0\n", f"$ {line}\n{printed}{read}"
        return printed

    def end(self) -> None:
        """End the shell and all nodes."""
        os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.communicate()


def free_ports() -> str:
    """The first digits of nine ports that are free now, and so are those of their nodes' controllers.

    They are below those that the system and other tests give out.
    """
    while True:
        begin = str(random.randint(610, 970))
        with ExitStack() as sockets:
            try:
                for last in "123456789":
                    for port in (int(begin + last), int(begin + last) + CONTROLLER_PORT_STEP):
                        sockets.enter_context(socket.create_server(("127.0.0.1", port)))
                return begin
            except OSError:
                continue


@pytest.mark.parametrize(
    ("page", "begin"),
    [
        pytest.param("docs/cluster.md", "", marks=pytest.mark.slow),
        ("README.md", "$ pykafka-broker cluster"),
    ],
)
def test_the_commands_of_the_page_do_what_it_shows(tmp_path: Path, page: str, begin: str) -> None:
    ports = free_ports()
    shell = Shell(tmp_path)
    try:
        for session in blocks(page, "console"):
            if not session.startswith(begin):
                continue
            for line, shown in commands(session):
                printed = shell.type(line.replace(PORTS, ports))
                assert not shown or matches(printed, shown), f"$ {line}\n{printed}\nis not\n{shown}"
    finally:
        shell.end()
