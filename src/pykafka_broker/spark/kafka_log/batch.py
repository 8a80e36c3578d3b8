"""The read of a batch query: the folders and offsets asked for, as they are when it is planned."""

from __future__ import annotations

from pykafka_broker.arrow.core.stored_batches import OffsetRange
from pykafka_broker.arrow.folder import look_up
from pykafka_broker.arrow.partition_folder import PartitionFolder
from pykafka_broker.log.disk.files import FileSystem
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.kafka_log.filters import Narrowing
from pykafka_broker.spark.kafka_log.folders import find_folders, insist_on_chosen
from pykafka_broker.spark.kafka_log.losses import report_loss
from pykafka_broker.spark.kafka_log.options import EARLIEST, EVERYTHING_UP_TO, LATEST, LogOptions, Places
from pykafka_broker.spark.kafka_log.planning import (
    Split,
    end_of,
    insist_on_partitions,
    offset_at,
    splits_of,
)

NOTHING_LEFT_OUT = Narrowing()


def plan_batch(
    files: FileSystem, options: LogOptions, narrowing: Narrowing = NOTHING_LEFT_OUT
) -> list[Split]:
    """The splits of a batch.

    Args:
        files: The file system of the driver.
        options: What is asked for.
        narrowing: What the filters of the query leave of it.

    Raises:
        SparkError: a topic, a partition, an offset or a time is not there.
        KafkaError: a log is damaged.
    """
    start = EVERYTHING_UP_TO[EARLIEST] if options.start is None else options.start
    if start == EVERYTHING_UP_TO[LATEST]:
        raise SparkError("A batch cannot start at latest: there is nothing behind it.")
    found = find_folders(files, options)
    insist_on_chosen(options, found)
    insist_on_partitions(start, found, "The start")
    insist_on_partitions(options.end, found, "The end")
    ranges = {}
    for name, folder in found.items():
        if not narrowing.has_partition(name):
            continue
        wanted = narrowing.within(_range(name, folder, start, options))
        if wanted.start < wanted.end and narrowing.least_ms is not None:
            first = look_up(folder, narrowing.least_ms)
            wanted = OffsetRange(max(wanted.start, first) if first >= 0 else wanted.end, wanted.end)
        if wanted.start < wanted.end:
            ranges[name] = wanted
    return splits_of(ranges, found, options)


def _range(name: TopicPartition, folder: PartitionFolder, start: Places, options: LogOptions) -> OffsetRange:
    low, high = folder.start_offset(), end_of(folder, options)
    begin = offset_at(name, folder, high, start, none_is_end=options.may_start_at_end)
    end = offset_at(name, folder, high, options.end, none_is_end=True)
    if begin > end and begin != low:
        raise SparkError(f"{name} would be read from offset {begin} to {end}, which is before it.")
    for offset in (begin, end):
        if not low <= offset <= max(low, high):
            what = f"{name} has no offset {offset}: it has those from {low} up to {high}."
            report_loss(what, is_error=options.fail_on_data_loss)
    return OffsetRange(max(begin, low), min(end, high))
