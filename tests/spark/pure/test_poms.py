"""What a POM asks for, and all that this needs."""

from __future__ import annotations

import pytest

from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.poms import Dependency, closure, dependencies, is_among, version_of
from pykafka_broker.spark.releases import Coordinates, parse_coordinates
from tests.support.maven import CONNECTOR_4_0, pom_of

POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <parent><groupId>org.example</groupId><version>2.1</version></parent>
  <properties><clients>3.9.0</clients></properties>
  <dependencies>
    <dependency><groupId>org.example</groupId><artifactId>a</artifactId>
      <version>${project.version}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId>
      <version>${clients}</version><scope>compile</scope>
      <exclusions><exclusion><groupId>com.github.luben</groupId><artifactId>zstd-jni</artifactId>
      </exclusion></exclusions></dependency>
    <dependency><groupId>g</groupId><artifactId>provided</artifactId><version>1</version>
      <scope>provided</scope></dependency>
    <dependency><groupId>g</groupId><artifactId>tested</artifactId><version>1</version>
      <scope>test</scope></dependency>
    <dependency><groupId>g</groupId><artifactId>tests</artifactId><version>1</version>
      <type>test-jar</type></dependency>
    <dependency><groupId>g</groupId><artifactId>perhaps</artifactId><version>1</version>
      <optional>true</optional></dependency>
  </dependencies>
</project>
"""


def test_only_what_is_needed_when_a_program_runs_is_asked_for() -> None:
    assert dependencies(POM) == [
        Dependency(Coordinates("org.example", "a", "2.1")),
        Dependency(
            Coordinates("org.apache.kafka", "kafka-clients", "3.9.0"),
            frozenset({("com.github.luben", "zstd-jni")}),
        ),
    ]


def test_what_is_no_pom_is_refused() -> None:
    with pytest.raises(SparkError, match="What should be a POM is none"):
        dependencies("<html><p>Please log in</html>")


def test_the_closure_leaves_out_what_spark_brings() -> None:
    poms = {parse_coordinates(package): pom_of(needed) for package, needed in CONNECTOR_4_0.items()}
    root = parse_coordinates("org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0")
    found = closure([root], {"jsr305-3.0.0.jar", "lz4-java-1.8.0.jar"}, poms.__getitem__)
    assert list(map(str, found)) == list(CONNECTOR_4_0)


def test_the_nearest_version_wins_and_exclusions_reach_down() -> None:
    poms = {
        "g:root:1": POM,
        "org.example:a:2.1": pom_of(["g:shared:1"]),
        "org.apache.kafka:kafka-clients:3.9.0": pom_of(["g:deep:1", "com.github.luben:zstd-jni:1"]),
        "g:shared:1": pom_of([]),
        "g:deep:1": pom_of(["g:shared:2", "com.github.luben:zstd-jni:2"]),
    }
    found = closure([parse_coordinates("g:root:1")], (), lambda asked: poms[str(asked)])
    assert list(map(str, found)) == [
        "g:root:1",
        "org.example:a:2.1",
        "org.apache.kafka:kafka-clients:3.9.0",
        "g:shared:1",
        "g:deep:1",
    ]


def test_a_version_that_a_parent_decides_is_refused_by_name() -> None:
    pom = pom_of(["g:managed:${from.parent}"])
    with pytest.raises(SparkError, match="POM of g:root:1 does not say which version of g:managed"):
        closure([parse_coordinates("g:root:1")], (), lambda asked: pom)


def test_a_file_is_told_from_one_with_a_longer_name() -> None:
    assert version_of("spark-sql-kafka-0-10_2.13", "spark-sql-kafka-0-10_2.13-4.0.0.jar") == "4.0.0"
    assert version_of("zstd-jni", "zstd-jni-1.5.6-9.jar") == "1.5.6-9"
    assert version_of("kafka-clients", "kafka-clients-sources.jar") is None
    assert is_among("commons-pool2", ["commons-pool-1.5.4.jar"]) is False
