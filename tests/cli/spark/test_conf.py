"""`spark conf` and `spark jars`: a session's settings for the installed Spark, and its jars."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from tests.cli.conftest import Result, run_command
from tests.support.maven import CONNECTOR_4_0, make_repository

CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{metadata.version('pyspark')}"


def test_settings_are_lines_of_the_defaults_arguments_or_a_program() -> None:
    assert run_command("spark", "conf") == Result(0, f"spark.jars.packages {CONNECTOR}\n", "")
    assert run_command("spark", "conf", "--as", "submit", "--package", "g:a:1").out == (
        f"--conf spark.jars.packages={CONNECTOR},g:a:1\n"
    )
    program = run_command("spark", "conf", "--as", "python").out
    assert f".config('spark.jars.packages', '{CONNECTOR}')" in program
    compile(program, "program", "exec")


def test_jars_in_a_folder_take_the_place_of_ivy(tmp_path: Path) -> None:
    maven, jars = make_repository(tmp_path / "maven", CONNECTOR_4_0), tmp_path / "jars"
    fetched = run_command("spark", "jars", "--repository", maven, "--dest", str(jars))
    paths = sorted(str(path) for path in jars.iterdir())
    assert (fetched.status, sorted(fetched.out.splitlines()), fetched.err) == (0, paths, "")
    assert run_command("spark", "conf", "--jars", str(jars)).out == f"spark.jars {','.join(paths)}\n"


def test_what_is_wrong_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = run_command("spark", "conf", "--jars", str(tmp_path))
    assert (empty.status, empty.out) == (1, "")
    assert empty.err == f"Error: {tmp_path} has no jars:\n  pykafka-broker spark jars --dest {tmp_path}\n"

    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    no_spark = run_command("spark", "conf")
    assert no_spark.status == 1
    assert no_spark.err.startswith(f"Error: {tmp_path}/jars (SPARK_HOME) has no jars of Spark")
