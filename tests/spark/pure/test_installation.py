"""Which Spark Python would run."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.installation import look


def test_the_installed_spark_tells_its_scala_by_its_jars() -> None:
    found = look({})
    version = metadata.version("pyspark")
    assert (found.pyspark, found.spark, found.scala) == (version, version, "2.13")
    assert found.is_of_one_version
    assert f"spark-core_2.13-{version}.jar" in found.jars


def test_spark_home_goes_before_the_package(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.5.1.jar").touch()
    found = look({"SPARK_HOME": str(tmp_path)})
    assert (found.home, found.spark, found.scala) == (tmp_path, "3.5.1", "2.12")
    assert not found.is_of_one_version


def test_a_folder_without_jars_is_no_spark(tmp_path: Path) -> None:
    with pytest.raises(SparkError, match=r"jars \(SPARK_HOME\) has no jars of Spark"):
        look({"SPARK_HOME": str(tmp_path)})
