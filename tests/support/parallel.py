"""How `pytest -n auto`, which is `make test`, shares the tests among processes: hooks of pytest-xdist.

As many processes as pay; tests that share something dear in one of them; the others wherever there is time,
the long ones first, so that none is left over for the end.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import Scheduling

#: One Spark serves these tests, and another one the other tests of the folder that take a session.
PIPELINE = tuple(f"tests/spark/test_{name}.py" for name in ("archive", "audit", "kafka_log", "replay"))
TOGETHER = {
    PIPELINE: "pipeline on Spark",
    ("tests/spark/test_",): "Spark's own connector",
    ("tests/test_architecture.py",): "a reading of all files",
}
#: Marked `slow`: minutes each, with Sparks of their own.
LONGEST = ("tests/spark/test_page.py", "tests/spark/test_archive_kills.py")
#: Their tests take seconds each, because they start brokers; so do those beside Apache Kafka.
LONG = (
    *("tests/spark/test_", "tests/exchange/", "tests/torture/", "tests/simulation/", "interop/", "bench/"),
    *("tests/cli/test_local_cluster.py", "tests/cli/test_reassign.py", "tests/test_cluster_page.py"),
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Three for two processors: a third of their time, tests wait for processes that they have started."""
    return -(-3 * processors() // 2)


def processors() -> int:
    """How many this process may use, also where a container's quota says so."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no such file, or no quota: "max"
        quota_us, period_us = map(int, Path("/sys/fs/cgroup/cpu.max").read_text().split())
        count = min(count, max(1, quota_us // period_us))
    return count


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    from xdist.scheduler import LoadScopeScheduling

    class Folders(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(LONGEST):
                return nodeid
            return next((name for files, name in TOGETHER.items() if nodeid.startswith(files)), nodeid)

    return Folders(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=rank)


def rank(item: pytest.Item) -> int:
    """The place of a test among the others: the longest ones come first."""
    if item.nodeid.startswith(LONGEST):
        return 0
    return 1 if is_long(item) else 2


def is_long(item: pytest.Item) -> bool:
    return item.nodeid.startswith(LONG) or "kafka_jars" in getattr(item, "fixturenames", ())
