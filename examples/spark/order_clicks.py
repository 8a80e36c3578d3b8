"""The clicks that led to an order: a join of two streams.

    python -m examples.spark.order_clicks --bootstrap 127.0.0.1:9092

Each order is joined with the clicks of its user in the half hour before it. Both streams may run ahead of
each other: Spark keeps a click until no order can need it any more. The watermarks decide that, and the bound
on the time between click and order: without such a bound Spark would keep all clicks for ever.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from examples.spark import shop
from pykafka_broker.spark import kafka_session

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

CLICKS, ORDERS = "clicks", "orders"


def clicks_of_orders(clicks: DataFrame, orders: DataFrame) -> DataFrame:
    """`order_id, cents, ordered, page, clicked`: a row for each placed order and each click before it."""
    from pyspark.sql import functions as f

    placed = (
        orders.where("status = 'placed'")
        .select("order_id", "cents", f.col("user").alias("buyer"), f.col("at").alias("ordered"))
        .withWatermark("ordered", "2 minutes")
    )
    clicked = clicks.select("user", "page", f.col("at").alias("clicked")).withWatermark(
        "clicked", "2 minutes"
    )
    joined = placed.join(
        clicked,
        f.expr("user = buyer AND clicked <= ordered AND clicked > ordered - INTERVAL 30 MINUTES"),
    )
    return joined.select("order_id", "cents", "ordered", "page", "clicked")


def bring_up(spark: SparkSession, bootstrap: str, output: Path) -> None:
    """Write the orders and clicks joined so far to `output/order-clicks`, as Parquet."""
    clicks = shop.stream(spark, bootstrap, CLICKS, shop.CLICK_SCHEMA)
    orders = shop.stream(spark, bootstrap, ORDERS, shop.ORDER_SCHEMA)
    query = (
        clicks_of_orders(clicks, orders)
        .writeStream.format("parquet")
        .option("path", str(output / "order-clicks"))
        .option("checkpointLocation", str(output / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def main() -> None:
    chosen = shop.options(__doc__, "order-clicks")
    spark = kafka_session("order-clicks", jars=chosen.jars, conf=shop.SETTINGS)
    made = shop.made_up(shop.last_minutes(chosen.visits), chosen.visits, chosen.seed)
    shop.send(spark, chosen.bootstrap, CLICKS, made.clicks)
    shop.send(spark, chosen.bootstrap, ORDERS, made.orders)
    bring_up(spark, chosen.bootstrap, chosen.output)
    found = spark.read.parquet(str(chosen.output / "order-clicks"))
    for row in found.groupBy("order_id").count().orderBy("order_id").collect():
        print(json.dumps({"order_id": row.order_id, "clicks": row["count"]}))
    spark.stop()


if __name__ == "__main__":
    main()
