"""`read_topic` and `read_folder`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from types import MappingProxyType
from typing import Literal

import pyarrow as pa

from pykafka_broker.arrow.core.assembly import Assembly
from pykafka_broker.arrow.core.columns import KAFKA_COLUMNS, schema_of
from pykafka_broker.arrow.core.fetched import READ_COMMITTED, READ_UNCOMMITTED
from pykafka_broker.arrow.core.limits import Limits
from pykafka_broker.arrow.core.stored_batches import StoredBatch
from pykafka_broker.arrow.core.values import Format, opened
from pykafka_broker.arrow.folder import FolderReader, followed, look_up
from pykafka_broker.arrow.partition_folder import open_folders
from pykafka_broker.arrow.ranges import Ranges, chosen_partitions, plan
from pykafka_broker.arrow.topic import TopicReader
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import CLIENT, Identity
from pykafka_broker.log.disk.files import OsFileSystem

IsolationLevel = Literal["read_uncommitted", "read_committed"]
ISOLATION_LEVELS = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}

EVERYTHING = Ranges()
LIMITS = Limits()
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
    level = isolation_number(isolation_level)
    assembly = Assembly(topic, schema, limits, opened(decode, topic, schema))
    address, identity = _reached(bootstrap_servers)
    client = Client(address, limits.timeout_s, identity=identity)
    try:
        reader = TopicReader(client, topic, level, limits)
        partitions = chosen_partitions(topic, ranges, reader.partitions)
        planned = plan(topic, ranges, partitions, reader.look_up, follow=follow)
    except BaseException:
        client.__exit__(None, None, None)
        raise

    def batches() -> Iterator[list[StoredBatch]]:
        with client:
            yield []
            yield from reader.batches(planned, follow=follow)

    stored = batches()
    # Begun here, so that the connections are closed even if nothing is ever read.
    next(stored)
    return _reader(assembly, stored)


def _reached(cluster: str | Mapping[str, str]) -> tuple[str, Identity]:
    """The addresses of a cluster, and who asks it."""
    if isinstance(cluster, str):
        return cluster, CLIENT
    from pykafka_broker.client.security import security_of

    if "bootstrap.servers" not in cluster:
        raise ValueError("bootstrap.servers is missing among the properties of the cluster")
    return cluster["bootstrap.servers"], CLIENT._replace(security=security_of(cluster))


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
    level = isolation_number(isolation_level)
    name, folders = open_folders(OsFileSystem(), fspath(path), topic)
    assembly = Assembly(name, schema, limits, opened(decode, name, schema))
    partitions = chosen_partitions(name, ranges, folders)

    def find(times: Mapping[int, int]) -> Mapping[int, int]:
        return {partition: look_up(folders[partition], time) for partition, time in times.items()}

    planned = plan(name, ranges, partitions, find, follow=follow)
    readers = [FolderReader(folders[p], planned[p], level, limits) for p in partitions]
    stored = followed(readers, limits) if follow else (each for one in readers for each in one.available())
    return _reader(assembly, stored)


def _reader(assembly: Assembly, stored: Iterable[Sequence[StoredBatch]]) -> pa.RecordBatchReader:
    batches = (batch for some in stored for batch in assembly.record_batches(some))
    return pa.RecordBatchReader.from_batches(assembly.result_schema, batches)


def isolation_number(level: str) -> int:
    """The number of an isolation level in requests.

    Raises:
        ValueError: there is no such level.
    """
    if level not in ISOLATION_LEVELS:
        raise ValueError(f"{level!r} is neither read_uncommitted nor read_committed")
    return ISOLATION_LEVELS[level]
