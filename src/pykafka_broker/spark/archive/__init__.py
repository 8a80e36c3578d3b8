"""Archive: topics to a lake table, exactly once, so that a replay gives the same topic again.

    settings.py      the settings of a job: topics, table, start, pace
    job.py           archive_topics()
    tables.py        the tables of Delta, Iceberg and Parquet
    compaction.py    compact(): many small files become few
    rows.py          the rows: Spark's kafka format, the topic's id, the day
    decoding.py      JSON, Avro and Protobuf as columns
    bad_records.py   dead_letters(): the records that could not be decoded
    formats.py       the encodings of keys and values, in words
    evolution.py     the columns that a table lacks for the rows of a job
    checkpoints.py   the checkpoint of a job
    cluster.py       the state of the topics, as the brokers describe it
    progress.py      the progress of a job; pure
    guard.py         whether a job may start, or has to stop; pure
    classic.py       the JVM of a classic session

The modules that import pyspark are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pykafka_broker.spark.archive.progress import Archived, Batch
from pykafka_broker.spark.archive.settings import Pace, Start, Table, Topics

if TYPE_CHECKING:
    from pykafka_broker.spark.archive.bad_records import dead_letters
    from pykafka_broker.spark.archive.compaction import Compacted, compact
    from pykafka_broker.spark.archive.job import archive_topics

__all__ = [
    "Archived",
    "Batch",
    "Compacted",
    "Pace",
    "Start",
    "Table",
    "Topics",
    "archive_topics",
    "compact",
    "dead_letters",
]

_MODULES = {
    "Compacted": "compaction",
    "archive_topics": "job",
    "compact": "compaction",
    "dead_letters": "bad_records",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pykafka_broker.spark.installation import pyspark_version

    pyspark_version()  # says how to install pyspark; an import would only fail
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
