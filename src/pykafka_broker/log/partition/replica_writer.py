"""A log as the copy of another: batches of a leader are appended as they are, at their offsets.

All batches of an answer are checked before the first is written: format, checksum, ascending offsets and
leader epochs. Batches of a later epoch than the leader's are left out with all that follow. Then the batches
that go to one segment under one epoch are written at once; segments, indexes, leader epochs, producers and
aborted transactions become those of the leader, batch by batch.

Event loop; a worker thread where nothing else uses the log.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Optional

from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.partition.append_errors import append_failed
from pykafka_broker.log.partition.density import Density
from pykafka_broker.log.partition.epoch_file import EpochFile
from pykafka_broker.log.partition.flushing import Flusher
from pykafka_broker.log.partition.producers import transaction_marker
from pykafka_broker.log.partition.rolling import NamesDue, Roller, is_due
from pykafka_broker.log.partition.state import LogState
from pykafka_broker.log.partition.trimming import LogTrimmer
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    check_batch,
    check_crc,
    iter_batches,
    read_header,
)
from pykafka_broker.protocol.records.control import EndTransactionMarker
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("org.apache.kafka.storage.internals.log.UnifiedLog")

#: The leader epoch of a copy within this broker: no batch is of a later one.
ANY_LEADER_EPOCH = 2**31 - 1


class Copied(NamedTuple):
    """What an append has done with a leader's batches."""

    #: The number of bytes of `records` that are handled; all of them unless `names_due`.
    size_bytes: int
    #: A file has to be made before the rest can be written (`DeferredFiles.repeat`).
    names_due: Optional[NamesDue] = None
    #: `flush.messages` asks for a flush before the leader is told of these records.
    flush_due: bool = False


class _Batch(NamedTuple):
    position: int
    header: BatchHeader
    marker: Optional[EndTransactionMarker]

    @property
    def end(self) -> int:
        return self.position + self.header.size_in_bytes


class ReplicaWriter:
    """Appends a leader's batches to one log."""

    __slots__ = (
        "_density",
        "_environment",
        "_epoch_file",
        "_flusher",
        "_roller",
        "_state",
        "_trimmer",
    )

    def __init__(
        self,
        state: LogState,
        environment: Environment,
        flusher: Flusher,
        epoch_file: EpochFile,
        roller: Roller,
        density: Density,
        trimmer: LogTrimmer,
    ) -> None:
        self._state = state
        self._environment = environment
        self._flusher = flusher
        self._epoch_file = epoch_file
        self._roller = roller
        self._density = density
        self._trimmer = trimmer

    def append(
        self, records: Buffer, *, leader_epoch: int, now_ms: int, defers_names: bool = False
    ) -> Copied:
        """Append the whole batches in `records`; half a batch at their end is passed over.

        An empty log that starts inside the first batch, as the leader's does, restarts at that batch's
        offset. With `defers_names` no file is made here: batches written before stay, and the caller appends
        the rest once the file exists.

        Raises:
            KafkaError: CORRUPT_MESSAGE or INVALID_RECORD for batches that cannot be the leader's,
                OFFSET_OUT_OF_RANGE if they begin below the log end: nothing was written. On a disk error
                KAFKA_STORAGE_ERROR: what was written before stays, and is whole.
        """
        state = self._state
        if (due := self._roller.check_open(defers_names)) is not None:
            return Copied(0, due)
        view = memoryview(records)
        batches = self._checked(view, leader_epoch)
        if not batches:
            return Copied(len(view))
        self._begin_before(batches)
        if self._has_gaps(batches):
            self._density.copies_gaps()
        done = 0
        while done < len(batches):
            written = self._write_some(view, batches, done, now_ms, defers_names)
            if isinstance(written, NamesDue):
                return Copied(batches[done].position, written)
            done += written
        return Copied(
            len(view), flush_due=state.log_end_offset - state.recovery_point >= state.config.flush_messages
        )

    def begin_epoch(self, records: Buffer, leader_epoch: int) -> NamesDue | None:
        """Note the leader epoch that begins with these records and return its file, to be made together with
        those of other logs before the append. None if no file is due, or if `append` would refuse the
        records.
        """
        state = self._state
        if len(records) < HEADER_BYTES or state.offline is not None:
            return None
        header = read_header(records)
        epoch = header.partition_leader_epoch
        if not state.epochs.latest < epoch <= leader_epoch or header.base_offset != state.log_end_offset:
            return None
        try:
            check_batch(records)
        except KafkaError:
            return None
        self._epoch_file.begin(epoch)
        return None if self._epoch_file.is_saved else NamesDue(self._roller, None)

    # --- checks -----------------------------------------------------------------------------------

    def _checked(self, records: memoryview, leader_epoch: int) -> list[_Batch]:
        name, newest_epoch = self._state.name, self._state.epochs.latest
        found: list[_Batch] = []
        last_offset = -1
        for position, header in iter_batches(records):
            epoch = header.partition_leader_epoch
            if epoch > leader_epoch:
                logger.warning(
                    "%s: leaving out batches from offset %d on: their leader epoch %d is later than %d",
                    name,
                    header.base_offset,
                    epoch,
                    leader_epoch,
                )
                break
            if epoch < newest_epoch:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD,
                    f"Batch of leader epoch {epoch} in append to {name} after one of {newest_epoch}",
                )
            if header.base_offset <= last_offset or header.last_offset_delta < 0:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD,
                    f"Out of order offsets found in append to {name}: "
                    f"{header.base_offset} to {header.last_offset} after {last_offset}",
                )
            batch = records[position : position + header.size_in_bytes]
            check_crc(batch, header)
            marker = transaction_marker(batch, header) if header.producer_id >= 0 else None
            newest_epoch, last_offset = epoch, header.last_offset
            found.append(_Batch(position, header, marker))
        return found

    def _begin_before(self, batches: Sequence[_Batch]) -> None:
        """Restart an empty log at the first batch if the batch begins before the log; refuse offsets already
        here.
        """
        state, first = self._state, batches[0].header.base_offset
        if first >= state.log_end_offset:
            return
        last = batches[-1].header.last_offset
        if state.log_end_offset != state.log_start_offset or last < state.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Unexpected offset in append to {state.name}. First offset {first} is less than the next "
                f"offset {state.log_end_offset}. Last offset in append: {last}. "
                f"Log start offset = {state.log_start_offset}",
            )
        logger.info(
            "%s: first offset %d is less than log start offset %d. Since this is the first record to be "
            "appended, the log starts there",
            state.name,
            first,
            state.log_start_offset,
        )
        self._trimmer.reset_to(first)

    def _has_gaps(self, batches: Sequence[_Batch]) -> bool:
        next_offset = self._state.log_end_offset
        for _, header, _ in batches:
            if header.base_offset > next_offset or header.records_count <= header.last_offset_delta:
                return True
            next_offset = header.base_offset + header.last_offset_delta + 1
        return False

    # --- writing ----------------------------------------------------------------------------------

    def _write_some(
        self, records: memoryview, batches: Sequence[_Batch], first: int, now_ms: int, defers_names: bool
    ) -> int | NamesDue:
        """Write the batches from `first` on that go together; how many, or the file that they need."""
        state = self._state
        header = batches[first].header
        try:
            due = self._roller.make_ready(
                header.partition_leader_epoch,
                header.size_in_bytes,
                header.base_offset,
                header.last_offset,
                header.max_timestamp,
                now_ms,
                defers_names,
            )
            if due is not None:
                return due
            run = batches[first : first + self._run_length(batches, first, now_ms)]
            segment = state.active
            whole = records[run[0].position : run[-1].end]
            segment.append_batches(whole, [batch.header for batch in run], now_ms)
        except OSError as error:
            raise append_failed(self._environment, state.name, state.active, error) from error
        self._note(run)
        if segment.size >= segment.write_behind_at:
            self._flusher.write_behind(segment)
        return len(run)

    def _run_length(self, batches: Sequence[_Batch], first: int, now_ms: int) -> int:
        """How many batches from `first` on go to the active segment, under one epoch."""
        state = self._state
        segment, start = state.active, batches[first].position
        if first + 1 == len(batches) or not segment.size:
            return 1  # the first batch sets the segment's time, by which the next are judged
        room = segment.indexes.room(segment, state.config.segment_index_bytes)
        epoch = batches[first].header.partition_leader_epoch
        for number in range(first + 1, min(len(batches), first + room)):
            batch = batches[number]
            header = batch.header
            if header.partition_leader_epoch != epoch or is_due(
                state, batch.end - start, header.last_offset, header.max_timestamp, now_ms
            ):
                return number - first
        return min(len(batches) - first, max(1, room))

    def _note(self, run: Sequence[_Batch]) -> None:
        """Bring the log end and the producers in line with batches that are written."""
        state = self._state
        producers = state.producers
        for _, header, marker in run:
            if header.producer_id < 0:
                continue
            aborted = producers.note(header, marker)
            if aborted is not None:
                self._roller.note_aborted(aborted)
        producers.end_offset = state.log_end_offset = run[-1].header.last_offset + 1
