"""Spark's kafka format: the columns of a record, by the names and types of Spark's own source. Pure.

A DataFrame of this format comes from `format("kafka")` (with the option `includeHeaders`), from
`format("kafka_log")`, and from an archive. An archive adds the day on which the record arrived, and the id of
the topic, since a topic that is deleted and created anew has the same name and the same offsets.

    key             binary; null where a record has none
    value           binary; null where a record has none
    topic           string
    partition       int
    offset          bigint
    timestamp       timestamp, of whole milliseconds; 23:59:59.999 of 1969-12-31 UTC is Kafka's -1
    timestampType   int: 0 CreateTime, 1 LogAppendTime
    headers         array of struct<key: string, value: binary>, in their order; null where a record has none

    topic_id        string, as Kafka's tools print it: 22 characters; null where it is not known
    day             date: the UTC day on which the archive's batch was planned, not one of the record's own

The day is not that of the timestamp, because producers set timestamps as they like: each batch belongs to one
day, so that yesterday's files stay as they are, and one wrong clock does not scatter a topic.
"""

from __future__ import annotations

KEY = "key"
VALUE = "value"
TOPIC = "topic"
PARTITION = "partition"
OFFSET = "offset"
TIMESTAMP = "timestamp"
TIMESTAMP_TYPE = "timestampType"
HEADERS = "headers"
TOPIC_ID = "topic_id"
DAY = "day"

#: Column -> type, in the order of Spark's source.
KAFKA_TYPES = {
    KEY: "BINARY",
    VALUE: "BINARY",
    TOPIC: "STRING",
    PARTITION: "INT",
    OFFSET: "BIGINT",
    TIMESTAMP: "TIMESTAMP",
    TIMESTAMP_TYPE: "INT",
    HEADERS: "ARRAY<STRUCT<key: STRING, value: BINARY>>",
}
#: The columns that an archive adds.
ARCHIVE_TYPES = {TOPIC_ID: "STRING", DAY: "DATE"}

KAFKA_COLUMNS = tuple(KAFKA_TYPES)
ARCHIVE_COLUMNS = (*KAFKA_COLUMNS, *ARCHIVE_TYPES)

#: The values of `timestampType`.
CREATE_TIME, LOG_APPEND_TIME = 0, 1


def ddl(types: dict[str, str]) -> str:
    """Columns as Spark's DDL: `key BINARY, value BINARY, ...`."""
    return ", ".join(f"{column} {type_}" for column, type_ in types.items())


KAFKA_DDL = ddl(KAFKA_TYPES)
ARCHIVE_DDL = ddl(KAFKA_TYPES | ARCHIVE_TYPES)
