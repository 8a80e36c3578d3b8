"""A log as its writers see it: appended to, rolled, flushed and closed.

Everything runs on the event loop thread and never waits for a disk, except what is documented as
worker-safe. Appends do not sync: `AppendResult.flush_due` and `flush` let the caller hold an acknowledgement
back until the bytes are durable. Below the recovery point everything is on stable storage; after a crash only
what is past it is scanned.

Figures in docstrings: a 2-core VM, CPython 3.11.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from struct import Struct
from typing import Any, NamedTuple

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.checkpoints import EpochEntry, encode_epochs
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import Buffer
from pykafka_broker.log.partition.density import Density
from pykafka_broker.log.partition.flushing import Flusher
from pykafka_broker.log.partition.producer_snapshots import Snapshot
from pykafka_broker.log.partition.producers import AppendOrigin, transaction_marker
from pykafka_broker.log.partition.reader import ReadableLog
from pykafka_broker.log.partition.transaction_guards import NO_GUARD
from pykafka_broker.log.partition.validation import prepare_client_batch
from pykafka_broker.log.segment.index import MAX_RELATIVE_OFFSET
from pykafka_broker.log.segment.segment import Segment, segment_ends
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    BASE_OFFSET_OFFSET,
    CRC_OFFSET,
    HEADER,
    LEADER_EPOCH_OFFSET,
    LOG_OVERHEAD_BYTES,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    check_batch,
    iter_batches,
    read_header,
    restamp,
)
from pykafka_broker.protocol.records.crc import crc32c

logger = logging.getLogger(__name__)

_BASE_OFFSET = Struct(">q")
_LEADER_EPOCH = Struct(">i")
_CRC = Struct(">I")


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


class NamesDue(Exception):
    """Before the append a file has to be made, or replaced, which may wait for the disk longer than any write
    does. Nothing has been written; `LogManager.make_names` sees to it, and then the append is to be repeated.
    """

    def __init__(self, log: Any, base_offset: int | None) -> None:
        super().__init__(f"{log.name} needs a file before it can grow")
        self.log = log
        #: Of the segment that has to begin; None if leader epochs are to be written.
        self.base_offset = base_offset


class WritableLog(ReadableLog):
    """The writing half of a log."""

    __slots__ = ("_epochs_are_saved", "_flusher", "_snapshot_offset", "density", "makes_names")

    def __init__(
        self,
        environment: Environment,
        directory: str,
        *arguments: Any,
        recovery_point: int,
        snapshot_offset: int,
        is_new: bool,
        **facts: Any,
    ) -> None:
        super().__init__(environment, directory, *arguments, **facts)
        self._epochs_are_saved = True
        #: Files of it are being made: appends that can wait for them have to.
        self.makes_names = False
        self._snapshot_offset = snapshot_offset
        self._flusher = Flusher(environment, directory, recovery_point=recovery_point, is_new=is_new)
        #: From where on nothing but what was lost is missing, as far as that is noted.
        self.density = Density(environment.files, self._flusher, self.log_end_offset)
        self._active.jitter_ms = self._jitter_ms(self._active)
        ends = segment_ends(self.segments, self.log_end_offset)
        for segment, end in zip(self.segments[:-1], ends, strict=False):
            segment.is_flushed = end <= recovery_point

    @property
    def recovery_point(self) -> int:
        """Everything below is on stable storage."""
        return self._flusher.recovery_point

    @property
    def retired(self) -> bool:
        """The partition was deleted."""
        return self._flusher.retired

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
        defers_names: bool = False,
    ) -> AppendResult:
        """Validate and write; the batch gets its offset and epoch in place if `records` is writable.

        A transaction's first batch needs the `guard` that `start_verification` gave; `transaction_version` is
        that of the transaction a marker ends.

        Above checksum and `pwrite`, a batch of one record takes 4.3 us (5.9 with a producer id), one of 16
        KiB 8 us (9); half of that is validation.

        Raises KafkaError with Kafka's code. On a disk error nothing of the batch stays:
        KAFKA_STORAGE_ERROR, and the next append finds the log as it was. With `defers_names` it raises
        NamesDue rather than make a file.
        """
        if origin is not AppendOrigin.CLIENT:
            return self.append_internal(records, leader_epoch, now_ms, origin, guard, transaction_version)
        if self.offline is not None:
            raise self._storage_error(self.offline)
        if self.makes_names and defers_names:
            raise NamesDue(self, None)
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
        try:
            self._write(
                buffer,
                leader_epoch,
                now_ms,
                first_offset,
                last_offset,
                max_timestamp,
                offset_of_max,
                defers_names,
            )
        except NamesDue:
            _as_it_came(buffer)
            raise
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

    def append_internal(
        self,
        records: Buffer,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin,
        guard: int,
        transaction_version: int,
        defers_names: bool = False,
    ) -> AppendResult:
        """`append` of batches that this broker or the leader made: trusted in content, checked against the
        log's state.
        """
        if self.offline is not None:
            raise self._storage_error(self.offline)
        if self.makes_names and defers_names:
            raise NamesDue(self, None)
        if origin is AppendOrigin.COORDINATOR:
            batch, header = _stamped(records, self.log_end_offset, leader_epoch, self._config, now_ms)
            first_offset = header.base_offset
            last_offset = self._append_batch(
                batch, header, now_ms, origin, guard, transaction_version, defers_names
            )
        else:
            first_offset = last_offset = -1
            for batch, header in _checked(records, leader_epoch, origin):
                if header.base_offset < self.log_end_offset:
                    raise KafkaError(
                        ErrorCode.OFFSET_OUT_OF_RANGE,
                        f"Unexpected offset in append to {self.name}: first offset "
                        f"{header.base_offset} is less than the next offset {self.log_end_offset}",
                    )
                if (
                    header.base_offset > self.log_end_offset
                    or header.records_count <= header.last_offset_delta
                ):
                    self._copies_gaps()
                last_offset = self._append_batch(batch, header, now_ms, origin, guard, transaction_version)
                first_offset = header.base_offset if first_offset < 0 else first_offset
        if last_offset < 0:
            raise KafkaError(ErrorCode.INVALID_RECORD, "Record batch has no batches at all")
        flush_due = last_offset + 1 - self._flusher.recovery_point >= self._config.flush_messages
        return AppendResult(first_offset, last_offset, -1, self.log_start_offset, False, flush_due)

    def _copies_gaps(self) -> None:
        try:
            self.density.copies_gaps()
        except OSError as error:
            raise self._append_failed(self._active, error) from error

    def _append_batch(
        self,
        batch: Buffer,
        header: BatchHeader,
        now_ms: int,
        origin: AppendOrigin,
        guard: int,
        transaction_version: int,
        defers_names: bool = False,
    ) -> int:
        """Write one batch; returns its last offset."""
        marker = None
        base_offset = header.base_offset
        last_offset = base_offset + header.last_offset_delta
        if header.producer_id >= 0:
            marker = transaction_marker(batch, header)
            verified_by = guard if self._config.transaction_partition_verification_enable else None
            self.producers.check(
                header, origin, marker, transaction_version=transaction_version, guard=verified_by
            )
        self._write(
            batch,
            header.partition_leader_epoch,
            now_ms,
            base_offset,
            last_offset,
            header.max_timestamp,
            last_offset,
            defers_names,
        )
        producers = self.producers
        aborted = producers.note(header, marker) if header.producer_id >= 0 else None
        producers.end_offset = self.log_end_offset = last_offset + 1
        if aborted is not None:
            self._flusher.note_names()  # the file may be new
            try:
                self._active.aborted.append(aborted)
            except OSError as error:  # it is in memory, and in the log, from which the file is rebuilt
                self._environment.write_failed(error)
        return last_offset

    def _write(
        self,
        batch: Buffer,
        leader_epoch: int,
        now_ms: int,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        offset_of_max_timestamp: int,
        defers_names: bool,
    ) -> None:
        segment, size = self._active, len(batch)
        config = self._config
        # The age of a segment is counted in the time of its records, where they have one.
        first_timestamp, newest = segment.indexes.first_timestamp, max_timestamp
        if first_timestamp < 0:
            first_timestamp, newest = segment.first_append_ms, now_ms
        try:
            if (
                segment.size + size > config.segment_bytes
                or last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
                or 0 <= first_timestamp < newest - self._roll_ms + segment.jitter_ms
                or segment.indexes.is_full(segment, config.segment_index_bytes)
            ):
                if size > config.segment_bytes:
                    raise KafkaError(
                        ErrorCode.RECORD_LIST_TOO_LARGE,
                        f"Message batch size is {size} bytes in append to partition {self.name}, "
                        f"which exceeds the maximum configured segment size of {config.segment_bytes}.",
                    )
                if segment.size:
                    if defers_names:
                        raise NamesDue(self, self.log_end_offset)
                    self._roll(first_offset)
                    segment = self._active
            if leader_epoch != self._latest_epoch:
                if defers_names and not self._epochs_are_saved:
                    raise NamesDue(self, None)
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
        """May wait for the disk. Worker-safe."""
        self._epochs_are_saved = False
        entries: tuple[EpochEntry, ...] = ()

        def encoded() -> bytes:
            nonlocal entries
            entries = self.epochs.entries
            return encode_epochs(entries)

        self._flusher.replace_epochs(encoded)
        self._epochs_are_saved = self.epochs.entries is entries

    def _save_epochs_later(self) -> None:
        """For a change that nothing depends on: what the file says too much does no harm."""

        def save() -> None:
            try:
                self._save_epochs()
            except OSError as error:
                self._environment.write_failed(error)

        self._environment.run_later(save)

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

    def make_names(self, base_offset: int | None) -> Segment | None:
        """Write the leader epochs, if that is due, and make the segment that is to begin at `base_offset`, if
        there is one; the segment, for `adopt`. Worker thread; nothing may be appended meanwhile.

        Raises:
            OSError: the disk refuses, or the folder is somebody else's by now.
        """
        if not self._epochs_are_saved:
            self._save_epochs()
        if base_offset is None:
            return None
        new = self._flusher.create_segment(base_offset, self.config.index_interval_bytes)
        if new is None:
            raise OSError(errno.ESTALE, "the partition was deleted")
        self._reserve(new)
        return new

    def adopt(self, new: Segment) -> None:
        """Go on in a segment that `make_names` has made.

        Raises:
            OSError: the disk refuses to cut off what a failed append has left.
        """
        assert new.base_offset == self.log_end_offset > self._active.base_offset
        if self._active.has_torn_tail:
            self._active.cut_torn_tail()
        self._go_on_in(new)

    def names_refused(self, error: OSError) -> KafkaError:
        """Why `make_names` or `adopt` has failed, for who waits to append."""
        if not self.retired:
            return self._append_failed(self._active, error)
        return self._storage_error(error)

    def _roll(self, base_offset: int) -> None:
        if self._active.has_torn_tail:
            self._active.cut_torn_tail()
        new = self._flusher.create_segment(base_offset, self.config.index_interval_bytes)
        if new is None:
            raise OSError(errno.ESTALE, "the partition was deleted")
        self._reserve(new)
        self._go_on_in(new)

    def _go_on_in(self, new: Segment) -> None:
        new.jitter_ms = self._jitter_ms(new)
        self.segments = (*self.segments, new)
        self._active = new
        self._flusher.note_names()
        self._take_snapshot(new.base_offset)
        self._environment.run_in_turn(self._flush_closed)

    def _jitter_ms(self, segment: Segment) -> int:
        """How much earlier than `segment.ms` says a segment is rolled, by `segment.jitter.ms`: differs from
        segment to segment, so that not all roll at once.
        """
        limit_ms = min(self._config.segment_jitter_ms, self._roll_ms)
        return crc32c(segment.path.encode()) % limit_ms if limit_ms > 0 else 0

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
            self._warn_unflushed("not flushed in the background", error)

    def flush_closed(self) -> None:
        """Make all but the active segment durable. Worker thread."""
        self._flush_up_to(self._active.base_offset)

    def _flush_closed(self) -> None:
        """Make all but the active segment durable. Worker thread."""
        try:
            self.flush_closed()
        except KafkaError as error:
            self._warn_unflushed("the rolled segment is not flushed yet", error)

    def _warn_unflushed(self, what: str, error: KafkaError) -> None:
        self._environment.warn(what, f"{self.name}: {what}: {error}")

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

    def settle(self) -> None:
        """Return when no worker touches a file of the retired log by name any more. May take long."""
        self._flusher.settle()

    def retire(self) -> None:
        """The partition was deleted: refuse appends, wake who waits. Reads planned before still work."""
        self._flusher.retire()
        self.closed = True
        self.offline = OSError(errno.ESTALE, "the partition was deleted")
        self.wake_waiting()


def _as_it_came(batch: Buffer) -> None:
    """Take out of a client's batch what the append has written into it, for the next attempt."""
    _BASE_OFFSET.pack_into(batch, BASE_OFFSET_OFFSET, 0)
    view = memoryview(batch)
    if view[ATTRIBUTES_OFFSET + 1] & TIMESTAMP_TYPE_BIT:
        view[ATTRIBUTES_OFFSET + 1] &= ~TIMESTAMP_TYPE_BIT
        _CRC.pack_into(batch, CRC_OFFSET, crc32c(view[ATTRIBUTES_OFFSET:]))


def _stamped(
    records: Buffer, next_offset: int, leader_epoch: int, config: LogConfig, now_ms: int
) -> tuple[Buffer, BatchHeader]:
    """The one batch that a coordinator of this broker has made, with its base offset and leader epoch stamped
    into it, and the time if the topic's timestamps are those of the append.
    """
    batch = bytearray(records)
    _BASE_OFFSET.pack_into(batch, BASE_OFFSET_OFFSET, next_offset)
    _LEADER_EPOCH.pack_into(batch, LEADER_EPOCH_OFFSET, leader_epoch)
    if config.message_timestamp_type == "LogAppendTime":
        restamp(batch, read_header(batch).attributes | TIMESTAMP_TYPE_BIT, now_ms)
    header = tuple.__new__(BatchHeader, HEADER.unpack_from(batch))
    assert header.batch_length + LOG_OVERHEAD_BYTES == len(batch), "a coordinator writes batches one by one"
    return batch, header


def _checked(
    records: Buffer, leader_epoch: int, origin: AppendOrigin
) -> Iterator[tuple[memoryview, BatchHeader]]:
    """Batches that another broker has made, or the quorum of this one."""
    view = memoryview(records)
    for position, header in iter_batches(view):
        batch = view[position : position + header.size_in_bytes]
        if origin is AppendOrigin.REPLICATION:
            check_batch(batch)
        elif header.partition_leader_epoch != leader_epoch:
            raise KafkaError(
                ErrorCode.INVALID_RECORD, "Append from Raft leader did not set the batch epoch correctly"
            )
        yield batch, header
