"""The log start offset of a log that is being opened, where the checkpoint does not fit the log.

After a clean stop a log start offset past the end is ignored. After a crash it may be right, because the end
may be lost. Then the records that were found cannot be served: they are kept in a folder that ends in
`-stray`, and the log starts over, empty.
"""

from __future__ import annotations

import logging

from pykafka_broker.log.disk.checkpoints import encode_partition_metadata
from pykafka_broker.log.disk.files import directory_name, join, random_id
from pykafka_broker.log.disk.names import (
    PARTITION_METADATA,
    SEGMENT_SUFFIXES,
    offset_file,
    set_aside_folder,
)
from pykafka_broker.log.recovery.found_log import FoundLog
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("org.apache.kafka.storage.internals.log.LogLoader")


class Ends(NamedTuple):
    """The start and end offsets of a log."""

    log_start_offset: int
    log_end_offset: int


def settle_ends(found: FoundLog, checkpointed_start: int, log_end_offset: int) -> Ends:
    """The offsets to go on with; the segments of `found` are in line with them."""
    first_offset = found.segments[0].base_offset
    log_start_offset = max(checkpointed_start, first_offset)
    if found.is_clean and log_start_offset > log_end_offset:
        logger.warning(
            "%s: the checkpointed log start offset %d is past the log's end %d: ignored, it is now %d",
            found.name,
            log_start_offset,
            log_end_offset,
            first_offset,
        )
        log_start_offset = first_offset
    if log_start_offset > log_end_offset:
        _start_over(found, log_start_offset)
        log_end_offset = log_start_offset
    return Ends(log_start_offset, log_end_offset)


def _start_over(found: FoundLog, log_start_offset: int) -> None:
    """Begin at the log start offset, which is past every record."""
    logger.warning("%s: nothing is left at or past the log start offset %d", found.name, log_start_offset)
    if any(segment.size for segment in found.segments):
        _set_segments_aside(found)
    for segment in found.segments:
        segment.files.remove_all()
    found.begin_at(log_start_offset)


def _set_segments_aside(found: FoundLog) -> None:
    """Keep the segments, which are not served any more, in a folder: the log start offset may be wrong."""
    files, (directory, topic, partition, topic_id) = found.files, found.identity
    log_dir = directory_name(directory)
    aside = join(log_dir, set_aside_folder(topic, partition, random_id(), "stray"))
    files.make_directory(aside)
    if any(topic_id):  # Apache Kafka refuses a directory with a partition.metadata without a topic id
        files.write_file(join(aside, PARTITION_METADATA), encode_partition_metadata(topic_id), sync=True)
    files.sync_directory(log_dir)
    names = {entry.name for entry in files.entries(directory)}
    for segment in found.segments:
        for suffix in SEGMENT_SUFFIXES:
            name = offset_file(segment.base_offset, suffix)
            if name in names:
                files.rename(join(directory, name), join(aside, name))
    files.sync_directory(aside)
    logger.warning("%s: what the log held before is in %s", found.name, aside)
