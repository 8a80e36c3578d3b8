"""What tests of every kind share: Apache Kafka's jars, where Java and Maven can bring them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from interop.oracle import OracleUnavailableError, libs


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
