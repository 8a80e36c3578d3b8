"""The README's commands and programs do what it says: each is run as printed, only at another address.

A `python` block is a program: it must end well and print what the comments behind its `print` calls say. In a
`console` block a line with `$ ` is a command and the lines below are its output, `...` standing for anything.
What sets up a machine (`make`, `docker`) is CI's and the image's business and not run here; the program with
Spark is in tests/spark.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.brokers import OurBroker
from pykafka_broker.config.sources import STANDALONE
from tests.support.readme import ADDRESS, PROGRAMS, SESSIONS, run, shown_output

NOT_RUN = ("$ make", "$ docker")


@pytest.fixture(scope="module")
def broker() -> Iterator[OurBroker]:
    # What the README's reader has, who gives no properties file.
    assumed = {"group.initial.rebalance.delay.ms": STANDALONE["group.initial.rebalance.delay.ms"]}
    with OurBroker(assumed) as running:
        yield running


@pytest.mark.parametrize("program", [program for program in PROGRAMS if "pyspark" not in program])
def test_each_program_prints_what_its_comments_say(program: str, broker: OurBroker, tmp_path: Path) -> None:
    at_broker = program.replace(ADDRESS, broker.address)
    printed = run([sys.executable, "-c", at_broker], broker.address, tmp_path)
    assert printed.splitlines() == shown_output(program)


@pytest.mark.parametrize("session", [session for session in SESSIONS if not session.startswith(NOT_RUN)])
def test_each_session_prints_what_it_shows(session: str, broker: OurBroker, tmp_path: Path) -> None:
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        pattern = ".*".join(re.escape(piece) for piece in shown.split("..."))
        printed = run(command, broker.address, tmp_path)
        assert re.fullmatch(pattern, printed, re.DOTALL), f"$ {command}\n{printed}\nis not\n{shown}"
