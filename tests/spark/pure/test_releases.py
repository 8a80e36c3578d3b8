"""Which coordinates fit which Spark."""

from __future__ import annotations

import pytest

from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.releases import (
    Coordinates,
    connector,
    packages,
    parse_coordinates,
    table_package,
    table_settings,
)


@pytest.mark.parametrize(
    ("version", "scala", "expected"),
    [
        ("3.5.1", "2.12", "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.1"),
        ("3.5.9", "2.13", "org.apache.spark:spark-sql-kafka-0-10_2.13:3.5.9"),
        ("4.0.0", "2.13", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"),
        ("4.1.4", "2.13", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.4"),
        ("4.2.0-preview1", "2.13", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0-preview1"),
        ("4.3.0", "2.13", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"),
    ],
)
def test_the_connector_has_the_version_of_spark_and_its_scala(
    version: str, scala: str, expected: str
) -> None:
    assert str(connector(version, scala)) == expected


def test_a_release_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(SparkError, match=r"Spark 2\.4\.8 .* known here \(3\.5, 4\.0, 4\.1, 4\.2, 4\.3\)"):
        connector("2.4.8", "2.11")


def test_a_scala_that_spark_is_not_made_for_is_refused() -> None:
    with pytest.raises(SparkError, match=r"^Spark 4\.0 is made for Scala 2\.13, not for 2\.12\.$"):
        connector("4.0.0", "2.12")


def test_tables_are_those_of_the_line() -> None:
    assert list(map(str, packages("4.0.1", "2.13", ["delta", "iceberg"]))) == [
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.1",
        "io.delta:delta-spark_2.13:4.0.0",
        "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
    ]
    assert str(table_package("delta", "3.5.1", "2.12")) == "io.delta:delta-spark_2.12:3.3.2"


def test_a_table_without_a_known_release_for_this_spark_is_refused() -> None:
    with pytest.raises(SparkError, match=r"^No release of Iceberg for Spark 4\.3 is known here"):
        table_package("iceberg", "4.3.0", "2.13")
    with pytest.raises(SparkError, match="'hudi' is no table format that is known here: delta, iceberg"):
        table_package("hudi", "4.0.0", "2.13")


def test_the_extensions_of_two_tables_stand_side_by_side() -> None:
    assert table_settings(["delta", "iceberg"]) == {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def test_coordinates_name_the_file_and_its_place() -> None:
    clients = parse_coordinates(" org.apache.kafka:kafka-clients:3.9.0 ")
    assert clients == Coordinates("org.apache.kafka", "kafka-clients", "3.9.0")
    assert clients.stem == "org/apache/kafka/kafka-clients/3.9.0/kafka-clients-3.9.0"
    assert clients.jar == "kafka-clients-3.9.0.jar"
    with pytest.raises(SparkError, match="'kafka-clients' is not GROUP:ARTIFACT:VERSION"):
        parse_coordinates("kafka-clients")
