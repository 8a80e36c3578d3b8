"""What tests of every kind share: the choice of Hypothesis' examples, Apache Kafka's jars, where Java and
Maven can bring them, and how `make test` spreads the tests over processes.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from interop.oracle import OracleUnavailableError, libs

# The same examples in every run, however slow the machine is; `make fuzz` looks for new ones.
settings.register_profile(
    "tests",
    derandomize="FUZZ_CASES" not in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")

HERE = Path(__file__).parent
#: Folders of tests that take seconds each, because they start brokers, beside those that want Apache Kafka.
LONG = (HERE / "spark", HERE / "exchange", HERE / "torture", HERE / "interop")


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where processes share the work, the long tests go first: none of them is left over for the end."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not is_long(item))


def is_long(item: pytest.Item) -> bool:
    return "kafka_jars" in getattr(item, "fixturenames", ()) or not set(LONG).isdisjoint(item.path.parents)


@pytest.fixture(scope="session")
def kafka_jars() -> Path:
    """The folder of Apache Kafka's jars, fetched on first use.

    Without Java or Maven the test is skipped with that reason; on CI, where that would hide it, it fails.
    """
    try:
        return libs()
    except OracleUnavailableError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
