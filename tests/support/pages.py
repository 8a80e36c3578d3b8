"""The pages' blocks, and how their programs and commands are run.

A `python` block is a program. In a `console` block a line with `$ ` is a command, lines with `> ` below
continue it, and the others are its output, `...` standing for anything. `^C` below a `start` ends that
broker; without it the broker serves the rest of the page.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self

from pykafka_broker.testing.processes import BrokerError, environment

REPOSITORY = Path(__file__).resolve().parent.parent.parent
#: The address that the pages use.
ADDRESS = "127.0.0.1:9092"
START = "pykafka-broker start"
SYSTEMCTL = "systemctl "
INTERRUPT = "^C\n"
PATIENCE_S = 120.0


class Command(NamedTuple):
    """A command of a session, and what is shown below it."""

    line: str
    shown: str


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page, such as `README.md`, that are in this language."""
    return re.findall(rf"```{language}\n(.*?)```", (REPOSITORY / page).read_text(), re.DOTALL)


PROGRAMS = blocks("README.md", "python")


def commands(session: str) -> list[Command]:
    """The commands of a `console` block."""
    found = []
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        more = next((at for at, line in enumerate(lines[1:], 1) if not line.startswith("> ")), len(lines))
        line = "".join([lines[0], *(line[2:] for line in lines[1:more])])
        found.append(Command(line.removesuffix("\n"), "".join(lines[more:])))
    return found


def shown_output(program: str) -> list[str]:
    """The output that the comments behind a program's `print` calls promise."""
    return re.findall(r"print\(.*\)  # (.*)", program)


def matches(printed: str, shown: str) -> bool:
    """Whether this is what a page shows."""
    pattern = ".*".join(re.escape(piece) for piece in shown.split("..."))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


def run(command: list[str] | str, address: str, folder: Path) -> str:
    """The output of a program, or all that a shell command shows; it must end with status 0.

    The broker is at `address`.
    """
    is_session = isinstance(command, str)
    done = subprocess.run(
        command,
        shell=is_session,
        cwd=folder,
        env=with_commands(address),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if is_session else subprocess.PIPE,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout.replace(address, ADDRESS)


def with_commands(address: str) -> Mapping[str, str]:
    """The environment of someone who has installed the package and whose broker is at `address`."""
    return {
        **environment(),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYKAFKA_BROKER_BOOTSTRAP_SERVER": address,
    }


class Terminal:
    """Where a page's commands are typed: one folder, and a broker at `address` while one was started.

    There is no systemd here: `systemctl` is done with signals to the broker, and what the unit
    keeps in /var/lib/pykafka-broker is in the folder.
    """

    def __init__(self, address: str, folder: Path) -> None:
        self.address = address
        self.folder = folder
        self._broker: subprocess.Popen[bytes] | None = None
        self._log = folder / "printed.log"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._broker is not None:
            os.killpg(self._broker.pid, signal.SIGKILL)
            self._broker.wait()

    def type(self, command: Command) -> None:
        """Run a command; it must end well and print what is shown, if anything is shown."""
        line = command.line.replace(ADDRESS, self.address).removeprefix("sudo ")
        line = line.replace("/var/lib/pykafka-broker", str(self.folder))
        shown = command.shown.removesuffix(INTERRUPT)
        if line.startswith(SYSTEMCTL):
            printed = self._systemctl(line.split()[1])
        elif line.startswith(START):
            self._start(line)
            if shown != command.shown:
                self._interrupt()
            printed = self._log.read_text().replace(self.address, ADDRESS)
        else:
            printed = run(line, self.address, self.folder)
        assert not shown or matches(printed, shown), f"$ {line}\n{printed}\nis not\n{shown}"

    def _systemctl(self, verb: str) -> str:
        match verb:
            case "start":
                self._start(f"{START} --config server.properties")
            case "stop":
                self._interrupt()
            case "freeze" | "thaw":
                assert self._broker is not None
                os.killpg(self._broker.pid, signal.SIGSTOP if verb == "freeze" else signal.SIGCONT)
            case _:
                raise AssertionError(f"systemctl {verb} is not done here")
        return ""

    def _start(self, line: str) -> None:
        """Start a broker in the place of the one that runs, and wait until it serves."""
        if self._broker is not None:
            self._interrupt()
        _, appends, file = line.partition(" >> ")
        self._log = self.folder / (file if appends else "printed.log")
        with self._log.open("wb") as log:
            self._broker = subprocess.Popen(
                f"exec {line}",
                shell=True,
                cwd=self.folder,
                env=with_commands(self.address),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE_S
        while b"Bootstrap servers: " not in self._log.read_bytes():
            if self._broker.poll() is not None or time.monotonic() > deadline:
                raise BrokerError(f"$ {line}\n{self._log.read_text()}")
            time.sleep(0.01)

    def _interrupt(self) -> None:
        assert self._broker is not None
        self._broker.send_signal(signal.SIGINT)
        assert self._broker.wait(PATIENCE_S) == 0, self._log.read_text()
        self._broker = None
