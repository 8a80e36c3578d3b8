"""Carts that were left: state of one's own for each user, with timers, by `transformWithStateInPandas`.

    python -m examples.spark.abandoned_carts --bootstrap 127.0.0.1:9092

A user who has looked at the cart and then does not click for ten minutes has left it. Each click moves the
timer of the user; when the timer fires, by event time, a row is written. (`transformWithState` on rows came
after pyspark 4.0; this form needs pandas and the RocksDB state store.)
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from examples.spark import shop
from pykafka_broker.spark import kafka_session

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

CLICKS = "clicks"
PATIENCE_MS = 10 * 60_000
LEFT = "user STRING, left_at_ms BIGINT"
#: What a session needs for state of one's own.
CONF = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}


class Carts(StatefulProcessor):
    """One user's cart: the time of the last click, while the cart is open. Times are milliseconds: pandas'
    timestamps have no zone, and timers want milliseconds.
    """

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._last_click = handle.getValueState("last_click", "at_ms BIGINT")

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        before = self._last_click.get()
        last_ms = before[0] if before else None
        left_ms: list[int] = []
        clicks = pd.concat(list(rows)).sort_values("at_ms")
        for page, at_ms in zip(clicks["page"], clicks["at_ms"], strict=True):
            if last_ms is not None and at_ms - last_ms >= PATIENCE_MS:
                left_ms.append(last_ms)
                last_ms = None
            if last_ms is not None or page == "/cart":
                last_ms = max(int(at_ms), last_ms or 0)
        if before:
            self._handle.deleteTimer(before[0] + PATIENCE_MS)
        if last_ms is not None:
            self._last_click.update((last_ms,))
            self._handle.registerTimer(last_ms + PATIENCE_MS)
        elif before:
            self._last_click.clear()
        yield _left(key, left_ms)

    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: Any,
        expiredTimerInfo: Any,
    ) -> Iterator[pd.DataFrame]:
        last_click = self._last_click.get()
        assert last_click is not None  # the timer goes with it
        self._last_click.clear()
        yield _left(key, [last_click[0]])

    def close(self) -> None:
        """There is nothing to give back: the state belongs to Spark."""


def _left(key: tuple[str], left_ms: list[int]) -> pd.DataFrame:
    import pandas as pd

    users = pd.Series(
        list(key) * len(left_ms), dtype=object
    )  # pyspark 4.0 cannot take the strings of pandas 3
    return pd.DataFrame({"user": users, "left_at_ms": pd.Series(left_ms, dtype="int64")})


def carts_left(clicks: DataFrame) -> DataFrame:
    """`user, left_at` for each cart that was left; `left_at` is the time of the last click."""
    from pyspark.sql import functions as f

    left = (
        clicks.select("user", "page", "at", f.unix_millis("at").alias("at_ms"))
        .withWatermark("at", "2 minutes")
        .groupBy("user")
        .transformWithStateInPandas(Carts(), LEFT, outputMode="Append", timeMode="EventTime")
    )
    return left.select("user", f.timestamp_millis("left_at_ms").alias("left_at"))


def bring_up(spark: SparkSession, bootstrap: str, output: Path) -> None:
    """Write the carts that have been left to `output/carts`, as Parquet."""
    query = (
        carts_left(shop.stream(spark, bootstrap, CLICKS, shop.CLICK_SCHEMA))
        .writeStream.format("parquet")
        .option("path", str(output / "carts"))
        .option("checkpointLocation", str(output / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def main() -> None:
    chosen = shop.options(__doc__, "abandoned-carts")
    spark = kafka_session("abandoned-carts", jars=chosen.jars, conf=CONF | shop.SETTINGS)
    made = shop.made_up(shop.last_minutes(chosen.visits), chosen.visits, chosen.seed)
    shop.send(spark, chosen.bootstrap, CLICKS, made.clicks)
    bring_up(spark, chosen.bootstrap, chosen.output)
    for row in spark.read.parquet(str(chosen.output / "carts")).orderBy("left_at").collect():
        print(json.dumps({"user": row.user, "left_at": row.left_at.isoformat()}))
    spark.stop()


if __name__ == "__main__":
    main()
