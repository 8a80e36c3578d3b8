"""Making a log durable: the files written and synced, their order, and the progress so far.

Appends leave three things to a flush: batches in the page cache, indexes of rolled segments in memory, and
producer snapshots in memory. A flush runs in a worker thread while the event loop appends; the order is
FORMAT.md's. The recovery point moves last, so at any moment everything below it is on stable storage, indexes
included.

A sync that failed is never tried again: the kernel may have dropped the pages it could not write, and would
report the next sync as a success.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from pykafka_broker.log.disk.environment import Environment, FlushTimes
from pykafka_broker.log.disk.files import directory_name, sync_file
from pykafka_broker.log.partition.append_errors import storage_error
from pykafka_broker.log.partition.folder import LogFolder
from pykafka_broker.log.partition.producer_snapshots import Snapshot
from pykafka_broker.log.partition.state import LogState
from pykafka_broker.log.segment.segment import Segment, segment_ends
from pykafka_broker.machine.clock import processing_ns
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.system.descriptors import EXHAUSTED_ERRORS

logger = logging.getLogger("org.apache.kafka.storage.internals.log.UnifiedLog")


class Flusher:
    """Makes one log durable. Worker-safe."""

    __slots__ = (
        "_environment",
        "_failure",
        "_folder",
        "_pending_snapshots",
        "_state",
        "due_since_ms",
        "lock",
        "snapshot_offset",
    )

    def __init__(
        self, state: LogState, environment: Environment, folder: LogFolder, *, snapshot_offset: int
    ) -> None:
        self._state = state
        self._environment = environment
        self._folder = folder
        #: The offset of the newest producer snapshot, on disk or pending; -1 if there is none.
        self.snapshot_offset = snapshot_offset
        #: Snapshots that are still to be written, oldest first.
        self._pending_snapshots: list[Snapshot] = []
        self._failure: OSError | None = None
        #: From when `flush.ms` counts (monotonic): the last flush that it caused, or the first look at
        #: unflushed records; None before.
        self.due_since_ms: int | None = None
        ends = segment_ends(state.segments, state.log_end_offset)
        for segment, end in zip(state.segments[:-1], ends, strict=False):
            segment.is_flushed = end <= state.recovery_point
        #: Held during a flush, and while files of segments are renamed or removed. The holder waits for the
        #: disk, so the event loop takes it for truncation only.
        self.lock = threading.Lock()

    @property
    def times(self) -> FlushTimes:
        """Those of all logs with the same environment."""
        return self._environment.flushes

    @property
    def has_failed(self) -> bool:
        """Whether a sync has failed, so that no later flush can succeed."""
        return self._failure is not None

    # --- producer snapshots -----------------------------------------------------------------------

    def take_snapshot(self, offset: int) -> None:
        """Have the next flush write the producers as they are now, at `offset`. Event loop."""
        self._pending_snapshots.append(Snapshot(offset, self._state.producers.producers.values()))
        self.snapshot_offset = offset

    def drop_pending_snapshots(self) -> None:
        """Drop the snapshots not yet written: a truncation of the log undoes their producer state."""
        self._pending_snapshots.clear()

    # --- flushing ---------------------------------------------------------------------------------

    def flush(self) -> int:
        """Return once everything appended before the call is on stable storage; the new recovery point.

        KAFKA_STORAGE_ERROR means it is not; after a failed sync the whole directory is out of service,
        because the disk lost data that it had taken.
        """
        self._flush_up_to(self._state.log_end_offset)
        return self._state.recovery_point

    def flush_closed(self) -> None:
        """Make all but the active segment durable; errors as of `flush`."""
        self._flush_up_to(self._state.active.base_offset)

    def flush_in_background(self) -> None:
        """As `flush`, for the write-behind of a large segment; an error is logged."""
        try:
            self.flush()
        except KafkaError as error:
            self._warn("not flushed in the background", error)

    def write_behind(self, segment: Segment) -> None:
        """Sync a segment in the background, because much of it is unsynced; a new one after its first
        portion.
        """
        is_due = segment.write_behind_at > 0
        segment.write_behind_at = segment.size + self._environment.write_behind_bytes
        if is_due:
            self._environment.run_in_turn(self.flush_in_background)

    def flush_closed_in_background(self) -> None:
        """As `flush_closed`, after a roll; an error is logged."""
        try:
            self.flush_closed()
        except KafkaError as error:
            self._warn("the rolled segment is not flushed yet", error)

    def _warn(self, what: str, error: KafkaError) -> None:
        self._environment.warn(what, f"{self._state.name}: {what}: {error}")

    def _flush_up_to(self, target: int) -> None:
        try:
            self._flush(target)
        except OSError as error:
            raise storage_error(self._state.name, error) from error

    def _flush(self, target: int) -> None:
        state = self._state
        with self.lock:
            if self._failure is not None:
                raise self._failure
            # The log may have been truncated since `target` was read.
            target = min(target, state.log_end_offset)
            # Read after the target, for an append in between may roll; and under the lock, for a truncation
            # makes a closed segment the active one, and those that retention has removed get other names.
            segments = state.segments
            closed = [segment for segment in segments[:-1] if not segment.is_flushed]
            is_durable = target <= state.recovery_point and not closed and not self._pending_snapshots
            if state.retired or is_durable:
                return
            try:
                snapshots = self._folder.write_side_files(closed, self._pending_snapshots)
            except OSError as error:
                self._environment.write_failed(error)
                raise
            try:
                active = segments[-1]
                self._sync(snapshots, closed, active if active.base_offset < target else None)
            except OSError as error:
                if not state.retired and error.errno not in EXHAUSTED_ERRORS:
                    self._failure = error
                    self._environment.sync_failed(error)
                raise
            state.recovery_point = max(state.recovery_point, target)

    def _sync(self, snapshots: Sequence[Snapshot], closed: Sequence[Segment], active: Segment | None) -> None:
        """Files first, then the folders that name them."""
        files, directory = self._environment.files, self._state.directory
        for snapshot in snapshots:
            snapshot.sync(files, directory)
        unsynced = self._folder.take_unsynced()
        try:
            folders = (directory, directory_name(directory))
            for path in sorted(unsynced.difference(folders)):
                sync_file(files, path)
            for segment in closed:
                self._sync_segment(segment, with_indexes=True)
                segment.is_flushed = True
                if segment.is_idle:
                    segment.release_file()
            if active is not None:
                self._sync_segment(active, with_indexes=False)
            for folder in folders:
                if folder in unsynced:
                    files.sync_directory(folder)
        except OSError:
            self._folder.note_unsynced(unsynced)
            raise

    def _sync_segment(self, segment: Segment, *, with_indexes: bool) -> None:
        started_ns = processing_ns()
        segment.sync(with_indexes=with_indexes)
        self._environment.flushes.record(processing_ns() - started_ns)

    # --- the end ----------------------------------------------------------------------------------

    def close_in_order(self) -> bool:
        """Leave the log so that the next start needs no recovery; return whether that worked."""
        state = self._state
        active = state.active
        try:
            if active.has_torn_tail:
                active.cut_torn_tail()
            is_empty = state.log_end_offset == state.segments[0].base_offset
            if self.snapshot_offset != state.log_end_offset and not is_empty:
                self.take_snapshot(state.log_end_offset)
            self.flush()
            with self.lock:
                active.give_back_reserve()
                active.save_indexes(final=True)
                self._sync_segment(active, with_indexes=True)
        except (OSError, KafkaError) as error:
            logger.error("%s could not be closed in order: %s", state.name, error)
            return False
        return True
