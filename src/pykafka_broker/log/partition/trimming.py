"""Removal from a log: by retention, by DeleteRecords, by truncation.

Event loop, except where said. Segments that retention removes leave the log at once; their files are renamed
in a worker thread, and removed `file.delete.delay.ms` later. Truncation waits for the disk: nothing else may
happen to the log meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import join
from pykafka_broker.log.disk.names import DELETED_SUFFIX, offset_file
from pykafka_broker.log.partition.compaction import Compaction
from pykafka_broker.log.partition.density import Density
from pykafka_broker.log.partition.epoch_file import EpochFile
from pykafka_broker.log.partition.flushing import Flusher
from pykafka_broker.log.partition.folder import LogFolder
from pykafka_broker.log.partition.producer_snapshots import ProducerFiles, snapshot_offsets
from pykafka_broker.log.partition.read_plan import segment_number
from pykafka_broker.log.partition.retention import Expired, SegmentFacts, expired_segments
from pykafka_broker.log.partition.rolling import NamesDue, Roller
from pykafka_broker.log.partition.state import LogState
from pykafka_broker.log.segment.segment import Segment, segment_ends
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger("org.apache.kafka.storage.internals.log.UnifiedLog")


class LogTrimmer:
    """Removes from one log."""

    __slots__ = (
        "_compaction",
        "_density",
        "_environment",
        "_epoch_file",
        "_flusher",
        "_folder",
        "_roller",
        "_state",
    )

    def __init__(
        self,
        state: LogState,
        environment: Environment,
        folder: LogFolder,
        flusher: Flusher,
        epoch_file: EpochFile,
        roller: Roller,
        density: Density,
        compaction: Compaction,
    ) -> None:
        self._state = state
        self._environment = environment
        self._folder = folder
        self._flusher = flusher
        self._epoch_file = epoch_file
        self._roller = roller
        self._density = density
        self._compaction = compaction

    # --- the beginning ----------------------------------------------------------------------------

    def delete_records(self, before_offset: int) -> int:
        """Carry out DeleteRecords: raise the log start offset to `before_offset` (-1: the high watermark).

        Returns the log start offset, which may have been higher before.
        """
        state = self._state
        if before_offset == -1:
            before_offset = state.high_watermark
        if before_offset < 0 or before_offset > state.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {before_offset} of partition {state.name} "
                f"since it is larger than the high watermark {state.high_watermark}",
            )
        self.advance_log_start_offset(before_offset)
        return state.log_start_offset

    def advance_log_start_offset(self, offset: int) -> None:
        """Raise the log start offset; segments wholly below go at the next `apply_retention`."""
        state = self._state
        if offset <= state.log_start_offset:
            return
        state.log_start_offset = offset
        state.high_watermark = max(state.high_watermark, offset)
        state.producers.on_high_watermark(offset)
        state.update_last_stable_offset()
        if state.epochs.truncate_from_start(offset):
            self._epoch_file.save_later()
        state.wake_waiting()

    def names_due(self, now_ms: int) -> NamesDue | None:
        """The new segment that `apply_retention` needs if all segments have expired; else None.

        Waits for no disk if `expired` was called before.
        """
        state = self._state
        if self._is_busy or not state.active.size:
            return None
        is_all = self.expired(now_ms).segments == len(state.segments)
        return NamesDue(self._roller, state.log_end_offset) if is_all else None

    def apply_retention(self, now_ms: int) -> int:
        """Remove the segments that are due by start offset, size and time; returns how many.

        Waits for no disk if the caller has called `expired` and has made the segment of `names_due`.
        """
        state = self._state
        if self._is_busy:
            return 0
        expired = self.expired(now_ms)
        count = expired.segments
        if count == len(state.segments):
            try:
                self._roller.roll()
            except KafkaError:
                if count == 1:
                    raise
                count -= 1  # there is no room for another segment before the others have gone
        if count == 0:
            return 0
        gone = state.segments[:count]
        state.segments = state.segments[count:]
        logger.info(
            "%s: deleting %d segments up to offset %d, %d bytes (%s)",
            state.name,
            len(gone),
            state.segments[0].base_offset,
            sum([segment.size for segment in gone]),
            ", ".join(sorted(set(expired.reasons))),
        )
        self._discard(gone)
        self.advance_log_start_offset(state.segments[0].base_offset)
        return len(gone)

    @property
    def _is_busy(self) -> bool:
        """Whether a thread replaces closed segments, or makes the next one."""
        return self._compaction.is_under_way or self._roller.makes_names

    def expired(self, now_ms: int) -> Expired:
        """The segments that retention would remove now. Worker-safe; may wait for the disk."""
        state = self._state
        segments, log_end_offset = state.segments, state.log_end_offset
        facts = [
            SegmentFacts(s.base_offset, end, s.size, s.newest_timestamp_or_mtime)
            for s, end in zip(segments, segment_ends(segments, log_end_offset), strict=True)
        ]
        return expired_segments(
            facts,
            state.config,
            now_ms=now_ms,
            log_start_offset=state.log_start_offset,
            high_watermark=state.high_watermark,
        )

    def _discard(self, segments: Iterable[Segment]) -> None:
        """Rename the files of segments, and remove them after `file.delete.delay.ms`; in worker threads."""
        gone = tuple(segments)

        def unlink() -> None:
            for segment in gone:
                segment.files.remove_all(DELETED_SUFFIX)

        def set_aside() -> None:
            try:
                with self._flusher.lock:
                    self._folder.set_segments_aside(gone, DELETED_SUFFIX)
            except OSError as error:
                self._environment.write_failed(error)
            # Not before: on a slow disk the files would still have their old names when it is due.
            self._environment.bury(unlink, self._state.config.file_delete_delay_ms)

        self._environment.run_later(set_aside)

    # --- the end ----------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Forget everything from `offset` on (a follower whose leader has another history). May wait for
        disks.
        """
        state = self._state
        if offset >= state.log_end_offset:
            # An epoch without a record here is part of the other history as well.
            self._epoch_file.truncate_from_end(offset)
            if state.producers.end_offset != state.log_end_offset:  # an earlier truncation could not do it
                self._rebuild_producers()
            return
        if offset < state.segments[0].base_offset:
            self.reset_to(offset)
            return
        logger.info("%s: truncating to offset %d", state.name, offset)
        with self._flusher.lock:
            self._compaction.on_truncation()
            gone = state.segments[segment_number(state.segments, offset) + 1 :]
            for segment in reversed(gone):  # a crash, or a refusal of the disk, in between leaves no hole
                segment.files.remove_all()
                state.segments = state.segments[:-1]
                state.active = active = state.segments[-1]
                active.jitter_ms = self._roller.jitter_ms(active)
                active.is_flushed = False  # it may be closed again at once
                self._end_at(segment.base_offset)
            if gone:
                # Otherwise a power cut may bring them back, behind a segment that was cut or has grown since.
                self._folder.sync()
            state.active.truncate_to(offset)
            self._end_at(offset)
            self._epoch_file.truncate_from_end(offset)
            self._rebuild_producers()

    def reset_to(self, offset: int) -> None:
        """Throw everything away and start empty at `offset`. May wait for disks.

        Raises:
            OSError: the disk refused; this log is out of service, because some of its files are gone.
        """
        try:
            self._reset_to(offset)
        except OSError as error:
            self._state.offline = error
            raise

    def _reset_to(self, offset: int) -> None:
        state = self._state
        logger.info("%s: starting over at offset %d", state.name, offset)
        self._density.copies_gaps()
        with self._flusher.lock:
            self._compaction.on_truncation()
            for segment in state.segments:
                segment.files.remove_all()
            self._folder.sync()  # otherwise a power cut may bring some back, beside the new one
            path = join(state.directory, offset_file(offset, ""))
            interval_bytes = state.config.index_interval_bytes
            state.active = Segment.create(self._environment.files, path, offset, interval_bytes)
            state.active.jitter_ms = self._roller.jitter_ms(state.active)
            state.segments = (state.active,)
            self._folder.note_names()
            state.log_start_offset = offset
            state.epochs.truncate_from_start(offset)
            self._end_at(offset)
            self._epoch_file.truncate_from_end(offset)
            self._rebuild_producers()

    def skip_to(self, offset: int) -> None:
        """Move the log end to a later offset: the leader's log has no records between, after compaction."""
        state = self._state
        self._density.copies_gaps()
        before = state.active
        self._roller.roll_to(offset)
        state.log_end_offset = state.producers.end_offset = offset
        if before.size == 0:
            state.segments = (*state.segments[:-2], state.active)
            before.files.remove_all()

    def _end_at(self, offset: int) -> None:
        """Lower the log end, and every offset that may not be past it."""
        state = self._state
        state.log_end_offset = offset
        state.log_start_offset = min(state.log_start_offset, offset)
        if state.cleaned_offset is not None:
            state.cleaned_offset = min(state.cleaned_offset, offset)
        state.recovery_point = min(state.recovery_point, offset)
        state.high_watermark = max(min(state.high_watermark, offset), state.log_start_offset)

    def _rebuild_producers(self) -> None:
        """Find out the producers at the new log end, and wake those that wait for the log."""
        state = self._state
        self._flusher.drop_pending_snapshots()
        files = self._environment.files
        names = [entry.name for entry in files.entries(state.directory)]
        rebuilt = ProducerFiles(files, state.directory, snapshot_offsets(names)).rebuild(
            state.segments, state.log_start_offset, state.log_end_offset
        )
        state.producers = rebuilt.producers
        self._flusher.snapshot_offset = rebuilt.snapshot_offset
        state.producers.on_high_watermark(state.high_watermark)
        state.update_last_stable_offset()
        state.wake_waiting()
