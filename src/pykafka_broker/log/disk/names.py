"""File and folder names of a log directory, as Apache Kafka writes them. Pure."""

from __future__ import annotations

import re

# The name of its folder, too: importers of this module find it here.
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC as METADATA_TOPIC
from pykafka_broker.system.named_tuple import NamedTuple

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
#: Ours: the older batches of the snapshot of the same name (producer_snapshots.py). Kafka ignores files it
#: does not know.
WINDOW_SUFFIX = ".window"
#: Ours: ranges of a segment that are damaged and must not be served (segment/damage.py).
DAMAGED_SUFFIX = ".damaged"
DELETED_SUFFIX = ".deleted"
#: Ours: compaction has removed no record from the offset in the name on (density.py).
DENSE_SUFFIX = ".dense" + DELETED_SUFFIX
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
TEMPORARY_SUFFIX = ".tmp"

#: The files of one segment, removed together.
SEGMENT_SUFFIXES = (
    LOG_SUFFIX,
    INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    WINDOW_SUFFIX,
    DAMAGED_SUFFIX,
)

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

META_PROPERTIES = "meta.properties"
#: The first records of the metadata log (raft/snapshots.py).
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
#: The ending of the four checkpoints that have an entry for each log of a directory.
OFFSETS_SUFFIX = "-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"

#: Folders in a log directory that are not of partitions: Kafka's cache of remote indexes, and the folder that
#: file systems have at their root.
OTHER_FOLDERS = frozenset({"remote-log-index-cache", "lost+found"})

_FILE = re.compile(r"(\d{20})(\.[a-z.]+)")
_FUTURE_OR_GONE = re.compile(r"(\S+)-(\d+)\.([0-9a-f]{32})-(delete|future|stray)")
_PARTITION = re.compile(r"(\S+)-(\d+)")
#: Longest file name the usual file systems take; a deleted folder's topic name is cut so that the rest fits.
_MAX_NAME = 255


def offset_file(offset: int, suffix: str) -> str:
    """`00000000000000000042.log`"""
    return f"{offset:020d}{suffix}"


def parse_offset_file(name: str) -> tuple[int, str] | None:
    """(offset, suffix) of a file named by an offset."""
    match = _FILE.fullmatch(name)
    return (int(match[1]), match[2]) if match else None


class FolderName(NamedTuple):
    """A partition's folder; `state` is "" in service, else "delete", "future" or "stray"."""

    topic: str
    partition: int
    state: str


def partition_folder(topic: str, partition: int) -> str:
    """`orders-3`"""
    return f"{topic}-{partition}"


def set_aside_folder(topic: str, partition: int, unique_hex: str, state: str) -> str:
    """`orders-3.0123456789abcdef0123456789abcdef-delete`: out of service, to be removed or kept as a
    stray.
    """
    rest = f"-{partition}.{unique_hex}-{state}"
    return topic[: _MAX_NAME - len(rest)] + rest


def future_folder(topic: str, partition: int, unique_hex: str) -> str:
    """`orders-3.0123456789abcdef0123456789abcdef-future`: a log on its way into this directory. The topic's
    name is not cut, because the next start reads it from the folder's name.

    Raises:
        ValueError: the name is longer than file systems allow.
    """
    name = f"{topic}-{partition}.{unique_hex}-future"
    if len(name) > _MAX_NAME:
        raise ValueError("The topic name is too long.")
    return name


def parse_partition_folder(name: str) -> FolderName | None:
    """Topic and partition of a folder, None if it is not a partition's."""
    if match := _FUTURE_OR_GONE.fullmatch(name):
        return FolderName(match[1], int(match[2]), match[4])
    if (match := _PARTITION.fullmatch(name)) and not name.endswith(("-delete", "-future", "-stray")):
        return FolderName(match[1], int(match[2]), "")
    return None
