"""The log of one partition: append, read, and the offsets everything else goes by.

    log start offset <= last stable offset <= high watermark <= log end offset

* log end offset: the next offset to assign; moves at append.
* high watermark: what all in-sync replicas have; moves when the caller says so (`advance_high_watermark`);
  consumers see nothing past it.
* last stable offset: the high watermark, or the start of the oldest transaction whose outcome is not below
  it; read-committed consumers see nothing past it.
* log start offset: what retention or DeleteRecords left.
* recovery point: everything below is on stable storage; after a crash only what is past it is scanned.

Everything runs on the event loop thread and never waits for a disk, except what is documented as
worker-safe: `flush`, the lookups by timestamp and epoch, and `ReadPlan.read`. Appends do not sync:
`AppendResult.flush_due` and `flush` let the caller hold an acknowledgement back until the bytes are
durable.

Figures in docstrings: a 2-core VM, CPython 3.11.

Left out on purpose: remote (tiered) storage, message formats before v2.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Literal, NamedTuple

from pykafka_broker.log.checkpoints import encode_epochs
from pykafka_broker.log.compaction import Compaction
from pykafka_broker.log.config import LONG_MAX, LogConfig
from pykafka_broker.log.environment import Environment
from pykafka_broker.log.epochs import EpochEntry, LeaderEpochs
from pykafka_broker.log.files import Buffer, join
from pykafka_broker.log.flushing import Flusher
from pykafka_broker.log.index import AbortedTxn
from pykafka_broker.log.names import (
    DELETED_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    offset_file,
    partition_folder,
)
from pykafka_broker.log.producer_files import ProducerFiles, Snapshot, snapshot_offsets
from pykafka_broker.log.producers import AppendOrigin, ProducerState, ProducerStates, transaction_marker
from pykafka_broker.log.reading import (
    FoundOffset,
    ReadPlan,
    ReadRequest,
    aborted_in,
    end_of_read,
    nothing_at,
    refuse_damaged,
    search_max_timestamp,
    search_timestamp,
    segment_number,
    storage_error,
    unresolved_read,
)
from pykafka_broker.log.recovery import MAX_RELATIVE_OFFSET
from pykafka_broker.log.retention import SegmentFacts, expired_segments
from pykafka_broker.log.scanning import scan_segment
from pykafka_broker.log.segment import Segment, segment_ends
from pykafka_broker.log.validation import prepare_client_batch
from pykafka_broker.log.verification import NO_GUARD
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import BatchHeader, check_batch, iter_batches
from pykafka_broker.protocol.records.crc import crc32c

__all__ = ["AppendOrigin", "AppendResult", "FoundOffset", "Limit", "PartitionLog", "ReadPlan"]

logger = logging.getLogger(__name__)

Limit = Literal["high_watermark", "last_stable", "log_end"]

_LEADER_EPOCH_OFFSET = 12


class AppendResult(NamedTuple):
    """Where a batch is in the log: now, or already if it was a duplicate."""

    first_offset: int
    last_offset: int
    #: -1 on a CreateTime topic, except for a duplicate: then the batch's greatest timestamp, as Kafka
    #: answers.
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool = False
    #: `flush.messages` asks for a flush before this append is acknowledged.
    flush_due: bool = False


class PartitionLog:
    """One partition's segments and state. Made by `loading.open_log`."""

    __slots__ = (
        "_active",
        "_config",
        "_end_at_last_release",
        "_environment",
        "_epochs_are_saved",
        "_flusher",
        "_latest_epoch",
        "_roll_ms",
        "_snapshot_offset",
        "closed",
        "compaction",
        "directory",
        "epochs",
        "high_watermark",
        "last_stable_offset",
        "log_end_offset",
        "log_start_offset",
        "name",
        "offline",
        "on_advance",
        "partition",
        "producers",
        "segments",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        environment: Environment,
        directory: str,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        *,
        segments: tuple[Segment, ...],
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        high_watermark: int,
        epochs: LeaderEpochs,
        producers: ProducerStates,
        snapshot_offset: int,
        is_new: bool = False,
    ) -> None:
        self._environment = environment
        self.directory = directory
        self.topic = topic
        self.partition = partition
        #: As Kafka prints it: "orders-3".
        self.name = partition_folder(topic, partition)
        self.topic_id = topic_id
        self.config = config
        #: Oldest first, never empty; replaced, not changed, so that a held tuple stays what it was.
        self.segments = segments
        self._active = segments[-1]
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.high_watermark = max(log_start_offset, min(high_watermark, log_end_offset))
        self.epochs = epochs
        self._latest_epoch = epochs.latest
        self._epochs_are_saved = True
        self._flusher = Flusher(environment, directory, recovery_point=recovery_point, is_new=is_new)
        for segment, end in zip(segments[:-1], segment_ends(segments, log_end_offset), strict=False):
            segment.is_flushed = end <= recovery_point
        self.producers = producers
        producers.on_high_watermark(self.high_watermark)
        self.last_stable_offset = self.high_watermark
        self._update_last_stable_offset()
        #: Called with the log, on the event loop, whenever high watermark, last stable or log start offset
        #: moved, or the log was closed.
        self.on_advance: list[Callable[[PartitionLog], None]] = []
        #: The error that took this log out of service; every append is refused with it.
        self.offline: OSError | None = None
        self.closed = False
        self._snapshot_offset = snapshot_offset
        self._end_at_last_release = -1
        #: What compaction does to this log.
        self.compaction = Compaction(self, environment, self._flusher)

    def __repr__(self) -> str:
        return f"PartitionLog({self.name}, [{self.log_start_offset}, {self.log_end_offset}))"

    @property
    def config(self) -> LogConfig:
        """The settings; may be replaced at any time."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        # What is still being written cannot be compacted: max.compaction.lag.ms bounds the age of a segment
        # too.
        lag_ms = config.max_compaction_lag_ms if config.is_compacted else LONG_MAX
        self._roll_ms = min(config.segment_ms, lag_ms)

    @property
    def latest_epoch(self) -> int:
        """The newest leader epoch in the log, -1 if none."""
        return self._latest_epoch

    @property
    def recovery_point(self) -> int:
        """Everything below is on stable storage."""
        return self._flusher.recovery_point

    @property
    def retired(self) -> bool:
        """The partition was deleted."""
        return self._flusher.retired

    @property
    def size_bytes(self) -> int:
        """Bytes of batches in all segments, as DescribeLogDirs reports them."""
        return sum([segment.size for segment in self.segments])

    @property
    def unflushed_messages(self) -> int:
        """Offsets that a power cut may still take."""
        return self.log_end_offset - self.recovery_point

    # --- append -----------------------------------------------------------------------------------

    def append(
        self,
        records: Buffer,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        produce_version: int = 13,
        internal_topic: bool = False,
        guard: int = NO_GUARD,
        transaction_version: int = 0,
    ) -> AppendResult:
        """Validate and write; the batch gets its offset and epoch in place if `records` is writable.

        A transaction's first batch needs the `guard` that `start_verification` gave; `transaction_version` is
        that of the transaction a marker ends.

        Above checksum and `pwrite`, a batch of one record takes 4.3 us (5.9 with a producer id), one of 16
        KiB 8 us (9); half of that is validation.

        Raises KafkaError with Kafka's code. On a disk error nothing of the batch stays:
        KAFKA_STORAGE_ERROR, and the next append finds the log as it was.
        """
        if origin is not AppendOrigin.CLIENT:
            return self._append_internal(records, leader_epoch, now_ms, origin, guard, transaction_version)
        if self.offline is not None:
            raise self._storage_error(self.offline)
        buffer, header, first_offset, last_offset, max_timestamp, offset_of_max, log_append_time_ms = (
            prepare_client_batch(
                records,
                topic_partition=self.name,
                first_offset=self.log_end_offset,
                leader_epoch=leader_epoch,
                now_ms=now_ms,
                config=self._config,
                produce_version=produce_version,
                internal_topic=internal_topic,
            )
        )
        if header.producer_id >= 0:
            verified_by = guard if self._config.transaction_partition_verification_enable else None
            duplicate = self.producers.check(header, origin, guard=verified_by)
            if duplicate is not None:
                return AppendResult(
                    duplicate.last_offset - duplicate.offset_delta,
                    duplicate.last_offset,
                    duplicate.timestamp,
                    self.log_start_offset,
                    True,
                    # What a crash left in the page cache: it was never acknowledged, nor synced.
                    self.unflushed_messages >= self._config.flush_messages,
                )
        self._write(buffer, leader_epoch, now_ms, first_offset, last_offset, max_timestamp, offset_of_max)
        producers = self.producers
        if header.producer_id >= 0:
            producers.append(header, first_offset, max_timestamp)
        producers.end_offset = self.log_end_offset = last_offset + 1
        return AppendResult(
            first_offset,
            last_offset,
            log_append_time_ms,
            self.log_start_offset,
            False,
            last_offset + 1 - self._flusher.recovery_point >= self._config.flush_messages,
        )

    def start_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, bumps_epoch: bool, now_ms: int
    ) -> int:
        """The guard under which to ask the coordinator before a transactional batch; see `ProducerStates`."""
        return self.producers.start_verification(
            producer_id, producer_epoch, sequence, bumps_epoch=bumps_epoch, now_ms=now_ms
        )

    def _append_internal(
        self,
        records: Buffer,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin,
        guard: int,
        transaction_version: int,
    ) -> AppendResult:
        """Batches that this broker or the leader made: trusted in content, checked against the log's
        state.
        """
        if self.offline is not None:
            raise self._storage_error(self.offline)
        if origin is AppendOrigin.COORDINATOR:
            records = _with_offsets(records, self.log_end_offset, leader_epoch)
        first_offset = last_offset = -1
        for position, header in iter_batches(records):
            batch = memoryview(records)[position : position + header.size_in_bytes]
            if origin is AppendOrigin.REPLICATION:
                check_batch(batch)
            elif header.partition_leader_epoch != leader_epoch:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD, "Append from Raft leader did not set the batch epoch correctly"
                )
            if header.base_offset < self.log_end_offset:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"Unexpected offset in append to {self.name}: first offset "
                    f"{header.base_offset} is less than the next offset {self.log_end_offset}",
                )
            self._append_batch(batch, header, now_ms, origin, guard, transaction_version)
            first_offset = header.base_offset if first_offset < 0 else first_offset
            last_offset = header.last_offset
        if first_offset < 0:
            raise KafkaError(ErrorCode.INVALID_RECORD, "Record batch has no batches at all")
        flush_due = self.unflushed_messages >= self.config.flush_messages
        return AppendResult(first_offset, last_offset, -1, self.log_start_offset, False, flush_due)

    def _append_batch(
        self,
        batch: memoryview,
        header: BatchHeader,
        now_ms: int,
        origin: AppendOrigin,
        guard: int,
        transaction_version: int,
    ) -> None:
        marker = transaction_marker(batch, header)
        if header.producer_id >= 0:
            verified_by = guard if self._config.transaction_partition_verification_enable else None
            self.producers.check(
                header, origin, marker, transaction_version=transaction_version, guard=verified_by
            )
        self._write(
            batch,
            header.partition_leader_epoch,
            now_ms,
            header.base_offset,
            header.last_offset,
            header.max_timestamp,
            header.last_offset,
        )
        aborted = self.producers.note(header, marker)
        self.producers.end_offset = self.log_end_offset = header.next_offset
        if aborted is not None:
            try:
                self._active.append_aborted(aborted)
            except OSError as error:  # it is in memory, and in the log, from which the file is rebuilt
                self._environment.write_failed(error)

    def _write(
        self,
        batch: Buffer,
        leader_epoch: int,
        now_ms: int,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        offset_of_max_timestamp: int,
    ) -> None:
        segment, size = self._active, len(batch)
        config = self._config
        # The age of a segment is counted in the time of its records, where they have one.
        first_timestamp, newest = segment.first_timestamp, max_timestamp
        if first_timestamp < 0:
            first_timestamp, newest = segment.first_append_ms, now_ms
        try:
            if (
                segment.size + size > config.segment_bytes
                or last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
                or 0 <= first_timestamp < newest - self._roll_ms + segment.jitter_ms
                or segment.index_is_full(config.segment_index_bytes)
            ):
                if size > config.segment_bytes:
                    raise KafkaError(
                        ErrorCode.RECORD_LIST_TOO_LARGE,
                        f"Message batch size is {size} bytes in append to partition {self.name}, "
                        f"which exceeds the maximum configured segment size of {config.segment_bytes}.",
                    )
                if segment.size:
                    self._roll(first_offset)
                    segment = self._active
            if leader_epoch != self._latest_epoch:
                self._start_epoch(leader_epoch, first_offset)
            segment.append(batch, last_offset, max_timestamp, offset_of_max_timestamp)
            if segment.first_append_ms < 0:
                segment.first_append_ms = now_ms
        except OSError as error:
            raise self._append_failed(segment, error) from error
        if segment.size >= segment.write_behind_at:
            self._write_behind(segment)

    def _write_behind(self, segment: Segment) -> None:
        """Much of the segment is not synced: have that done, after the whole first portion for a new one."""
        is_due = segment.write_behind_at > 0
        segment.write_behind_at = segment.size + self._environment.write_behind_bytes
        if is_due:
            self._environment.run_in_turn(self._flush_behind)

    def _append_failed(self, segment: Segment, error: OSError) -> KafkaError:
        """Take back what was half written; a broken disk is reported, a full one is waited out."""
        if segment.has_torn_tail:
            try:
                segment.cut_torn_tail()
            except OSError:
                logger.debug("cannot cut the torn tail of %s now, the next append will", segment.path)
        self._environment.write_failed(error)
        return self._storage_error(error)

    def _storage_error(self, error: OSError) -> KafkaError:
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"Error while appending records to {self.name}: {error.strerror or error}",
        )

    def begin_epoch(self, epoch: int) -> None:
        """Lead from here on, so that the log can say where `epoch` starts before anything is appended.

        Nothing is written before the first batch.
        """
        if self.epochs.assign(epoch, self.log_end_offset):
            self._epochs_are_saved = False

    def _start_epoch(self, epoch: int, start_offset: int) -> None:
        """Written (not synced) before the first batch of the epoch: recovery refuses epochs it has not
        heard of.
        """
        if epoch < self.epochs.latest:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"Append to {self.name} under leader epoch {epoch} after one under {self.epochs.latest}",
            )
        if self.epochs.assign(epoch, start_offset) or not self._epochs_are_saved:
            self._save_epochs()
        self._latest_epoch = epoch

    def _save_epochs(self) -> None:
        self._epochs_are_saved = False
        path = join(self.directory, LEADER_EPOCH_CHECKPOINT)
        self._environment.files.replace_file(path, encode_epochs(self.epochs.entries), sync=False)
        self._epochs_are_saved = True
        self._flusher.note_epochs()

    # --- rolling and flushing ---------------------------------------------------------------------

    def roll(self) -> None:
        """Close the active segment and start the next one at the log end offset; nothing happens if it is
        empty.
        """
        if self._active.size:
            try:
                self._roll(self.log_end_offset)
            except OSError as error:
                raise self._append_failed(self._active, error) from error

    def _roll(self, base_offset: int) -> None:
        old = self._active
        if old.has_torn_tail:
            old.cut_torn_tail()
        path = join(self.directory, offset_file(base_offset, ""))
        new = Segment.create(self._environment.files, path, base_offset, self.config.index_interval_bytes)
        new.jitter_ms = _jitter_ms(self.config, path)
        self.segments = (*self.segments, new)
        self._active = new
        self._reserve(new)
        self._flusher.note_names()
        self._take_snapshot(base_offset)
        self._environment.run_in_turn(self._flush_closed)

    def _reserve(self, segment: Segment) -> None:
        """With `preallocate`, have the disk keep room for a whole segment; what is left goes back later."""
        if self._config.preallocate:
            segment.reserve(self._config.segment_bytes)

    def _take_snapshot(self, offset: int) -> None:
        self._flusher.pending_snapshots.append(Snapshot(offset, self.producers.producers.values()))
        self._snapshot_offset = offset

    def _flush_behind(self) -> None:
        """Make durable what there is. Worker thread."""
        try:
            self.flush()
        except KafkaError as error:
            logger.warning("%s: not flushed in the background: %s", self.name, error)

    def flush_closed(self) -> None:
        """Make all but the active segment durable. Worker thread."""
        self._flush_up_to(self._active.base_offset)

    def _flush_closed(self) -> None:
        """Make all but the active segment durable. Worker thread."""
        try:
            self.flush_closed()
        except KafkaError as error:
            logger.warning("%s: the rolled segment is not flushed yet: %s", self.name, error)

    def flush(self) -> int:
        """Return once everything appended before the call is on stable storage; the new recovery point.

        Worker-safe. KAFKA_STORAGE_ERROR means it is not; after a failed sync the whole directory is out of
        service, because the disk lost data that it had taken.
        """
        self._flush_up_to(self.log_end_offset)
        return self.recovery_point

    def _flush_up_to(self, target: int) -> None:
        try:
            self._flusher.flush(self.segments, target)
        except OSError as error:
            raise self._storage_error(error) from error

    def close(self, clean: bool = True) -> bool:
        """Stop using the log; with `clean`, leave it so that the next start needs no recovery.

        Returns whether that worked, and only then may the clean shutdown marker be written. Worker-safe
        once nobody appends any more. Reads planned before still work.
        """
        if self.closed:
            return True
        self.closed = True
        try:
            return clean and self.offline is None and self._close_in_order()
        finally:
            self.release_files()

    def _close_in_order(self) -> bool:
        try:
            if self._active.has_torn_tail:
                self._active.cut_torn_tail()
            is_empty = self.log_end_offset == self.segments[0].base_offset
            if self._snapshot_offset != self.log_end_offset and not is_empty:
                self._take_snapshot(self.log_end_offset)
            self.flush()
            with self._flusher.lock:
                self._active.give_back_reserve()
                self._active.save_indexes(final=True)
                self._active.sync(with_indexes=True)
        except (OSError, KafkaError) as error:
            logger.error("%s could not be closed in order: %s", self.name, error)
            return False
        return True

    def retire(self) -> None:
        """The partition was deleted: refuse appends, wake who waits. Reads planned before still work."""
        self._flusher.retire()
        self.closed = True
        self.offline = OSError(errno.ESTALE, "the partition was deleted")
        self.wake_waiting()

    # --- watermarks -------------------------------------------------------------------------------

    def advance_high_watermark(self, offset: int) -> None:
        """Raise the high watermark to `offset`, at most to the log end; lower values are ignored."""
        if offset > self.log_end_offset:
            offset = self.log_end_offset
        if offset <= self.high_watermark:
            return
        self.high_watermark = offset
        producers = self.producers
        if producers.unreplicated or producers.ongoing:
            producers.on_high_watermark(offset)
            self._update_last_stable_offset()
        else:
            self.last_stable_offset = offset
        if self.on_advance:
            self.wake_waiting()

    def _update_last_stable_offset(self) -> None:
        unstable = self.producers.first_unstable_offset()
        stable = self.high_watermark if unstable is None else min(unstable, self.high_watermark)
        self.last_stable_offset = max(stable, self.log_start_offset)

    def wake_waiting(self) -> None:
        """Call everybody who wants to know that something about this log has changed."""
        for callback in tuple(self.on_advance):
            callback(self)

    def limit_offset(self, limit: Limit) -> int:
        """The offset that a reader of this kind may not reach."""
        if limit == "high_watermark":
            return self.high_watermark
        return self.last_stable_offset if limit == "last_stable" else self.log_end_offset

    # --- read -------------------------------------------------------------------------------------

    def plan_read(
        self, offset: int, max_bytes: int, *, limit: Limit = "high_watermark", minimum_one_batch: bool = True
    ) -> ReadPlan:
        """Decide what a fetch at `offset` returns; OFFSET_OUT_OF_RANGE outside [log start, log end].

        Without `minimum_one_batch`, a first batch of more than `max_bytes` gives an empty plan. 1 us among
        the newest batches, 6 us through the index; with the read, 1 MiB takes 20 us more than copying it.
        """
        limit_offset = self.limit_offset(limit)
        if offset >= limit_offset or offset < self.log_start_offset:
            if offset > self.log_end_offset or offset < self.log_start_offset:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"Received request for offset {offset} for partition {self.name}, but we only have log "
                    f"segments from offset {self.log_start_offset} to {self.log_end_offset}.",
                )
            return nothing_at(offset)
        segments = self.segments
        number = len(segments) - 1
        next_offset = self.log_end_offset
        if offset < self._active.base_offset:
            number = segment_number(segments, offset)
            next_offset = segments[number + 1].base_offset
        segment = segments[number]
        if segment.damages:
            refuse_damaged(segment, offset)

        segment.is_idle = False
        try:
            place = self._place(segment, offset, limit_offset, next_offset)
        except OSError as error:
            self._environment.open_failed(error)
            raise storage_error(error) from error
        aborted = None
        if place is None:
            if limit == "last_stable":
                aborted = self._aborted_later(segments[number:], offset, limit_offset)
            request = ReadRequest(offset, max_bytes, limit_offset, minimum_one_batch)
            return unresolved_read(segments[number:], request, self._check_segment, aborted)
        start, size, end = place
        if start >= end or (max_bytes < size and not minimum_one_batch):
            return nothing_at(offset)
        end = end_of_read(segment, start, max(max_bytes, size), end, in_thread=False)
        if limit == "last_stable":
            upper_bound = segment.index.offset_at_or_after(end)
            upper_bound = next_offset if upper_bound is None else upper_bound
            aborted = self._aborted_later(segments[number:], offset, upper_bound)
        return ReadPlan(offset, end - start, (segment.file, start, end), None, aborted)

    @staticmethod
    def _place(
        segment: Segment, offset: int, limit_offset: int, next_offset: int
    ) -> tuple[int, int, int] | None:
        """(start of the batch that holds `offset`, its size, end of what may be read); None if that is not
        known here.

        `next_offset` is where the segment ends. Only memory and page cache are asked.
        """
        start, size = segment.tail_batch(offset)
        if start < 0 or segment.damages:
            found = segment.locate_cached(offset)
            if found is None or found[1].base_offset > offset:
                return None
            start, header = found
            size = header.size_in_bytes
        end = segment.size
        if limit_offset < next_offset:
            end = segment.tail_batch(limit_offset)[0]
            if end < 0:
                found = segment.locate_cached(limit_offset)
                if found is None:
                    return None
                end = found[0]
        return start, size, end

    def _check_segment(self, segment: Segment, next_base_offset: int) -> bool:
        """Scan a closed segment whose files do not agree; False if that was done before. Worker thread."""
        if segment.was_scanned or self.retired:
            return False
        logger.warning(
            "%s: segment %d does not hold what it should, scanning", self.name, segment.base_offset
        )
        copy = segment.unscanned_copy()
        scan_segment(
            copy,
            self.name,
            next_base_offset=next_base_offset,
            epoch_of=self.epochs.epoch_for_offset,
            gaps_allowed=self._config.is_compacted,
        )
        segment.adopt(copy)
        return True

    def _aborted_later(
        self, segments: tuple[Segment, ...], offset: int, upper_bound: int
    ) -> Callable[[], list[AbortedTxn]] | None:
        """What `ReadPlan.aborted_transactions` calls; most logs have none, and then nothing is kept."""
        if not any(segment.aborted_txns for segment in segments):
            return None
        return lambda: aborted_in(segments, offset, upper_bound)

    def available_bytes(self, offset: int, limit: Limit = "high_watermark") -> int:
        """About how many bytes a reader at `offset` could get; cheap, never waits, for `fetch.min.bytes`."""
        if offset >= self.limit_offset(limit) or offset < self.log_start_offset:
            return 0
        segments = self.segments
        number = segment_number(segments, offset)
        segment = segments[number]
        start = segment.tail_batch(offset)[0]
        if start < 0:
            start = segment.index.position_before(offset) if segment.indexes_loaded else 0
        return sum([s.size for s in segments[number:]]) - start

    # --- lookups by time and epoch ----------------------------------------------------------------

    def search_timestamp(self, timestamp: int, limit: Limit = "log_end") -> Callable[[], FoundOffset | None]:
        """How to find the first record below `limit` with a timestamp >= `timestamp`: call it in a worker
        thread.

        The search sees the log as it is now, whatever is appended or deleted meanwhile.
        """
        return partial(
            search_timestamp, self.segments, timestamp, self.log_start_offset, self.limit_offset(limit)
        )

    def search_max_timestamp(self) -> Callable[[], FoundOffset | None]:
        """How to find the first record that carries the log's greatest timestamp; as `search_timestamp`."""
        return partial(search_max_timestamp, self.segments)

    def offset_for_timestamp(self, timestamp: int, limit: Limit = "high_watermark") -> FoundOffset | None:
        """`search_timestamp`, carried out at once. Worker-safe; reads files."""
        return self.search_timestamp(timestamp, limit)()

    def offset_of_max_timestamp(self) -> FoundOffset | None:
        """`search_max_timestamp`, carried out at once. Worker-safe; reads files."""
        return self.search_max_timestamp()()

    def end_offset_for_epoch(self, epoch: int) -> EpochEntry:
        """(largest known epoch <= `epoch`, where it ends); (-1, -1) if unknown. Worker-safe."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def epoch_for_offset(self, offset: int) -> int:
        """The leader epoch of the record at `offset`, -1 if unknown. Worker-safe."""
        return self.epochs.epoch_for_offset(offset)

    # --- what goes away ---------------------------------------------------------------------------

    def delete_records(self, before_offset: int) -> int:
        """DeleteRecords: nothing below `before_offset` (-1: the high watermark) is served again; the new
        log start.
        """
        if before_offset == -1:
            before_offset = self.high_watermark
        if before_offset < 0 or before_offset > self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {before_offset} of partition {self.name} "
                f"since it is larger than the high watermark {self.high_watermark}",
            )
        self.advance_log_start_offset(before_offset)
        return self.log_start_offset

    def advance_log_start_offset(self, offset: int) -> None:
        """Raise the log start offset; segments wholly below go at the next `apply_retention`."""
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        self.producers.on_high_watermark(offset)
        self._update_last_stable_offset()
        if self.epochs.truncate_from_start(offset):
            try:
                self._save_epochs()
            except OSError as error:  # an entry too many does no harm
                self._environment.write_failed(error)
        self.wake_waiting()

    def truncate_to(self, offset: int) -> None:
        """Forget everything from `offset` on (a follower whose leader has another history). May wait for
        disks.
        """
        if offset >= self.log_end_offset:
            return
        if offset < self.segments[0].base_offset:
            self.reset_to(offset)
            return
        logger.info("%s: truncating to offset %d", self.name, offset)
        with self._flusher.lock:
            self.compaction.on_truncation()
            keep = segment_number(self.segments, offset) + 1
            gone, self.segments = self.segments[keep:], self.segments[:keep]
            self._active = self.segments[-1]
            for segment in gone:
                segment.unlink()
            self._active.truncate_to(offset)
            self._end_at(offset)

    def reset_to(self, offset: int) -> None:
        """Throw everything away and start empty at `offset`. May wait for disks."""
        logger.info("%s: starting over at offset %d", self.name, offset)
        with self._flusher.lock:
            self.compaction.on_truncation()
            for segment in self.segments:
                segment.unlink()
            path = join(self.directory, offset_file(offset, ""))
            self._active = Segment.create(
                self._environment.files, path, offset, self.config.index_interval_bytes
            )
            self.segments = (self._active,)
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)
            self._end_at(offset)

    def _end_at(self, offset: int) -> None:
        """Bring everything that follows from the log end in line with a lower one."""
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.compaction.ends_at(offset)
        self._flusher.recovery_point = min(self.recovery_point, offset)
        self._flusher.pending_snapshots.clear()
        if self.epochs.truncate_from_end(offset):
            self._save_epochs()
        self._latest_epoch = self.epochs.latest
        files = self._environment.files
        names = [entry.name for entry in files.entries(self.directory)]
        rebuilt = ProducerFiles(files, self.directory, snapshot_offsets(names)).rebuild(
            self.segments, self.log_start_offset, offset
        )
        self.producers, self._snapshot_offset = rebuilt.producers, rebuilt.snapshot_offset
        self.high_watermark = max(min(self.high_watermark, offset), self.log_start_offset)
        self._update_last_stable_offset()
        self.wake_waiting()

    def apply_retention(self, now_ms: int) -> int:
        """Remove the segments that are due by start offset, size and time; returns how many."""
        if self.compaction.is_under_way:
            return 0
        ends = segment_ends(self.segments, self.log_end_offset)
        facts = [
            SegmentFacts(s.base_offset, end, s.size, s.newest_timestamp_or_mtime)
            for s, end in zip(self.segments, ends, strict=True)
        ]
        expired = expired_segments(
            facts,
            self.config,
            now_ms=now_ms,
            log_start_offset=self.log_start_offset,
            high_watermark=self.high_watermark,
        )
        if expired.segments == 0:
            return 0
        if expired.segments == len(self.segments):
            self.roll()
        gone = self.segments[: expired.segments]
        self.segments = self.segments[expired.segments :]
        logger.info(
            "%s: deleting %d segments up to offset %d, %d bytes (%s)",
            self.name,
            len(gone),
            self.segments[0].base_offset,
            sum([segment.size for segment in gone]),
            ", ".join(sorted(set(expired.reasons))),
        )
        self._discard(gone)
        self.advance_log_start_offset(self.segments[0].base_offset)
        return len(gone)

    def _discard(self, segments: Iterable[Segment]) -> None:
        """Take segments out of the folder's view now, off the disk after `file.delete.delay.ms`; in worker
        threads.
        """
        gone = tuple(segments)

        def set_aside() -> None:
            try:
                self._flusher.set_aside(gone, DELETED_SUFFIX)
            except OSError as error:
                self._environment.write_failed(error)

        def unlink() -> None:
            for segment in gone:
                segment.unlink(DELETED_SUFFIX)

        self._environment.run_later(set_aside)
        self._environment.bury(unlink, self.config.file_delete_delay_ms)

    def expire_producers(self, now_ms: int) -> int:
        """Forget producers idle for `producer.id.expiration.ms`; returns how many."""
        return self.producers.expire(now_ms, self.config.producer_id_expiration_ms)

    def release_idle(self) -> None:
        """Give back descriptors and indexes of segments that nobody read, and wrote, since the last call."""
        for segment in self.segments[:-1]:
            if segment.is_idle:
                segment.release()
            segment.is_idle = True
        active = self._active
        if active.is_idle and self.log_end_offset == self._end_at_last_release:
            active.release_file()
        active.is_idle = True
        self._end_at_last_release = self.log_end_offset

    def release_files(self) -> None:
        """Give back every descriptor; each comes back when it is needed. Worker-safe."""
        for segment in self.segments:
            segment.release_file()

    def active_producers(self) -> list[ProducerState]:
        """What DescribeProducers shows."""
        return list(self.producers.producers.values())


def _with_offsets(records: Buffer, next_offset: int, leader_epoch: int) -> Buffer:
    """Base offsets and leader epoch stamped into batches made by a coordinator of this broker, in place if
    possible.
    """
    stamped = memoryview(bytearray(records) if memoryview(records).readonly else records)
    for position, header in iter_batches(stamped):
        stamped[position : position + 8] = next_offset.to_bytes(8, "big")
        epoch_at = position + _LEADER_EPOCH_OFFSET
        stamped[epoch_at : epoch_at + 4] = leader_epoch.to_bytes(4, "big", signed=True)
        next_offset += header.last_offset_delta + 1
    return stamped


def _jitter_ms(config: LogConfig, path: str) -> int:
    """A share of `segment.jitter.ms` that differs from segment to segment, so that not all roll at once."""
    return crc32c(path.encode()) % config.segment_jitter_ms if config.segment_jitter_ms > 0 else 0
