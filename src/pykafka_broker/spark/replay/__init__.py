"""Replay: records of a table, or of anything in Spark's kafka format, written to topics, each once.

    job.py            replay(): examines both sides, writes, and returns a summary
    takeover.py       the start of a run: fences earlier ones, and finds their progress
    writing.py        the work of a task: one producer for each partition that it writes
    table.py          the source: its records within the window, summaries, one task for each partition
    target.py         the topics that are written: looked up, created, changed
    fitness.py        the settings of a topic that would delete, change or refuse records
    transactions.py   from Arrow batches of rows to record batches, and from these to transactions
    claims.py         the text beside each committed offset, which names the replay
    window.py         the choice of records: topics, partitions, offsets, times, days
    isolation.py      whether the source leaves out aborted records
    summary.py        the number, the times and the sizes of a partition's records
    shuffle.py        keys that Spark's hash sends to one task each
    pace.py           the rate limit
    settings.py       batches, transactions, rates
    errors.py         ReplayError

    from pykafka_broker.spark.replay import Target, Window, replay

    table = spark.read.parquet("archive/orders")
    target = Target("127.0.0.1:9092", {"orders": "orders-again"})
    written = replay(table, target, window=Window(topics=["orders"]))

A transaction holds the records, and the offset in the source behind them, committed for the group of the
replay. So a replay that is started again goes on behind what is committed, whatever ended it. Executors need
this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.spark.python_packages import MAP_IN_ARROW, insist_on
from pykafka_broker.spark.replay.errors import ReplayError
from pykafka_broker.spark.replay.settings import Settings
from pykafka_broker.spark.replay.window import OffsetRange, Window

if TYPE_CHECKING:
    from pykafka_broker.spark.replay.job import Preparation, Replayed, Target, replay

__all__ = [
    "OffsetRange",
    "Preparation",
    "ReplayError",
    "Replayed",
    "Settings",
    "Target",
    "Window",
    "replay",
]


def __getattr__(name: str) -> Any:
    if name not in ("Preparation", "Replayed", "Target", "replay"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    insist_on(MAP_IN_ARROW, "A replay needs")
    from pykafka_broker.spark.replay import job

    return getattr(job, name)
