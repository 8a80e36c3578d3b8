"""The columns of a record, with their types: those of Spark's Kafka source, and three of Kafka's own.

    key, value      binary; null where a record has none
    topic           string
    partition       int32
    offset          int64
    timestamp       timestamp in milliseconds, UTC
    timestampType   int32: 0 CreateTime, 1 LogAppendTime
    headers         list of struct<key: string, value: binary>; null where a record has none

    producerId      int64, and producerEpoch int16: null where the producer was not idempotent
    leaderEpoch     int32: of the leader that appended the record; null where it is not known

The last three are read only if they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

HEADER = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
HEADERS = pa.list_(pa.field("element", HEADER, nullable=False))

#: The columns of Spark's Kafka source, in its order: these are read unless others are asked for.
KAFKA_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")

_FIELDS = {
    field.name: field
    for field in (
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("timestampType", pa.int32(), nullable=False),
        pa.field("headers", HEADERS),
        pa.field("producerId", pa.int64()),
        pa.field("producerEpoch", pa.int16()),
        pa.field("leaderEpoch", pa.int32()),
    )
}
ALL_COLUMNS = tuple(_FIELDS)


def schema_of(columns: Iterable[str]) -> pa.Schema:
    """The schema of these columns, in their order.

    Raises:
        ValueError: a column does not exist, or is named twice.
    """
    names = tuple(columns)
    for name in names:
        if name not in _FIELDS:
            raise ValueError(f"{name!r} is none of the columns {', '.join(ALL_COLUMNS)}")
        if names.count(name) > 1:
            raise ValueError(f"the column {name!r} is named twice")
    return pa.schema([_FIELDS[name] for name in names])
