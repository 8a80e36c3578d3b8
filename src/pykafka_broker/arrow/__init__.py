"""Topics and log folders as Arrow RecordBatches: for pyarrow, pandas, DuckDB, Polars. No JVM.

    from pykafka_broker.arrow import Ranges, read_folder, read_topic

    reader = read_topic("orders", "127.0.0.1:9092")  # a pyarrow.RecordBatchReader, filled as it is read
    duckdb.sql("select partition, count(*) from reader group by all")
    frame = read_folder("data/orders-0", columns=["offset", "value"]).read_pandas()

It works against any Kafka cluster, through `pykafka_broker.client`, and on the folders of partitions that
Apache Kafka or this broker writes. `core/columns.py` has the columns. It needs the extra `arrow`, with
pyarrow and numpy; Avro and Protobuf need a package each. Nothing is imported before it is used.

    reading.py            read_topic, read_folder
    profiling.py          profile_topic, profile_folder: what is in a topic
    sources.py            the wanted batches of either
    ranges.py             which records: offsets, times, partitions
    core/                 from bytes to columns (pure)

  formats of keys and values

    json_values.py        Json, parsed by Arrow; json_schema.py: JSON Schema -> Arrow type
    avro_values.py        Avro, RegistryAvro; registry.py: HTTP
    schema_file.py        a JSON Schema or an Avro schema in a file
    protobuf_values.py    Protobuf

  where batches are from

    topic.py              shell: brokers, leaders, one answer in use and one on its way
    segment_file.py       a segment and its indexes
    partition_folder.py   a folder, and a cursor over its segments
    folder.py             shell: the batches of a folder, also while a broker writes

Left out: record formats before v2, as everywhere in this project; partitions that a topic is given while a
reader follows it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pykafka_broker.arrow.avro_values import Avro, RegistryAvro
    from pykafka_broker.arrow.core.columns import ALL_COLUMNS, KAFKA_COLUMNS
    from pykafka_broker.arrow.core.limits import Limits
    from pykafka_broker.arrow.core.profile.results import TopicProfile
    from pykafka_broker.arrow.json_values import Json
    from pykafka_broker.arrow.profiling import profile_folder, profile_topic
    from pykafka_broker.arrow.protobuf_values import Protobuf
    from pykafka_broker.arrow.ranges import Ranges
    from pykafka_broker.arrow.reading import read_folder, read_topic

__all__ = [
    "ALL_COLUMNS",
    "KAFKA_COLUMNS",
    "Avro",
    "Json",
    "Limits",
    "Protobuf",
    "Ranges",
    "RegistryAvro",
    "TopicProfile",
    "profile_folder",
    "profile_topic",
    "read_folder",
    "read_topic",
]

_MODULES = {
    "ALL_COLUMNS": "core.columns",
    "Avro": "avro_values",
    "Json": "json_values",
    "KAFKA_COLUMNS": "core.columns",
    "Limits": "core.limits",
    "Protobuf": "protobuf_values",
    "Ranges": "ranges",
    "RegistryAvro": "avro_values",
    "TopicProfile": "core.profile.results",
    "profile_folder": "profiling",
    "profile_topic": "profiling",
    "read_folder": "reading",
    "read_topic": "reading",
}
_NEEDED = ("numpy", "pyarrow")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name not in _NEEDED:
            raise
        raise ImportError(
            f"pykafka_broker.arrow needs {' and '.join(_NEEDED)}: python3 -m pip install {' '.join(_NEEDED)}"
        ) from None


def __dir__() -> list[str]:
    return sorted(__all__)
