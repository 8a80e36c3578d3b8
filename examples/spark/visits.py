"""Visits of users, and views per page and quarter of an hour: session windows and windows, with watermarks.

    python -m examples.spark.visits --bootstrap 127.0.0.1:9092

A visit is a run of clicks of one user with less than ten minutes between them. A click may come up to two
minutes late, and so every window stays open until clicks two minutes newer have come; then its result is
written, once. Windows that are still open at the end of a run are kept in the checkpoint for the next run.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from examples.spark import shop
from pykafka_broker.spark import kafka_session

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

CLICKS = "clicks"
LATE = "2 minutes"


def visits(clicks: DataFrame) -> DataFrame:
    """The visits that are over: `user, started, last, clicks, cart`."""
    from pyspark.sql import functions as f

    return (
        clicks.withWatermark("at", LATE)
        .groupBy(f.session_window("at", "10 minutes"), "user")
        .agg(
            f.count("*").alias("clicks"),
            f.max("at").alias("last"),
            f.bool_or(f.col("page") == "/cart").alias("cart"),
        )
        .select("user", f.col("session_window.start").alias("started"), "last", "clicks", "cart")
    )


def views(clicks: DataFrame) -> DataFrame:
    """Views for each page and quarter of an hour: `page, quarter, views`."""
    from pyspark.sql import functions as f

    return (
        clicks.withWatermark("at", LATE)
        .groupBy(f.window("at", "15 minutes"), "page")
        .agg(f.count("*").alias("views"))
        .select("page", f.col("window.start").alias("quarter"), "views")
    )


def bring_up(spark: SparkSession, bootstrap: str, output: Path) -> None:
    """Write the windows that have closed to `output/visits` and `output/views`, as Parquet.

    Spark reads each such folder exactly once, by its `_spark_metadata`; other readers see files of a batch
    that failed, too.
    """
    clicks = shop.stream(spark, bootstrap, CLICKS, shop.CLICK_SCHEMA)
    queries = [
        result.writeStream.format("parquet")
        .outputMode("append")
        .option("path", str(output / name))
        .option("checkpointLocation", str(output / f"{name}-checkpoint"))
        .trigger(availableNow=True)
        .start()
        for name, result in (("visits", visits(clicks)), ("views", views(clicks)))
    ]
    for query in queries:
        query.awaitTermination()


def main() -> None:
    chosen = shop.options(__doc__, "visits")
    spark = kafka_session("visits", jars=chosen.jars, conf=shop.SETTINGS)
    made = shop.made_up(shop.last_minutes(chosen.visits), chosen.visits, chosen.seed)
    shop.send(spark, chosen.bootstrap, CLICKS, made.clicks)
    bring_up(spark, chosen.bootstrap, chosen.output)
    for row in spark.read.parquet(str(chosen.output / "visits")).orderBy("started", "user").collect():
        print(json.dumps({"user": row.user, "started": row.started.isoformat(), "clicks": row.clicks}))
    spark.stop()


if __name__ == "__main__":
    main()
