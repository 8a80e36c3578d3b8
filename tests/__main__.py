"""`make test`: run the tests, and look twice at what fails.

    python -m tests -n 3 -m "not slow"              # the arguments are pytest's

What fails is run once more when all else is done, in one process with nothing beside it. If it passes then,
the exit status is 0 and the last lines name the tests as unsteady: each is a fault to mend
(`tests/unsteady.md`). There is no second look at more than `MOST_LOOKED_AT_TWICE` failures, nor at a test
marked `acknowledged`, which says that a record is lost, doubled or reordered, unless it has run out of time.

The folders of the tests are removed when all is well, and printed when it is not.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

MOST_LOOKED_AT_TWICE = 5


class Failures:
    """A plugin of pytest that keeps the reports of what has failed, by the ids of the tests."""

    def __init__(self) -> None:
        self.reports: dict[str, pytest.TestReport] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.reports.setdefault(report.nodeid, report)

    def refusal(self) -> str | None:
        """Why there is no second look; None if there is one."""
        if len(self.reports) > MOST_LOOKED_AT_TWICE:
            return f"{len(self.reports)} failures: more than {MOST_LOOKED_AT_TWICE} are not looked at twice."
        of_records = [name for name, report in self.reports.items() if may_say_that_records_are_wrong(report)]
        return f"No second look at acknowledged records: {', '.join(of_records)}" if of_records else None


def may_say_that_records_are_wrong(report: pytest.TestReport) -> bool:
    """Whether a test marked `acknowledged` has failed otherwise than by a time-out, its own or pytest's."""
    crash = getattr(report.longrepr, "reprcrash", None)
    late = re.match(r"([\w.]+\.)?TimeoutError\b|Failed: Timeout\b", crash.message if crash else "")
    return "acknowledged" in report.keywords and late is None


def main(arguments: list[str]) -> int:
    """Run the tests; 0 if each has passed at the first or the second look, else pytest's exit status."""
    folder = Path(tempfile.mkdtemp(prefix="pykafka-broker-tests-"))
    failures = Failures()
    status = int(pytest.main([*arguments, f"--basetemp={folder / 'first'}"], plugins=[failures]))
    if status == pytest.ExitCode.TESTS_FAILED:
        refusal = failures.refusal()
        if refusal is None:
            print("\nA second look at what has failed, with nothing beside it:", flush=True)
            again = [*(sys.executable, "-m", "pytest", f"--basetemp={folder / 'second'}"), *failures.reports]
            status = subprocess.run(again, check=False).returncode
        else:
            print(f"\n{refusal}")
    if status == pytest.ExitCode.OK:
        shutil.rmtree(folder, ignore_errors=True)
        for name in failures.reports:
            print(f"UNSTEADY {name}: passed at the second look; tests/unsteady.md says what to do")
    else:
        print(f"The folders of the tests: {folder}")
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
