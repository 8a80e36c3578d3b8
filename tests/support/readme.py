"""The README's blocks, and how one of its programs or commands is run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
README = (REPOSITORY / "README.md").read_text()
#: The address that the README uses.
ADDRESS = "127.0.0.1:9092"

PROGRAMS: list[str] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
SESSIONS: list[str] = re.findall(r"```console\n(.*?)```", README, re.DOTALL)


def shown_output(program: str) -> list[str]:
    """What the comments behind a program's `print` calls say it prints."""
    return re.findall(r"print\(.*\)  # (.*)", program)


def run(command: list[str] | str, address: str, folder: Path) -> str:
    """What a program prints, or all that a shell command shows; it must end with status 0.

    The broker is at `address`.
    """
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYKAFKA_BROKER_BOOTSTRAP_SERVER": address,
    }
    is_session = isinstance(command, str)
    done = subprocess.run(
        command,
        shell=is_session,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if is_session else subprocess.PIPE,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout.replace(address, ADDRESS)
