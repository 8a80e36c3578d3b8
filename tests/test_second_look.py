"""`make test` looks twice at what fails, as `__main__.py` says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.__main__ import MOST_LOOKED_AT_TWICE, Failures
from tests.support.pages import REPOSITORY

UNSTEADY = """
import pathlib

def test_steady():
    pass

def test_unsteady():
    looked = pathlib.Path(__file__).with_name("looked")
    assert looked.exists() or looked.touch()
"""


def outcome(folder: Path, tests: str) -> subprocess.CompletedProcess[str]:
    """Of `make test`, with these tests and two processes."""
    (folder / "test_some.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "temporary").mkdir()
    environment = {"PYTHONPATH": str(REPOSITORY), "TMPDIR": str(folder / "temporary")}
    return subprocess.run(
        [sys.executable, "-m", "tests", "-q", "-n", "2", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_test_that_passes_at_the_second_look_is_named_as_unsteady(tmp_path: Path) -> None:
    run = outcome(tmp_path, UNSTEADY)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1].startswith(
        "UNSTEADY test_some.py::test_unsteady: passed at the second"
    )
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_test_that_fails_twice_is_red_and_its_folders_are_kept(tmp_path: Path) -> None:
    run = outcome(tmp_path, "def test_of_a_fault(tmp_path):\n    assert 1 == 2\n")
    assert run.returncode == 1
    [kept] = (tmp_path / "temporary").iterdir()
    assert run.stdout.splitlines()[-1] == f"The folders of the tests: {kept}"
    assert list(kept.glob("first/*/test_of_a_fault*"))


def failed(name: str, message: str, *marks: str) -> pytest.TestReport:
    error = SimpleNamespace(reprcrash=SimpleNamespace(message=message))
    keywords: Mapping[str, int] = dict.fromkeys(marks, 1)
    return pytest.TestReport(name, ("", 0, ""), keywords, "failed", error, "call")  # type: ignore[arg-type]


def refusal(*reports: pytest.TestReport) -> str | None:
    failures = Failures()
    for report in reports:
        failures.pytest_runtest_logreport(report)
    return failures.refusal()


def test_many_failures_are_no_matter_of_chance() -> None:
    few = [failed(f"{number}", "TimeoutError") for number in range(MOST_LOOKED_AT_TWICE)]
    assert refusal(*few) is None
    assert refusal(*few, few[0]) is None, "it failed in its teardown too"
    assert refusal(*few, failed("more", "TimeoutError")) == "6 failures: more than 5 are not looked at twice."


@pytest.mark.parametrize(
    "message",
    [
        "assert [1, 2] == [1, 2, 3]",
        "AssertionError: 3 is lost",
        "tests.simulation.violation.Violation: 3 is lost",
        "AssertionError: a TimeoutError, and 3 is lost",
    ],
)
def test_a_record_that_is_lost_is_not_looked_at_twice(message: str) -> None:
    lost = failed("crash", message, "acknowledged")
    assert refusal(lost) == "No second look at acknowledged records: crash"
    assert refusal(failed("crash", message)) is None, "no test about such records"


@pytest.mark.parametrize(
    "message", ["TimeoutError", "concurrent.futures._base.TimeoutError", "Failed: Timeout (>300.0s) from"]
)
def test_a_test_of_records_that_runs_out_of_time_has_not_come_to_say_so(message: str) -> None:
    assert refusal(failed("crash", message, "acknowledged")) is None
