"""A streaming query of Spark that reads the ledger while nodes fail: each record reaches it, and once."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from tests.torture.clients import TOPIC
from tests.torture.history import Place
from tests.torture.users import ANYBODY, Users

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


class SparkQuery:
    """Runs in a `with` statement, once the ledger is there; `seen` counts the places that its batches had.

    A batch that is tried again would be counted twice, but a query tries a batch again only when it is
    started again, and this one is not.
    """

    def __init__(self, address: str, folder: Path, users: Users = ANYBODY) -> None:
        self.seen: Counter[Place] = Counter()
        self._address = address
        self._folder = folder
        self._login = {f"kafka.{key}": value for key, value in users.of_java("spark").items()}

    def __enter__(self) -> SparkQuery:
        from pykafka_broker.spark import kafka_session
        from tests.spark.conftest import connector_jars

        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        on_interrupt = signal.getsignal(signal.SIGINT)
        local = {"spark.local.dir": str(self._folder / "local")}
        jars = connector_jars()
        self._session = kafka_session("torture", master="local[2]", jars=jars, conf={**SETTINGS, **local})
        # Spark's own handler would outlive it.
        signal.signal(signal.SIGINT, on_interrupt)
        self._session.sparkContext.setLogLevel("ERROR")
        rows = (
            self._session.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self._address)
            .options(**self._login)
            .option("subscribe", TOPIC)
            .option("startingOffsets", "earliest")
            .load()
            .select("partition", "offset")
        )
        writer = rows.writeStream.foreachBatch(self._count).trigger(processingTime="500 milliseconds")
        self._query = writer.option("checkpointLocation", str(self._folder / "checkpoint")).start()
        return self

    def __exit__(self, *_: object) -> None:
        from pyspark import SparkContext

        from tests.spark.conftest import end_jvm

        self._query.stop()
        self._session.stop()
        end_jvm(SparkContext)

    def _count(self, batch: DataFrame, _number: int) -> None:
        self.seen.update(Place(row.partition, row.offset) for row in batch.collect())

    def wrong(self, acknowledged: Collection[Place], patience_s: float) -> dict[str, object]:
        """What it has not read after so long without new records, what it has read twice, and its failure."""
        deadline = time.monotonic() + patience_s
        wanted = set(acknowledged)
        while wanted - self.seen.keys() and self._query.isActive and time.monotonic() < deadline:
            time.sleep(0.2)
        found = {
            "failed": str(self._query.exception() or "")[:3000],
            "missed": sorted(wanted - self.seen.keys())[:10],
            "twice": [place for place, times in self.seen.items() if times > 1][:10],
        }
        return {name: what for name, what in found.items() if what}
