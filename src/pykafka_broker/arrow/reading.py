"""`read_topic` and `read_folder`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import MappingProxyType

import pyarrow as pa

from pykafka_broker.arrow.core.assembly import Assembly
from pykafka_broker.arrow.core.columns import KAFKA_COLUMNS, schema_of
from pykafka_broker.arrow.core.limits import Limits
from pykafka_broker.arrow.core.stored_batches import StoredBatch
from pykafka_broker.arrow.core.values import Format, opened
from pykafka_broker.arrow.ranges import Ranges
from pykafka_broker.arrow.sources import (
    EVERYTHING,
    LIMITS,
    IsolationLevel,
    Reading,
    client_of,
    folder_source,
    folders_of,
    isolation_number,
    topic_source,
)

AS_BYTES: Mapping[str, Format] = MappingProxyType({})


def read_topic(
    topic: str,
    bootstrap_servers: str | Mapping[str, str],
    *,
    columns: Iterable[str] = KAFKA_COLUMNS,
    ranges: Ranges = EVERYTHING,
    isolation_level: IsolationLevel = "read_uncommitted",
    follow: bool = False,
    limits: Limits = LIMITS,
    decode: Mapping[str, Format] = AS_BYTES,
) -> pa.RecordBatchReader:
    """The records of a topic of any Kafka cluster.

    Leaders and offsets are looked up at once; records are fetched while the reader is read. Every partition's
    records come in their order; RecordBatches may hold those of several partitions. With `follow` the reader
    waits for new records, and ends only where `ranges` says; `close` ends it.

    A cluster with TLS or users takes the properties of Kafka's clients in the place of the addresses:
    `bootstrap.servers`, `security.protocol`, `sasl.*` and `ssl.*`.

    Raises:
        ValueError: there is no such column, place, isolation level or security.
        KafkaError: there is no such topic, partition or offset; while reading: a batch is damaged, or its
            offset was deleted before it was read.
        ConnectionError: no broker answers, or one is away for longer than `limits.timeout_s`.
    """
    schema = schema_of(columns)
    isolation_number(isolation_level)
    assembly = Assembly(topic, schema, limits, opened(decode, topic, schema))
    client = client_of(bootstrap_servers, limits.timeout_s)
    try:
        source = topic_source(client, topic, Reading(ranges, isolation_level, limits, follow))
    except BaseException:
        client.__exit__(None, None, None)
        raise

    def batches() -> Iterator[Sequence[StoredBatch]]:
        with client:
            yield []
            yield from source.batches

    stored = batches()
    # Begun here, so that the connections are closed even if nothing is ever read.
    next(stored)
    return _reader(assembly, stored)


def read_folder(
    path: str | PathLike[str],
    topic: str | None = None,
    *,
    columns: Iterable[str] = KAFKA_COLUMNS,
    ranges: Ranges = EVERYTHING,
    isolation_level: IsolationLevel = "read_uncommitted",
    follow: bool = False,
    limits: Limits = LIMITS,
    decode: Mapping[str, Format] = AS_BYTES,
) -> pa.RecordBatchReader:
    """The records in the folder of a partition, such as `data/orders-0`; or, with `topic`, of all its
    partitions in a log directory. No broker is needed, and one may be writing: Apache Kafka or this one.

    Partitions come one after the other, with `follow` in turns. Everything else is as in `read_topic`, but
    all records in the folder are read, also those that a replica's cluster has not committed yet.

    Raises:
        ValueError: there is no such folder, column, place or isolation level.
        KafkaError: there is no such topic, partition or offset; or the log is damaged, also while reading.
    """
    schema = schema_of(columns)
    isolation_number(isolation_level)
    name, folders = folders_of(path, topic)
    assembly = Assembly(name, schema, limits, opened(decode, name, schema))
    source = folder_source(folders, name, Reading(ranges, isolation_level, limits, follow))
    return _reader(assembly, source.batches)


def _reader(assembly: Assembly, stored: Iterable[Sequence[StoredBatch]]) -> pa.RecordBatchReader:
    batches = (batch for some in stored for batch in assembly.record_batches(some))
    return pa.RecordBatchReader.from_batches(assembly.result_schema, batches)
