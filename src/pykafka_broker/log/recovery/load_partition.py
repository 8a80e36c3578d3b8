"""Opening a partition's folder: after a clean stop by a glance at the end, after a crash by a scan of the
unflushed segments.

`found_log.py` reads the folder, `clean_end.py` has the glance, `crash_scan.py` the scan, and `log_start.py`
judges the log start offset. The possible findings, and the response to each:

| found | done |
|---|---|
| clean shutdown marker | indexes are trusted; only the last segment's end is looked at |
| no marker | every segment at or past the recovery point is scanned batch by batch, its indexes are rebuilt |
| torn tail | cut off, one log line with the number of bytes |
| the same below the recovery point | was on disk, so it is damage |
| damage with good batches behind it | fenced (CORRUPT_MESSAGE), remembered in `.damaged`, one log line |
| index missing or not an index | rebuilt from the log when first needed |
| a transaction index that makes no sense | rebuilt by a scan from its segment on |
| no usable producer snapshot | producer state rebuilt from an older one, or from the log |
| leader-epoch-checkpoint missing or garbage | rebuilt from the batch headers |
| a log start offset past the end | ignored after a clean stop, else the folder becomes `-stray` |
| a recovery point past the end of a torn last batch | believed up to its end, or the high watermark |
| `.deleted`, `.cleaned`, `.tmp` | removed: leftovers of a deletion, compaction or replacement cut short |
| `.swap` | a finished compaction: put in place of the segments it replaces (`segment/swap.py`) |

Blocking; worker-safe, since no other thread knows the log yet.
"""

from __future__ import annotations

import logging

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.checkpoints import MalformedFile, decode_partition_metadata
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import FileSystem, directory_name, join
from pykafka_broker.log.disk.names import PARTITION_METADATA
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producer_snapshots import ProducerFiles
from pykafka_broker.log.partition.state import LogIdentity, OpenedLog
from pykafka_broker.log.recovery.clean_end import clean_end
from pykafka_broker.log.recovery.crash_scan import scan_log
from pykafka_broker.log.recovery.found_log import FoundLog
from pykafka_broker.log.recovery.log_start import settle_ends
from pykafka_broker.log.recovery.offset_checkpoints import NOTHING_CHECKPOINTED, CheckpointedOffsets

logger = logging.getLogger("org.apache.kafka.storage.internals.log.LogLoader")


def read_topic_id(files: FileSystem, directory: str) -> bytes | None:
    """The topic id in a folder's partition.metadata; None if the file is missing or not readable as one."""
    try:
        return decode_partition_metadata(files.read_file(join(directory, PARTITION_METADATA)))
    except (FileNotFoundError, MalformedFile):
        return None


def open_log(
    environment: Environment,
    identity: LogIdentity,
    config: LogConfig,
    checkpointed: CheckpointedOffsets = NOTHING_CHECKPOINTED,
    *,
    clean: bool,
    now_ms: int = 0,
) -> PartitionLog:
    """The partition in an existing folder; `clean` after a clean stop."""
    found = FoundLog(
        environment.files,
        identity,
        config,
        is_clean=clean,
        gaps_are_allowed=config.is_compacted or checkpointed.cleaned_offset is not None,
    )
    found.read_folder(checkpointed.log_start_offset)
    found.read_epochs()
    return PartitionLog(environment, identity, config, _opened(found, checkpointed, now_ms))


def _opened(found: FoundLog, checkpointed: CheckpointedOffsets, now_ms: int) -> OpenedLog:
    """The state of the log, after all repairs."""
    log_end_offset, first_scanned = _find_end(found, checkpointed)
    if not found.epochs_are_known:
        found.rebuild_epochs()
    log_start_offset, log_end_offset = settle_ends(found, checkpointed.log_start_offset, log_end_offset)
    found.finish_epochs(log_start_offset, log_end_offset)
    rebuilt = ProducerFiles(found.files, found.identity.directory, found.snapshot_offsets).rebuild(
        found.segments, log_start_offset, log_end_offset, trusted_end=first_scanned
    )
    rebuilt.producers.note_idle(now_ms)
    for segment in found.segments:
        segment.release_file()
    active = found.segments[-1]
    if active.size:
        active.first_append_ms = now_ms
    active.indexes.begin_tail(log_end_offset)
    recovery_point = min(checkpointed.recovery_point or 0, log_end_offset)
    if found.scan_from is not None:  # what was rebuilt there is not durable
        recovery_point = min(recovery_point, found.scan_from)
    cleaned_offset = checkpointed.cleaned_offset
    if cleaned_offset is not None:  # the crash may have come before the checkpoint of a truncation
        cleaned_offset = min(cleaned_offset, log_end_offset)
    directory = found.identity.directory
    return OpenedLog(
        segments=tuple(found.segments),
        log_start_offset=log_start_offset,
        log_end_offset=log_end_offset,
        high_watermark=checkpointed.high_watermark,
        recovery_point=log_end_offset if found.is_clean else recovery_point,
        epochs=found.epochs,
        producers=rebuilt.producers,
        snapshot_offset=rebuilt.snapshot_offset,
        cleaned_offset=cleaned_offset,
        dense_from=found.dense_from,
        # The process before this one may have been killed when it had made or renamed files.
        unsynced=frozenset() if found.is_clean else frozenset({directory, directory_name(directory)}),
    )


def _find_end(found: FoundLog, checkpointed: CheckpointedOffsets) -> tuple[int, int | None]:
    """The log end offset, and the base offset of the first segment that had to be scanned, if any."""
    synced_end = scan_from = checkpointed.recovery_point or 0
    if found.is_clean:
        log_end_offset = clean_end(found, checkpointed.recovery_point)
        if log_end_offset is not None:
            return log_end_offset, None
        logger.warning("%s: not as a clean stop leaves it, so scanned", found.name)
        found.is_clean = False
        scan_from = found.segments[-1].base_offset
    if found.scan_from is not None:
        scan_from = min(scan_from, found.scan_from)
    return scan_log(found, scan_from, synced_end=synced_end, high_watermark=checkpointed.high_watermark)
