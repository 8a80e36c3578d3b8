"""A few of the killings of `interop.spark.archive_kills`, which has many: nothing lost, nothing twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.conftest import table_jars
from tests.support.pages import REPOSITORY


@pytest.mark.timeout(900)
def test_a_table_is_the_topic_after_killings(tmp_path: Path) -> None:
    table_jars()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "interop.spark.archive_kills",
            "--format",
            "delta",
            "--kills",
            "3",
            "--seed",
            "3",
        ],
        cwd=REPOSITORY,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert sum(found["by_target"].values()) == 3
    assert found["records"] > 0
