"""Offsets for places and times, and ranges of offsets divided into splits, one for each task."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from pykafka_broker.arrow.core.fetched import READ_COMMITTED, READ_UNCOMMITTED
from pykafka_broker.arrow.core.stored_batches import OffsetRange
from pykafka_broker.arrow.folder import GrowingEnd, look_up
from pykafka_broker.arrow.partition_folder import PartitionFolder
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.kafka_log.folders import Folders
from pykafka_broker.spark.kafka_log.options import EARLIEST, LATEST, LogOptions, Places
from pykafka_broker.system.named_tuple import NamedTuple

#: An index has only some batches: slightly larger parts leave no small rest at the end.
_SLACK = 1.02


class Split(NamedTuple):
    """The offsets of one partition that one task reads."""

    path: str
    name: TopicPartition
    wanted: OffsetRange


def isolation_level(options: LogOptions) -> int:
    """The isolation level, as the readers of folders take it."""
    return READ_COMMITTED if options.is_committed_only else READ_UNCOMMITTED


def end_of(folder: PartitionFolder, options: LogOptions) -> int:
    """The end offset of the records that may be read now.

    Raises:
        KafkaError: the log is damaged.
    """
    return GrowingEnd(folder, isolation_level(options)).now()


def insist_on_partitions(places: Places, folders: Folders, option: str) -> None:
    """
    Raises:
        SparkError: places by partition do not name the partitions that are read.
    """
    if places.everywhere is not None:
        return
    for name in places.by_partition:
        if name not in folders:
            raise SparkError(f"{option} names {name}, which is not read.")
    for name in folders:
        if name not in places.by_partition:
            raise SparkError(
                f"{option} does not name {name}: name each partition. Among offsets, -2 stands for the "
                "beginning and -1 for the end."
            )


def offset_at(
    name: TopicPartition, folder: PartitionFolder, end: int, places: Places, *, none_is_end: bool
) -> int:
    """The offset of a partition at its place.

    Args:
        name: The partition.
        folder: Its folder.
        end: Where its records end.
        places: The places of all partitions.
        none_is_end: Whether a time after the last record stands for the end.

    Raises:
        SparkError: there is no record at that time or later.
        KafkaError: the log is damaged.
    """
    number = places.by_partition[name] if places.everywhere is None else places.everywhere
    if not places.is_time:
        if number == EARLIEST:
            return folder.start_offset()
        return end if number == LATEST else number
    found = look_up(folder, number)
    if 0 <= found < end:
        return found
    if not none_is_end:
        raise SparkError(
            f"{name} has no record at {number} or later; with startingOffsetsByTimestampStrategy=latest it "
            "would start at its end."
        )
    return end


def splits_of(
    ranges: Mapping[TopicPartition, OffsetRange], folders: Folders, options: LogOptions
) -> list[Split]:
    """The ranges in parts of about `split_bytes`, or smaller ones until there are `least_splits`."""
    sizes = {name: folders[name].bytes_of(wanted) for name, wanted in ranges.items()}
    target = max(min(options.split_bytes, sum(sizes.values()) / options.least_splits), 1)
    splits = []
    for name, wanted in ranges.items():
        parts = max(ceil(sizes[name] / target), 1)
        size = max(int(sizes[name] * _SLACK / parts), 1)
        divided = folders[name].divided(wanted, size) if parts > 1 else [wanted]
        splits += [Split(folders[name].path, name, part) for part in divided]
    return splits
