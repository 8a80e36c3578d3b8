"""Ctrl-C while the command is still being loaded: no traceback, and the status that shells know."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

#: Runs a command and interrupts it when the first argument is about to be imported, wherever
#: that import stands.
INTERRUPTED_COMMAND = """
import os, sys
from _signal import SIGINT  # `signal` would load what is to be interrupted

class Interrupter:
    def find_spec(self, name, path=None, target=None):
        if name == interrupted_at:
            print("interrupted", flush=True)
            os.kill(os.getpid(), SIGINT)

interrupted_at = sys.argv.pop(1)
sys.meta_path.insert(0, Interrupter())
from pykafka_broker.__main__ import main
main()
"""


def interrupted(folder: Path, module: str, *command: str) -> tuple[int, str]:
    """Exit status and what was printed by a command that is interrupted as it imports `module`."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_COMMAND, module, *command],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "module",
    [
        "enum",
        "pykafka_broker.cli",
        "click",
        "pykafka_broker.cli.start",
        "logging",
        "pykafka_broker.config.sources",
        "pykafka_broker.system.event_loop",
        "asyncio",
        "pykafka_broker.broker.broker",
    ],
)
def test_an_interrupt_during_the_imports_of_a_start_leaves_no_traceback(module: str, tmp_path: Path) -> None:
    command = ("start", "-d", "d", "-l", "127.0.0.1:0")
    status, output = interrupted(tmp_path, module, *command)
    assert (status, output.splitlines()[-1]) == (130, "interrupted")
    assert list(tmp_path.iterdir()) == [], "nothing had been begun"


def test_an_interrupt_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """As in the background of a shell script."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        status, output = interrupted(tmp_path, "pykafka_broker.cli", "--version")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (status, output.splitlines()[0]) == (0, "interrupted")
