"""Opening a partition's folder: after a clean stop by a glance at the end, after a crash by scanning what
is unflushed.

What is found, and what is done about it:

| found | done |
|---|---|
| clean shutdown marker | indexes are trusted; only the last segment's end is looked at |
| no marker | every segment at or past the recovery point is scanned batch by batch, its indexes are rebuilt |
| torn tail | cut off, one log line with the number of bytes |
| the same below the recovery point | was on disk, so it is damage |
| damage with good batches behind it | fenced (CORRUPT_MESSAGE), remembered in `.damaged`, one log line |
| index missing or not an index | rebuilt from the log when first needed |
| no usable producer snapshot | producer state rebuilt from an older one, or from the log |
| leader-epoch-checkpoint missing or garbage | rebuilt from the batch headers |
| a log start offset past the end | after a clean stop not believed, else what there is becomes `-stray` |
| a recovery point past what a torn last batch could hold | believed up to its end, or the high watermark |
| `.deleted`, `.cleaned`, `.tmp` | removed: leftovers of a deletion, compaction or replacement cut short |
| `.swap` | a finished compaction: put in place of what it replaces (`cleaner/swap.py`) |

Blocking; worker-safe, since nobody else knows the log yet.
"""

from __future__ import annotations

import logging

from pykafka_broker.log.config import LONG_MAX, LogConfig
from pykafka_broker.log.disk.checkpoints import (
    MalformedFile,
    decode_epochs,
    decode_partition_metadata,
    encode_epochs,
    encode_partition_metadata,
)
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import FileSystem, directory_name, join, random_id
from pykafka_broker.log.disk.names import (
    DAMAGED_SUFFIX,
    DENSE_SUFFIX,
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    PARTITION_METADATA,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_file,
    parse_offset_file,
    partition_folder,
    set_aside_folder,
)
from pykafka_broker.log.partition.density import noted_offset
from pykafka_broker.log.partition.leader_epochs import LeaderEpochs
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producer_snapshots import ProducerFiles
from pykafka_broker.log.partition.producers import ProducerStates
from pykafka_broker.log.segment import swap
from pykafka_broker.log.segment.batch_walk import Scan, walk
from pykafka_broker.log.segment.index import InvalidIndexError
from pykafka_broker.log.segment.scan import scan_segment, survey
from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.protocol.records.batch import HEADER, HEADER_BYTES, MAGIC, BatchHeader

logger = logging.getLogger(__name__)

_INDEX_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)


def create_log(
    environment: Environment,
    directory: str,
    topic: str,
    partition: int,
    topic_id: bytes,
    config: LogConfig,
    *,
    start_offset: int = 0,
) -> PartitionLog:
    """A new partition in a new folder; FileExistsError if a log is there already."""
    files = environment.files
    files.make_directory(directory)
    files.write_file(join(directory, PARTITION_METADATA), encode_partition_metadata(topic_id), sync=False)
    path = join(directory, offset_file(start_offset, ""))
    segment = Segment.create(files, path, start_offset, config.index_interval_bytes)
    if config.preallocate:
        segment.reserve(config.segment_bytes)
    segment.release_file()  # thousands of new partitions need no descriptor before their first record
    if config.is_compacted:
        files.write_file(join(directory, offset_file(start_offset, DENSE_SUFFIX)), b"", sync=False)
    files.write_file(join(directory, LEADER_EPOCH_CHECKPOINT), encode_epochs(()), sync=False)
    log = PartitionLog(
        environment,
        directory,
        topic,
        partition,
        topic_id,
        config,
        segments=(segment,),
        log_start_offset=start_offset,
        log_end_offset=start_offset,
        recovery_point=start_offset,
        high_watermark=start_offset,
        epochs=LeaderEpochs(),
        producers=ProducerStates(start_offset),
        snapshot_offset=-1,
        is_new=True,
    )
    log.density.noted = start_offset if config.is_compacted else None
    return log


def read_topic_id(files: FileSystem, directory: str) -> bytes | None:
    """The topic id in a folder's partition.metadata; None if the file is missing or not readable as one."""
    try:
        return decode_partition_metadata(files.read_file(join(directory, PARTITION_METADATA)))
    except (FileNotFoundError, MalformedFile):
        return None


def open_log(
    environment: Environment,
    directory: str,
    topic: str,
    partition: int,
    topic_id: bytes,
    config: LogConfig,
    *,
    clean: bool,
    recovery_point: int | None = None,
    log_start_offset: int = 0,
    high_watermark: int = 0,
    cleaned_offset: int | None = None,
    now_ms: int = 0,
) -> PartitionLog:
    """The partition in an existing folder. The offsets are what the checkpoints say, 0 (None) where they say
    nothing.
    """
    loading = _Loading(environment, directory, topic, partition, topic_id, config, clean, now_ms)
    loading.gaps_allowed = config.is_compacted or cleaned_offset is not None
    log = loading.load(recovery_point, log_start_offset, high_watermark)
    log.compaction.cleaned_offset = cleaned_offset
    log.density.noted = loading.noted
    return log


class _Loading:
    """One folder being opened."""

    def __init__(
        self,
        environment: Environment,
        directory: str,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        clean: bool,
        now_ms: int,
    ) -> None:
        self.environment = environment
        self.files = environment.files
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        self.clean = clean
        self.now_ms = now_ms
        self.segments: list[Segment] = []
        self.epochs = LeaderEpochs()
        self.epochs_known = False
        self.snapshots: list[int] = []
        #: Everything below was on stable storage.
        self.synced_end = 0
        #: Everything below was to be seen by consumers.
        self.committed_end = 0
        #: Compaction is, or was, at work here.
        self.gaps_allowed = False
        #: It has left out nothing from here on; None if that is not noted.
        self.noted: int | None = None
        #: Base offset of the first segment that had to be scanned.
        self.first_scanned: int | None = None

    def load(self, recovery_point: int | None, log_start_offset: int, high_watermark: int) -> PartitionLog:
        self.synced_end = recovery_point or 0
        self.committed_end = high_watermark
        self._list_files(self._finish_interrupted_work())
        if not self.segments:
            path = self._path(log_start_offset, "")
            self.segments = [
                Segment.create(self.files, path, log_start_offset, self.config.index_interval_bytes)
            ]
        self.epochs_known = self._load_epochs()
        if self.clean:
            log_end_offset = self._end_of_trusted_log(recovery_point)
        else:
            log_end_offset = self._recover(recovery_point or 0)
        if not self.epochs_known:
            self._rebuild_epochs()
        log_start_offset = max(log_start_offset, self.segments[0].base_offset)
        if self.clean and log_start_offset > log_end_offset:
            logger.warning(
                "%s: the checkpointed log start offset %d is past the log's end %d: not believed, it is %d",
                self._name,
                log_start_offset,
                log_end_offset,
                self.segments[0].base_offset,
            )
            log_start_offset = self.segments[0].base_offset
        if log_start_offset > log_end_offset:
            log_end_offset = self._start_over(log_start_offset)
        changed = self.epochs.truncate_from_end(log_end_offset)
        if self.epochs.truncate_from_start(log_start_offset) or changed or not self.epochs_known:
            path = join(self.directory, LEADER_EPOCH_CHECKPOINT)
            self.files.replace_file(path, encode_epochs(self.epochs.entries), sync=False)
        rebuilt = ProducerFiles(self.files, self.directory, self.snapshots).rebuild(
            self.segments, log_start_offset, log_end_offset, trusted_end=self.first_scanned
        )
        rebuilt.producers.note_idle(self.now_ms)
        for segment in self.segments:
            segment.release_file()
        active = self.segments[-1]
        if active.size:
            active.first_append_ms = self.now_ms
        active.indexes.begin_tail(log_end_offset)
        return PartitionLog(
            self.environment,
            self.directory,
            self.topic,
            self.partition,
            self.topic_id,
            self.config,
            segments=tuple(self.segments),
            log_start_offset=log_start_offset,
            log_end_offset=log_end_offset,
            recovery_point=log_end_offset if self.clean else min(recovery_point or 0, log_end_offset),
            high_watermark=high_watermark,
            epochs=self.epochs,
            producers=rebuilt.producers,
            snapshot_offset=rebuilt.snapshot_offset,
        )

    def _path(self, offset: int, suffix: str) -> str:
        return join(self.directory, offset_file(offset, suffix))

    @property
    def _name(self) -> str:
        return partition_folder(self.topic, self.partition)

    # --- what lies in the folder ------------------------------------------------------------------

    def _finish_interrupted_work(self) -> dict[str, int]:
        """Remove leftovers, put finished compactions in place; the files that remain, logs with their
        sizes.
        """
        entries = self.files.entries(self.directory, sizes_of=(LOG_SUFFIX, LOG_SUFFIX + SWAP_SUFFIX))
        sizes = {entry.name: entry.size for entry in entries}
        steps = swap.recovery(sizes, lambda name: self._end_of_swap(name, sizes[name]))
        for old, new in steps:
            path = join(self.directory, old)
            if new is None:
                self.files.remove(path)
                del sizes[old]
                continue
            logger.info("%s: finishing a compaction: %s becomes %s", self._name, old, new)
            self.files.rename(path, join(self.directory, new))
            self.clean = False
            sizes[new] = sizes.pop(old)
        if not self.clean and steps:
            self.files.sync_directory(self.directory)
        return sizes

    def _end_of_swap(self, name: str, size: int) -> int:
        """Where the offsets of a cleaned segment end."""
        parsed = parse_offset_file(name[: -len(SWAP_SUFFIX)])
        assert parsed is not None
        end_offset = parsed[0]
        file = self.files.open(join(self.directory, name), writable=False)
        for _, header in walk(file.pread, 0, size):
            end_offset = header.next_offset
        return end_offset

    def _list_files(self, sizes: dict[str, int]) -> None:
        self.noted = noted_offset(sizes)
        interval_bytes = self.config.index_interval_bytes
        for name in sorted(sizes):
            parsed = parse_offset_file(name)
            if parsed is None:
                continue
            offset, suffix = parsed
            stem = name[: -len(suffix)]
            if suffix == LOG_SUFFIX:
                path = join(self.directory, stem)
                segment = Segment(self.files, path, offset, sizes[name], interval_bytes)
                segment.trust.unverified_end = segment.size
                self.segments.append(segment)
                if stem + DAMAGED_SUFFIX in sizes:
                    self._load_damages(segment)
                if stem + TXN_INDEX_SUFFIX in sizes:
                    self._load_aborted(segment)
            elif suffix == SNAPSHOT_SUFFIX:
                self.snapshots.append(offset)
            elif suffix in _INDEX_SUFFIXES and stem + LOG_SUFFIX not in sizes:
                self.files.remove(join(self.directory, name))

    def _load_damages(self, segment: Segment) -> None:
        try:
            segment.trust.load_damages()
        except (ValueError, TypeError):
            logger.warning("%s: the damage list of segment %d is unreadable", self._name, segment.base_offset)
            self.clean = False

    def _load_aborted(self, segment: Segment) -> None:
        try:
            segment.aborted.load()
        except InvalidIndexError as error:
            logger.warning("%s: scanning the log, segment %d: %s", self._name, segment.base_offset, error)
            self.clean = False

    # --- leader epochs ----------------------------------------------------------------------------

    def _load_epochs(self) -> bool:
        try:
            entries = decode_epochs(self.files.read_file(join(self.directory, LEADER_EPOCH_CHECKPOINT)))
        except FileNotFoundError:
            return False
        except MalformedFile as error:
            logger.warning("%s: leader epochs are rebuilt from the log: %s", self._name, error)
            return False
        self.epochs = LeaderEpochs(entries)
        return bool(entries) or not any(segment.size for segment in self.segments)

    def _rebuild_epochs(self) -> None:
        for segment in self.segments:
            for _, header in segment.headers(0):
                self._note_epoch(header)

    # --- where the log ends -----------------------------------------------------------------------

    def _end_of_trusted_log(self, expected_end: int | None) -> int:
        """Look at what is behind the last index entry only; anything odd there, and it was no clean stop.

        A clean stop leaves its log end offset in the recovery point checkpoint: `expected_end`.
        """
        segment = self.segments[-1]
        last_entry = segment.indexes.last_offset_entry(segment)
        indexed_offset, start = last_entry or (-1, 0)
        segment.indexes.bytes_since_entry = segment.size - start
        end_offset = self._scanned_end(segment, start, indexed_offset, expected_end)
        if end_offset is None or expected_end not in (None, end_offset):
            logger.warning("%s: not as a clean stop leaves it, so scanned", self._name)
            self.clean = False
            return self._recover(segment.base_offset)
        segment.first_batch_timestamp()
        return end_offset

    def _scanned_end(
        self, segment: Segment, start: int, indexed_offset: int, expected_end: int | None
    ) -> int | None:
        """The log end offset if everything from position `start` on is sound."""
        start_offset = segment.base_offset
        if start:
            first = next(segment.headers(start), None)
            if first is None or first[1].last_offset != indexed_offset:
                return None
            start_offset = first[1].base_offset
        for damage in segment.trust.damages:
            if damage.end_position > start:
                start, start_offset = damage.end_position, damage.next_offset
        scan = Scan(
            segment.file.pread,
            segment.size,
            segment.base_offset,
            epoch_of=self.epochs.epoch_for_offset,
            gaps_allowed=self.gaps_allowed,
            following_offset=expected_end,
            start_position=start,
            start_offset=start_offset,
        )
        for position, header in scan:
            if position == 0:
                segment.indexes.first_timestamp = header.max_timestamp
        if scan.damages or scan.valid_end != segment.size:
            return None
        segment.trust.unverified_end = start
        return scan.next_offset

    def _recover(self, recovery_point: int) -> int:
        """Scan every segment that may hold unflushed batches; the log end offset."""
        recent = [
            segment
            for segment, following in zip(self.segments, [*self.segments[1:], None], strict=True)
            if following is None or following.base_offset > recovery_point
        ]
        found = survey(recent, self.epochs.epoch_for_offset)
        before = [segment for segment in self.segments[: -len(recent)] if segment.size]
        if found.contradicts_epochs and before:
            # The only batch of a new segment is not the only one of the log.
            again = survey([before[-1], *recent], self.epochs.epoch_for_offset)
            found = found._replace(contradicts_epochs=again.contradicts_epochs)
        self.gaps_allowed = self.gaps_allowed or found.has_gaps
        self._doubt_note(found.last_gap)
        self._drop_empty_end(recovery_point)
        end_offset = self.segments[-1].base_offset
        bases = [segment.base_offset for segment in self.segments]
        ends = [*bases[1:], None]
        unflushed = [
            (segment, end)
            for segment, end in zip(self.segments, ends, strict=True)
            if (end or LONG_MAX) > recovery_point
        ]
        if found.contradicts_epochs:
            logger.warning("%s: leader epochs are rebuilt: the checkpoint contradicts the log", self._name)
            self.epochs, self.epochs_known = LeaderEpochs(), False
        self._doubt_synced_end()
        epoch_of = LeaderEpochs(self.epochs.entries).epoch_for_offset
        self.first_scanned = unflushed[0][0].base_offset
        for segment, next_base_offset in unflushed:
            segment.aborted.reset()
            end_offset = scan_segment(
                segment,
                self._name,
                next_base_offset=next_base_offset,
                epoch_of=epoch_of,
                gaps_allowed=self.gaps_allowed,
                reaches_next=self._is_dense_below(next_base_offset),
                synced_end=self.synced_end,
                on_batch=self._note_epoch,
            )
        return end_offset

    def _is_dense_below(self, offset: int | None) -> bool:
        """Whether the last offsets below this one can be missing only because they were lost."""
        if offset is None or self.noted is None:
            return not self.gaps_allowed
        return offset > self.noted

    def _doubt_note(self, last_gap: int) -> None:
        """Do not believe that compaction has left out nothing where the log shows that it has."""
        if self.noted is not None and last_gap >= self.noted:
            logger.warning("%s: offset %d is missing: somebody else has compacted it", self._name, last_gap)
            self.files.remove(self._path(self.noted, DENSE_SUFFIX))
            self.noted, self.gaps_allowed = None, True

    def _doubt_synced_end(self) -> None:
        """Do not believe that more was on disk than what the log's last batch, cut off, would have held;
        unless the high watermark, which stands in another file, says so too.
        """
        segment = self.segments[-1]
        if self.synced_end <= max(segment.base_offset, self.committed_end):
            return
        read = segment.file.pread
        position, next_offset = 0, segment.base_offset
        for start, header in walk(read, 0, segment.size):
            position, next_offset = start + header.size_in_bytes, header.next_offset
        if position + HEADER_BYTES > segment.size:
            return
        torn = BatchHeader._make(HEADER.unpack(read(HEADER_BYTES, position)))
        is_cut_off = torn.magic == MAGIC and position + torn.size_in_bytes > segment.size
        if is_cut_off and torn.base_offset == next_offset <= torn.last_offset < self.synced_end - 1:
            logger.warning(
                "%s: the recovery point %d is past what the log can have held, so not believed: it is %d",
                self._name,
                self.synced_end,
                torn.next_offset,
            )
            self.synced_end = torn.next_offset

    def _drop_empty_end(self, recovery_point: int) -> None:
        """Let the log end in the last segment that holds anything.

        A power cut can leave the file of a new segment, and not all of the one before. Offsets would jump
        over what is lost, and the torn end before the empty file would count as damage inside the log.
        """
        while len(self.segments) > 1 and self.segments[-1].size == 0:
            base_offset = self.segments[-1].base_offset
            if base_offset <= recovery_point or not self._is_dense_below(base_offset):
                return
            self.segments.pop().files.remove_all()

    def _note_epoch(self, header: BatchHeader) -> None:
        if header.partition_leader_epoch > self.epochs.latest:
            self.epochs.assign(header.partition_leader_epoch, header.base_offset)

    def _start_over(self, log_start_offset: int) -> int:
        """The log start offset is past everything there is: what is left cannot be served; begin there."""
        logger.warning("%s: nothing is left at or past the log start offset %d", self._name, log_start_offset)
        if any(segment.size for segment in self.segments):
            self._set_segments_aside()
        for segment in self.segments:
            segment.files.remove_all()
        path = self._path(log_start_offset, "")
        self.segments = [Segment.create(self.files, path, log_start_offset, self.config.index_interval_bytes)]
        return log_start_offset

    def _set_segments_aside(self) -> None:
        """Keep what is not served any more in a folder of its own: the log start offset may be wrong."""
        log_dir = directory_name(self.directory)
        aside = join(log_dir, set_aside_folder(self.topic, self.partition, random_id(), "stray"))
        self.files.make_directory(aside)
        if any(self.topic_id):  # Apache Kafka takes no directory with a partition.metadata that names none
            metadata = encode_partition_metadata(self.topic_id)
            self.files.write_file(join(aside, PARTITION_METADATA), metadata, sync=True)
        self.files.sync_directory(log_dir)
        names = {entry.name for entry in self.files.entries(self.directory)}
        for segment in self.segments:
            for suffix in SEGMENT_SUFFIXES:
                name = offset_file(segment.base_offset, suffix)
                if name in names:
                    self.files.rename(join(self.directory, name), join(aside, name))
        self.files.sync_directory(aside)
        logger.warning("%s: what the log held before is in %s", self._name, aside)
