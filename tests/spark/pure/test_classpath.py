"""Which jars do not fit, in words."""

from __future__ import annotations

import pytest

from pykafka_broker.spark.classpath import AGAIN, Wanted, faults
from pykafka_broker.spark.errors import Fault
from pykafka_broker.spark.releases import parse_coordinates
from tests.support.maven import CONNECTOR_4_0

SPARK = Wanted("4.0.0", "2.13")
RIGHT = tuple(parse_coordinates(package).jar for package in CONNECTOR_4_0)
CONNECTOR = RIGHT[0]


def test_the_connector_with_what_it_needs_is_right() -> None:
    assert faults(RIGHT, SPARK) == []


def without(*names: str) -> tuple[str, ...]:
    return tuple(jar for jar in RIGHT if not jar.startswith(names))


@pytest.mark.parametrize(
    ("jars", "message"),
    [
        (
            (),
            'The connector behind format("kafka") is not there, spark-sql-kafka-0-10_2.13-4.0.0.jar.',
        ),
        (
            ("spark-streaming-kafka-0-10-assembly_2.13-4.0.0.jar",),
            'The connector behind format("kafka") is not there, spark-sql-kafka-0-10_2.13-4.0.0.jar. '
            "spark-streaming-kafka-0-10 is the one of DStreams.",
        ),
        (
            (*RIGHT, "spark-sql-kafka-0-10_2.13-3.5.1.jar"),
            "The connector is there in 2 versions (3.5.1, 4.0.0).",
        ),
        (
            (*without("spark-sql"), "spark-sql-kafka-0-10_2.13-4.1.0.jar"),
            "The connector is of Spark 4.1.0, and Spark is 4.0.0: it calls what this Spark does not have.",
        ),
        (
            (*without("spark-sql"), "spark-sql-kafka-0-10_2.12-4.0.0.jar"),
            "For another Scala than Spark's 2.13 (NoClassDefFoundError: scala/...): "
            "spark-sql-kafka-0-10_2.12-4.0.0.jar.",
        ),
        (
            without("spark-token"),
            "The connector lacks spark-token-provider-kafka-0-10_2.13, its settings: NoClassDefFoundError at "
            "the first read.",
        ),
        (
            without("kafka-clients"),
            "The connector lacks kafka-clients, Kafka's Java client: NoClassDefFoundError at the first read.",
        ),
        (
            without("commons-pool2"),
            "The connector lacks commons-pool2, the pool of its consumers: NoClassDefFoundError at the first "
            "read.",
        ),
    ],
)
def test_each_fault_is_named_and_mended_by_fetching_again(jars: tuple[str, ...], message: str) -> None:
    assert faults(jars, SPARK) == [Fault(message, AGAIN)]


def test_two_clients_are_one_too_many() -> None:
    [found] = faults((*RIGHT, "kafka-clients-3.4.1.jar"), SPARK)
    assert found.message == "kafka-clients is there in several versions (3.4.1, 3.9.0): chance picks one."


def test_another_patch_of_the_same_line_is_a_warning() -> None:
    [found] = faults(RIGHT, SPARK._replace(spark="4.0.1"))
    assert (found.message, found.is_warning) == (
        "The connector is of Spark 4.0.0, and Spark is 4.0.1: of the same line, so it mostly works.",
        True,
    )
