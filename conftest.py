"""What tests of every kind share: the choice of Hypothesis' examples, Apache Kafka's jars, where Java and
Maven can bring them, and the sharing of tests among processes.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from pykafka_broker.testing.apache.class_archive import make_class_archive
from pykafka_broker.testing.apache.jars import ApacheUnavailableError, libs

pytest_plugins = ["tests.support.parallel"]

# A shell ignores Ctrl-C in what it runs in the background, and so would the commands that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run, however slow the machine is; `make fuzz` looks for new ones.
settings.register_profile(
    "tests",
    derandomize="FUZZ_CASES" not in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs Java is slow, but for the few tests that say why `make test` runs them."""
    for item in items:
        if needs_java(item) and not item.get_closest_marker("gate"):
            item.add_marker(pytest.mark.slow)


def needs_java(item: pytest.Item) -> bool:
    return "kafka_jars" in getattr(item, "fixturenames", ()) or item.nodeid.startswith("tests/spark/test_")


@pytest.fixture(scope="session")
def kafka_jars() -> Path:
    """The folder of Apache Kafka's jars, fetched on first use.

    Without Java or Maven the test is skipped with that reason; on CI, where that would hide it, it fails.
    """
    try:
        folder = libs()
    except ApacheUnavailableError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    make_class_archive()
    return folder
