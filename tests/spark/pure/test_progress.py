"""The end of a batch, by what Spark tells its listeners."""

from __future__ import annotations

from pykafka_broker.spark.progress import described, end_offsets

KAFKA = "KafkaV2[Subscribe[t]]"


def test_a_batch_ends_where_its_sources_of_kafka_do() -> None:
    assert end_offsets(
        [(KAFKA, '{"t":{"0":5,"1":7}}'), ("RateStreamV2[rowsPerSecond=1]", '{"t":{"2":1}}')]
    ) == {
        ("t", 0): 5,
        ("t", 1): 7,
    }


def test_of_two_sources_that_read_a_partition_the_one_behind_counts() -> None:
    assert end_offsets([(KAFKA, '{"t":{"0":5}}'), (KAFKA, '{"t":{"0":3}}')]) == {("t", 0): 3}


def test_the_value_that_spark_connect_shows_is_read_as_well() -> None:
    assert end_offsets([(KAFKA, "{'t': {'0': 5}}")]) == {("t", 0): 5}


def test_a_query_that_has_read_nothing_ends_nowhere() -> None:
    assert end_offsets([(KAFKA, None), (KAFKA, "null"), (KAFKA, "None"), (KAFKA, "it's broken")]) == {}


def test_the_text_beside_an_offset_names_spark_the_query_and_the_batch() -> None:
    assert described("orders", 12) == "Spark query orders, batch 12"
