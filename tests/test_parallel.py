"""`make test` shares the tests among processes as `support/parallel.py` says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import parallel
from tests.support.pages import REPOSITORY

TESTS = 12
MODULE = f"""
import os, pathlib, pytest

@pytest.mark.parametrize("number", range({TESTS}))
def test_where_it_runs(number):
    with pathlib.Path(__file__).with_name("workers.txt").open("a") as workers:
        print(os.environ["PYTEST_XDIST_WORKER"], file=workers)
"""


def test_what_shares_something_dear_runs_in_one_process(tmp_path: Path) -> None:
    for name in ("log", "spark"):
        folder = tmp_path / "tests" / name
        folder.mkdir(parents=True)
        (folder / f"test_{name}.py").write_text(MODULE)
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-n", "2", "--rootdir", str(tmp_path), "tests"),
            *("-p", "tests.support.parallel", "-p", "no:cacheprovider", "-W", "ignore"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{2 * TESTS} passed" in run.stdout
    workers = (tmp_path / "tests" / "spark" / "workers.txt").read_text().split()
    assert len(workers) == TESTS
    assert len(set(workers)) == 1


@pytest.mark.parametrize(("processors", "workers"), [(1, 2), (2, 3), (8, 12)])
def test_there_are_three_processes_for_two_processors(
    processors: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "processors", lambda: processors)
    assert parallel.pytest_xdist_auto_num_workers() == workers
