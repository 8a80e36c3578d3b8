"""Archive: topics to a lake table, exactly once, so that a replay gives the same topic again.

    settings.py      what a job is asked for: topics, table, start, pace
    job.py           archive_topics()
    tables.py        the tables of Delta, Iceberg and Parquet
    rows.py          the rows: Spark's kafka format, the topic's id, the day
    checkpoints.py   the checkpoint of a job
    cluster.py       what the brokers say of the topics
    progress.py      how far a job is; pure
    guard.py         whether a job may start, or has to stop; pure
    classic.py       the JVM of a classic session

`archive_topics` and what imports pyspark is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.spark.archive.progress import Archived, Batch
from pykafka_broker.spark.archive.settings import Pace, Start, Table, Topics

if TYPE_CHECKING:
    from pykafka_broker.spark.archive.job import archive_topics

__all__ = ["Archived", "Batch", "Pace", "Start", "Table", "Topics", "archive_topics"]


def __getattr__(name: str) -> Any:
    if name == "archive_topics":
        from pykafka_broker.spark.installation import pyspark_version

        pyspark_version()  # says how to install it, where an import would only fail
        from pykafka_broker.spark.archive.job import archive_topics

        return archive_topics
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
