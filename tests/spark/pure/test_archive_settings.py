"""What an archive job may be asked for."""

from __future__ import annotations

import os

import pytest

from pykafka_broker.spark.archive import Table, Topics
from pykafka_broker.spark.errors import SparkError


@pytest.mark.parametrize(
    ("table", "checked", "identifier"),
    [
        (Table("delta", "/lake/a`b"), "/lake/a`b", "delta.`/lake/a``b`"),
        (Table("delta", "s3a://lake/orders"), "s3a://lake/orders", "delta.`s3a://lake/orders`"),
        (Table("delta", "./lake"), f"{os.getcwd()}/lake", f"delta.`{os.getcwd()}/lake`"),
        (Table("delta", "raw.orders"), "raw.orders", "raw.orders"),
        (Table("iceberg", "lake.raw.orders"), "lake.raw.orders", "lake.raw.orders"),
        (Table("parquet", "files"), f"{os.getcwd()}/files", f"{os.getcwd()}/files"),
    ],
)
def test_a_table_is_named_by_a_path_or_by_its_name(table: Table, checked: str, identifier: str) -> None:
    assert (table.checked().name, table.checked().identifier) == (checked, identifier)


@pytest.mark.parametrize("name", ["/lake/orders", "orders", "raw.orders"])
def test_a_table_of_iceberg_has_a_catalog(name: str) -> None:
    with pytest.raises(SparkError, match="is no table of Iceberg: give CATALOG"):
        Table("iceberg", name).checked()


def test_options_are_named_without_their_values() -> None:
    """Passwords may be among them."""
    topics = Topics("127.0.0.1:9092", ("a",), {"kafka.sasl.jaas.config": "secret"})
    assert repr(topics.checked()) == "Topics('127.0.0.1:9092', ('a',), [kafka.sasl.jaas.config])"


def test_options_that_the_job_sets_itself_are_refused() -> None:
    topics = Topics("127.0.0.1:9092", ("a",), {"minPartitions": "2", "failOnDataLoss": "false"})
    with pytest.raises(SparkError, match="The option failOnDataLoss is set by the job itself"):
        topics.checked()
    with pytest.raises(SparkError, match="No topic is named"):
        Topics("127.0.0.1:9092", ()).checked()
    with pytest.raises(SparkError, match="Topic 'a' is named twice"):
        Topics("127.0.0.1:9092", ("a", "b", "a")).checked()
