"""The newest status of every order, in a Delta table, by MERGE.

    python -m examples.spark.latest_orders --bootstrap 127.0.0.1:9092

The topic `orders` has a record for each status that an order goes through, and a tombstone for an order that
is to be forgotten. The table has one row for each order that is left. Spark repeats the last batch after a
crash, so a batch must be harmless the second time: a row is only replaced by a record with a greater offset.
(Delta can skip a repeated batch by `txnAppId` and `txnVersion`. With a lost checkpoint batches count from 0
again, and Delta would skip new data in silence.)
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from examples.spark import shop
from pykafka_broker.spark import kafka_session

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ORDERS = "orders"
#: The place of the record in the topic says what is newer. A key is always in the same partition.
TABLE = f"{shop.ORDER_SCHEMA}, partition INT, offset BIGINT"


def keep_latest(spark: SparkSession, bootstrap: str, table: Path, checkpoint: Path) -> None:
    """Bring the table to the present end of the topic."""
    from pyspark.sql import functions as f

    spark.sql(f"CREATE TABLE IF NOT EXISTS delta.`{table}` ({TABLE}) USING delta")

    def merge(batch: DataFrame, batch_id: int) -> None:
        newest = (
            batch.groupBy("key").agg(f.max_by(f.struct("*"), "offset").alias("newest")).select("newest.*")
        )
        newest.createOrReplaceTempView("newest")
        newest.sparkSession.sql(
            f"""
            MERGE INTO delta.`{table}` AS known USING newest ON known.order_id = newest.key
            WHEN MATCHED AND newest.offset > known.offset AND newest.order_id IS NULL THEN DELETE
            WHEN MATCHED AND newest.offset > known.offset THEN UPDATE SET *
            WHEN NOT MATCHED AND newest.order_id IS NOT NULL THEN INSERT *
            """
        )

    query = (
        shop.stream(spark, bootstrap, ORDERS, shop.ORDER_SCHEMA)
        .writeStream.option("checkpointLocation", str(checkpoint))
        .foreachBatch(merge)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def main() -> None:
    chosen = shop.options(__doc__, "latest-orders")
    spark = kafka_session("latest-orders", tables=["delta"], jars=chosen.jars, conf=shop.SETTINGS)
    made = shop.made_up(shop.last_minutes(chosen.visits), chosen.visits, chosen.seed)
    shop.send(spark, chosen.bootstrap, ORDERS, made.orders)
    table = (chosen.output / "orders").resolve()
    keep_latest(spark, chosen.bootstrap, table, chosen.output / "checkpoint")
    for row in spark.read.format("delta").load(str(table)).orderBy("order_id").collect():
        print(json.dumps({"order_id": row.order_id, "status": row.status, "cents": row.cents}))
    spark.stop()


if __name__ == "__main__":
    main()
