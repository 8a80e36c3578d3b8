"""Which Java Spark would start, and whether it can: scripts stand in for the Javas that are not here."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka_broker.spark.java import VECTOR_MODULE, Java, faults, find_java, look
from pykafka_broker.spark.releases import line_of

SPARK_4, SPARK_3 = line_of("4.0.0"), line_of("3.5.1")
MODULES = frozenset({"java.base", VECTOR_MODULE})


def java_that_says(folder: Path, version: str, modules: str = "java.base@17") -> dict[str, str]:
    """The environment in which this is the Java."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!/bin/sh\nif [ $1 = -version ]; then echo '{version}' >&2; else echo '{modules}'; fi\n"
    )
    program.chmod(0o755)
    return {"JAVA_HOME": str(folder)}


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.21.1" 2026-11-17', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
    ],
)
def test_the_version_is_read_from_what_java_says(tmp_path: Path, said: str, version: int) -> None:
    found = look(java_that_says(tmp_path, said))
    assert found is not None
    assert (found.path, found.version) == (str(tmp_path / "bin" / "java"), version)


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    environ = java_that_says(tmp_path, 'openjdk version "17"')
    assert find_java({**environ, "PATH": "/nowhere"}) == str(tmp_path / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}) == str(tmp_path / "bin" / "java")
    assert look({"PATH": "/nowhere"}) is None


def test_a_java_that_fits_has_no_faults() -> None:
    assert faults(Java("java", 17, MODULES), SPARK_4) == []
    assert faults(Java("java", 8), SPARK_3) == []


def test_no_java_is_a_fault_with_a_package_to_install() -> None:
    [found] = faults(None, SPARK_4)
    assert found.message == "There is no Java: neither is JAVA_HOME set, nor is `java` on the path."
    assert "apt-get install openjdk-17-jre-headless" in found.remedy


def test_a_java_home_without_java_is_a_fault(tmp_path: Path) -> None:
    [found] = faults(look({"JAVA_HOME": str(tmp_path)}), SPARK_4)
    assert found.message.startswith(f"{tmp_path}/bin/java does not start: ")


def test_a_java_that_is_too_old_is_a_fault(tmp_path: Path) -> None:
    [found] = faults(look(java_that_says(tmp_path, 'openjdk version "11.0.2"')), SPARK_4)
    assert found.message == (
        f"{tmp_path}/bin/java is Java 11; Spark 4.0 needs 17 or newer, and ends with "
        "UnsupportedClassVersionError."
    )


def test_a_trimmed_java_is_a_fault_of_spark_4(tmp_path: Path) -> None:
    trimmed = look(java_that_says(tmp_path, 'openjdk version "17.0.1"'))
    [found] = faults(trimmed, SPARK_4)
    assert f"without the module {VECTOR_MODULE}" in found.message
    assert faults(trimmed, SPARK_3) == []


def test_a_java_that_is_newer_than_tested_is_a_warning() -> None:
    [found] = faults(Java("java", 25, MODULES), SPARK_4)
    assert (found.message, found.is_warning) == ("java is Java 25; Spark 4.0 is tested with 17, 21.", True)
