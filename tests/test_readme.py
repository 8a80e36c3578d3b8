"""The README's commands and programs do what it says: each is run as printed, only at another address.

`make run`, which sets up a machine, is CI's business and only looked at here; the program with Spark is in
tests/spark, the cluster in tests/test_cluster_page.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_broker.config.sources import STANDALONE
from pykafka_broker.testing.processes import PykafkaBroker
from tests.support.pages import ADDRESS, PROGRAMS, REPOSITORY, blocks, commands, matches, run, shown_output

NOT_RUN = ("$ make", "$ pykafka-broker cluster")


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


@pytest.mark.parametrize(
    ("variables", "started"),
    [
        ((), "start --data-dir pykafka-data"),
        (("PORT=9192", "DATA=folder"), "start --data-dir folder --listen 127.0.0.1:9192"),
    ],
)
def test_make_run_takes_a_port_and_a_folder(variables: tuple[str, ...], started: str) -> None:
    # `make test` hands its level and its variables down.
    handed_down = {"MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "PORT", "DATA"}
    environment = {key: value for key, value in os.environ.items() if key not in handed_down}
    told = subprocess.run(
        ["make", "--dry-run", "--old-file=.venv/.run", "run", *variables],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == [".venv/bin/pykafka-broker", *started.split()]
