"""The README's commands and programs do what it says: each is run as printed, only at another address.

What sets up a machine (`make`, `docker`, installers) is CI's and the image's business and not run here; the
program with Spark is in tests/spark, the cluster in tests/test_cluster_page.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_broker.config.sources import STANDALONE
from pykafka_broker.testing.processes import PykafkaBroker
from tests.support.pages import ADDRESS, PROGRAMS, blocks, commands, matches, run, shown_output

NOT_RUN = ("$ make", "$ pykafka-broker cluster", "$ docker", "$ python3 -m pip", "$ pipx")


@pytest.fixture(scope="module")
def broker() -> Iterator[PykafkaBroker]:
    # What the README's reader has, who gives no properties file.
    assumed = {"group.initial.rebalance.delay.ms": STANDALONE["group.initial.rebalance.delay.ms"]}
    with PykafkaBroker(assumed) as running:
        yield running


@pytest.mark.parametrize("program", [program for program in PROGRAMS if "pyspark" not in program])
def test_each_program_prints_what_its_comments_say(
    program: str, broker: PykafkaBroker, tmp_path: Path
) -> None:
    at_broker = program.replace(ADDRESS, broker.address)
    printed = run([sys.executable, "-c", at_broker], broker.address, tmp_path)
    assert printed.splitlines() == shown_output(program)


@pytest.mark.parametrize(
    "session", [session for session in blocks("README.md", "console") if not session.startswith(NOT_RUN)]
)
def test_each_session_prints_what_it_shows(session: str, broker: PykafkaBroker, tmp_path: Path) -> None:
    for command in commands(session):
        printed = run(command.line, broker.address, tmp_path)
        assert matches(printed, command.shown), f"$ {command.line}\n{printed}\nis not\n{command.shown}"
