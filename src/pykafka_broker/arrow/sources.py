"""The wanted batches of a topic, from a cluster or from folders: what all that reads records begins with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from typing import Literal

from pykafka_broker.arrow.core.fetched import READ_COMMITTED, READ_UNCOMMITTED
from pykafka_broker.arrow.core.limits import Limits
from pykafka_broker.arrow.core.stored_batches import OffsetRange, StoredBatch
from pykafka_broker.arrow.folder import FolderReader, followed, look_up
from pykafka_broker.arrow.partition_folder import PartitionFolder, open_folders
from pykafka_broker.arrow.ranges import Ranges, chosen_partitions, plan
from pykafka_broker.arrow.topic import TopicReader
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import CLIENT
from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.system.named_tuple import NamedTuple

IsolationLevel = Literal["read_uncommitted", "read_committed"]
ISOLATION_LEVELS = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}

EVERYTHING = Ranges()
LIMITS = Limits()


class Source(NamedTuple):
    """The wanted offsets of a topic's partitions, and their batches, which are read as they are taken."""

    topic: str
    wanted: Mapping[int, OffsetRange]
    batches: Iterable[Sequence[StoredBatch]]


class Reading(NamedTuple):
    """Which records are read, and how."""

    ranges: Ranges = EVERYTHING
    isolation_level: IsolationLevel = "read_uncommitted"
    limits: Limits = LIMITS
    follow: bool = False


def client_of(cluster: str | Mapping[str, str], timeout_s: float) -> Client:
    """A client of the cluster at these addresses, or with these properties of Kafka's clients.

    Raises:
        ValueError: there are no addresses, or no such security.
    """
    if isinstance(cluster, str):
        return Client(cluster, timeout_s, identity=CLIENT)
    from pykafka_broker.client.security import security_of

    if "bootstrap.servers" not in cluster:
        raise ValueError("bootstrap.servers is missing among the properties of the cluster")
    identity = CLIENT._replace(security=security_of(cluster))
    return Client(cluster["bootstrap.servers"], timeout_s, identity=identity)


def topic_source(client: Client, topic: str, reading: Reading) -> Source:
    """The batches of a topic; leaders and offsets are looked up at once.

    Raises:
        KafkaError, ConnectionError, ValueError: as `read_topic`.
    """
    ranges, isolation_level, limits, follow = reading
    reader = TopicReader(client, topic, isolation_number(isolation_level), limits)
    partitions = chosen_partitions(topic, ranges, reader.partitions)
    wanted = plan(topic, ranges, partitions, reader.look_up, follow=follow)
    return Source(topic, wanted, reader.batches(wanted, follow=follow))


def folder_source(folders: Mapping[int, PartitionFolder], topic: str, reading: Reading) -> Source:
    """The batches in the folders of a topic's partitions.

    Raises:
        KafkaError, ValueError: as `read_folder`.
    """
    ranges, isolation_level, limits, follow = reading
    level = isolation_number(isolation_level)
    partitions = chosen_partitions(topic, ranges, folders)

    def find(times: Mapping[int, int]) -> Mapping[int, int]:
        return {partition: look_up(folders[partition], time) for partition, time in times.items()}

    wanted = plan(topic, ranges, partitions, find, follow=follow)
    readers = [FolderReader(folders[p], wanted[p], level, limits) for p in partitions]
    stored = followed(readers, limits) if follow else (each for one in readers for each in one.available())
    return Source(topic, wanted, stored)


def folders_of(path: str | PathLike[str], topic: str | None) -> tuple[str, dict[int, PartitionFolder]]:
    """The topic, and its folders by partition: as `read_folder` takes them.

    Raises:
        ValueError: there is no such folder.
        KafkaError: there is no such topic.
    """
    return open_folders(OsFileSystem(), fspath(path), topic)


def isolation_number(level: str) -> int:
    """The number of an isolation level in requests.

    Raises:
        ValueError: there is no such level.
    """
    if level not in ISOLATION_LEVELS:
        raise ValueError(f"{level!r} is neither read_uncommitted nor read_committed")
    return ISOLATION_LEVELS[level]
