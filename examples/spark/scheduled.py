"""Clicks to a Delta table, each time a scheduler calls: Spark runs for what is new, and ends.

    python -m examples.spark.scheduled --bootstrap 127.0.0.1:9092

One line of cron starts it: `*/15 * * * * cd shop && python -m examples.spark.scheduled`. The checkpoint knows
where the last run ended, `maxOffsetsPerTrigger` cuts a long absence into batches of a bearable size, and the
offsets are committed to the group `clicks-to-table`, so that tools show the lag that the next run will find.
If a run is still going when the scheduler calls again, the next run ends at once with status 75 ("try
again later").
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from typing import TYPE_CHECKING

from examples.spark import shop
from pykafka_broker.spark import commit_progress, kafka_session

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CLICKS = "clicks"
GROUP = "clicks-to-table"
RECORDS_PER_BATCH = 100_000


def bring_up(spark: SparkSession, bootstrap: str, output: Path) -> int:
    """Append what is new to the Delta table `output/clicks`; how many rows that were."""
    query = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", CLICKS)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", RECORDS_PER_BATCH)
        .load()
        .selectExpr(
            f"from_json(CAST(value AS STRING), '{shop.CLICK_SCHEMA}') AS click", "partition", "offset"
        )
        .select("click.*", "partition", "offset")
        .writeStream.format("delta")
        .queryName(GROUP)
        .option("checkpointLocation", str(output / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(output / "clicks"))
    )
    query.awaitTermination()
    return sum(progress["numInputRows"] for progress in query.recentProgress)


def main() -> None:
    chosen = shop.options(__doc__, "scheduled")
    chosen.output.mkdir(parents=True, exist_ok=True)
    lock = os.open(chosen.output / ".lock", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"another run holds {chosen.output / '.lock'}", file=sys.stderr)
        sys.exit(os.EX_TEMPFAIL)
    spark = kafka_session("scheduled", tables=["delta"], jars=chosen.jars, conf=shop.SETTINGS)
    made = shop.made_up(shop.last_minutes(chosen.visits), chosen.visits, chosen.seed)
    shop.send(spark, chosen.bootstrap, CLICKS, made.clicks)
    commit_progress(spark, chosen.bootstrap, group=GROUP, query=GROUP)
    rows = bring_up(spark, chosen.bootstrap, chosen.output.resolve())
    table = spark.read.format("delta").load(str((chosen.output / "clicks").resolve()))
    print(json.dumps({"new": rows, "all": table.count()}))
    spark.stop()


if __name__ == "__main__":
    main()
