"""docs/spark.md does what it shows: typed from its top to its end, each program where it stands.

The jars come from a repository in a folder, made of those that the other tests use.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from pykafka_broker.testing.processes import free_port
from tests.spark.conftest import table_jars
from tests.support.maven import CONNECTOR_4_0, DELTA_4_0, make_repository
from tests.support.pages import ADDRESS, REPOSITORY, START, Command, Terminal, commands, run, shown_output

#: A dozen sessions are started: compiling well, and cutting rows into 200 parts, would cost minutes.
SETTINGS = """
spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.databricks.delta.snapshotPartitions 2
spark.sql.shuffle.partitions 2
spark.sql.streaming.pollingDelay 10ms
spark.ui.enabled false
"""

BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)


@pytest.mark.timeout(900)
def test_the_page_does_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = table_jars()
    packages = CONNECTOR_4_0 | DELTA_4_0
    maven = make_repository(tmp_path / "maven", packages, lambda c: (jars / c.jar).read_bytes())
    monkeypatch.setenv("PYKAFKA_BROKER_MAVEN_REPOSITORY", maven)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(SETTINGS)
    blocks = BLOCK.findall((REPOSITORY / "docs" / "spark.md").read_text())
    with Terminal(f"127.0.0.1:{free_port()}", tmp_path) as terminal:
        terminal.type(Command(f"{START} --listen {ADDRESS}", ""))
        for language, block in blocks:
            if language == "console":
                for command in commands(block):
                    terminal.type(command)
            else:
                program = block.replace(ADDRESS, terminal.address)
                printed = run([sys.executable, "-c", program], terminal.address, tmp_path)
                assert printed.splitlines() == shown_output(block)
