"""kafka-python's own integration tests, from its sdist, against our broker.

They are fetched with pip in the version that is installed, unpacked into `.cache/upstream`, and told of the
broker by `KAFKA_URI`. `expected_failures.toml` lists the tests that cannot pass, a reason each; a listed test
that passes fails the run, and so does a test that fails without being listed.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

from pykafka_broker.testing.cache import CACHE
from pykafka_broker.testing.processes import BrokerProcess

HERE = Path(__file__).parent
FOLDER = CACHE / "upstream"

#: The release that the suite is told it talks to.
KAFKA_VERSION = "4.3.1"

#: The settings with which the suite would start its own broker.
PROPERTIES = {
    "node.id": "0",
    "num.partitions": "4",
    "auto.create.topics.enable": "true",
    "delete.topic.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
}


def suite() -> Path:
    """The unpacked sdist, with what it leaves out."""
    version = importlib.metadata.version("kafka-python")
    folder = FOLDER / f"kafka_python-{version}"
    if not folder.is_dir():
        FOLDER.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "kafka-python"),
                *("-d", str(FOLDER), f"kafka-python=={version}"),
            ],
            check=True,
        )
        (archive,) = FOLDER.glob(f"kafka[_-]python-{version}.tar.gz")
        with tarfile.open(archive) as sdist:
            sdist.extractall(FOLDER, filter="data")
        # The tests run against the installed package: the sources of the sdist would hide it.
        shutil.rmtree(folder / "kafka")
        (folder / "test" / "__init__.py").touch()
    shutil.copy(HERE / "service.py", folder / "test" / "service.py")
    return folder


def expected_failures(broker: str) -> dict[str, str]:
    listed = tomllib.loads((HERE / "expected_failures.toml").read_text())
    return {**listed["everywhere"], **listed.get(broker, {})}


def run_tests(broker: BrokerProcess) -> dict[str, str]:
    """Each test and how it ended: passed, failed or skipped."""
    folder = suite()
    results = FOLDER / "results.xml"
    results.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "KAFKA_URI": f"kafka://{broker.address}",
        "KAFKA_VERSION": KAFKA_VERSION,
        # Both would be the place of an unpacked Kafka; the fixtures only look whether the folder is there.
        "KAFKA_ROOT": str(folder),
        "PROJECT_ROOT": str(folder),
        "CRC32C_SW_MODE": "auto",
    }
    done = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pytest",
                "-c",
                os.devnull,
                f"--rootdir={folder}",
                "-p",
                "no:cacheprovider",
            ),
            *("-p", "no:asyncio", "-W", "ignore", "--timeout=90", "-q", f"--junitxml={results}"),
            *("test/integration", "--ignore=test/integration/test_ssl_integration.py"),
        ],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if not results.exists():
        raise RuntimeError(f"the suite did not run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    (FOLDER / "output.txt").write_text(done.stdout)
    return outcomes(results)


def outcomes(results: Path) -> dict[str, str]:
    ended: dict[str, str] = {}
    for case in ET.parse(results).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        kinds = {child.tag for child in case}
        ended[name] = (
            "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        )
    return ended


def run(kind: type[BrokerProcess], report: Callable[[str], None]) -> list[str]:
    expected = expected_failures(kind.name)
    broker = kind(PROPERTIES)
    broker.properties["advertised.listeners"] = f"PLAINTEXT://{broker.address}"
    with broker:
        ended = run_tests(broker)
    failures = [
        f"{name} failed and is not expected to (output: {FOLDER / 'output.txt'})"
        for name, outcome in ended.items()
        if outcome == "failed" and name not in expected
    ]
    failures += [
        f"{name} passed but is listed as an expected failure: take it off the list"
        for name in expected
        if ended.get(name) == "passed"
    ]
    failures += [
        f"{name} is listed as an expected failure but is not in the suite"
        for name in expected
        if name not in ended
    ]
    counts = {outcome: list(ended.values()).count(outcome) for outcome in ("passed", "failed", "skipped")}
    report(f"{counts}, of the failures {len(expected)} expected")
    return failures
