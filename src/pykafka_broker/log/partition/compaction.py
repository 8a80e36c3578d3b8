"""Compaction of one log: the dirty part, the job for a round, and cleaned segments put in place.

The cleaner (`cleaner/cleaner.py`) decides when and does the work. While a round is under way retention leaves
the log alone; a truncation makes the round's result void.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial

from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import join
from pykafka_broker.log.disk.names import CLEANED_SUFFIX, DELETED_SUFFIX, LOG_SUFFIX, offset_file
from pykafka_broker.log.partition.cleaning_job import (
    CleanedSegment,
    CleaningAborted,
    Job,
    LastRecord,
    SegmentToClean,
)
from pykafka_broker.log.partition.density import Density
from pykafka_broker.log.partition.dirty import CleanableSegment, Dirt, LogFacts, dirt
from pykafka_broker.log.partition.flushing import Flusher
from pykafka_broker.log.partition.folder import LogFolder
from pykafka_broker.log.partition.state import LogState
from pykafka_broker.log.segment import swap
from pykafka_broker.log.segment.segment import Segment, segment_ends
from pykafka_broker.machine.illegal_state import IllegalState

logger = logging.getLogger("kafka.log.LogCleaner")


class Compaction:
    """Compacts one log, together with the cleaner."""

    __slots__ = (
        "_density",
        "_environment",
        "_flusher",
        "_folder",
        "_is_cut",
        "_is_paused",
        "_state",
        "_swapped",
        "is_under_way",
    )

    def __init__(
        self,
        state: LogState,
        environment: Environment,
        folder: LogFolder,
        flusher: Flusher,
        density: Density,
    ) -> None:
        self._state = state
        self._environment = environment
        self._folder = folder
        self._flusher = flusher
        self._density = density
        #: Closed segments may be replaced at any moment: retention removes none.
        self.is_under_way = False
        #: A move copies the log: no record that was there when it began may be removed.
        self._is_paused = False
        #: The log was truncated since the cleaning began: newer records, for which older ones were left out,
        #: may be gone.
        self._is_cut = False
        #: Replaced segments with the cleaned one that is in their place on disk; adopted on the event loop.
        self._swapped: list[tuple[tuple[Segment, ...], Segment]] = []

    @property
    def may_begin(self) -> bool:
        """Whether a round of compaction may begin: the log is served, whole, and not being cleaned."""
        return (
            not self._state.closed
            and self._state.offline is None
            and not self.is_under_way
            and not self._is_paused
            and not any(segment.trust.damages for segment in self._state.segments)
        )

    def pause(self) -> None:
        """Begin no round before `resume`; a round under way becomes void."""
        self._is_paused = self._is_cut = True

    def resume(self) -> None:
        """Rounds may begin again."""
        self._is_paused = False

    def dirt(self, now_ms: int) -> Dirt:
        """The part that a round of compaction would clean now. Worker-safe; may wait for the disk."""
        state = self._state
        self._density.begin()
        facts = [
            CleanableSegment(s.base_offset, s.size, partial(_max_timestamp, s), s.first_batch_timestamp)
            for s in state.segments
        ]
        return dirt(
            LogFacts(
                facts,
                state.config,
                state.log_start_offset,
                state.log_end_offset,
                state.last_stable_offset,
                state.cleaned_offset,
            ),
            now_ms,
        )

    def job(
        self, dirt: Dirt, now_ms: int, *, key_map_bytes: int, key_map_load: float, io_buffer_bytes: int
    ) -> Job:
        """The job of a round, as the log is now.

        Raises:
            CleaningAborted: the log was truncated since `dirt`, and nothing is left to clean.
        """
        self._is_cut = False
        state, config = self._state, self._state.config
        ends = segment_ends(state.segments, state.log_end_offset)
        # Without the active one, which a truncation since `dirt` may have made of a closed one.
        segments = [
            SegmentToClean(segment.base_offset, end, segment.size)
            for segment, end in zip(state.segments[:-1], ends[:-1], strict=True)
            if segment.base_offset < dirt.first_uncleanable_offset
        ]
        if not segments:
            raise CleaningAborted
        last_records = {
            producer.producer_id: LastRecord(
                producer.window[-1].last_offset if producer.window else -1, producer.producer_epoch
            )
            for producer in state.active_producers()
        }
        return Job(
            state.directory,
            state.name,
            segments,
            dirt.first_dirty_offset,
            now_ms,
            config.delete_retention_ms,
            config.segment_bytes,
            config.segment_index_bytes,
            config.index_interval_bytes,
            key_map_bytes,
            key_map_load,
            io_buffer_bytes,
            [txn for segment in state.segments for txn in segment.aborted.entries],
            last_records,
        )

    def swap_in(self, cleaned: CleanedSegment) -> None:
        """Put a cleaned segment in place on disk; `adopt` makes it the one that is read. Cleaner thread.

        Raises:
            CleaningAborted: the log has changed since it was cleaned.
            IllegalState: a segment to replace is not flushed; nothing has changed.
            OSError: the disk refused; `remove_leftovers` takes the swap back, or the next start completes it.
        """
        files = self._environment.files
        with self._flusher.lock:
            segments = self._state.segments
            old = tuple(s for s in segments[:-1] if s.base_offset in cleaned.replaced)
            if self._is_cut or len(old) != len(cleaned.replaced) or not self._is_whole(cleaned):
                raise CleaningAborted
            if not all(segment.is_flushed for segment in old):
                raise IllegalState(
                    f"{self._state.name} was cleaned before it was flushed: segments {cleaned.replaced}"
                )
            self._density.allow_gaps_below(segments[segments.index(old[-1]) + 1].base_offset)
            for segment in old:
                segment.pin()
            for steps in (
                swap.to_swap(cleaned.base_offset),
                swap.out_of_service(cleaned.base_offset, cleaned.replaced),
                swap.into_service(cleaned.base_offset),
            ):
                for old_name, new_name in steps:
                    assert new_name is not None
                    if not self._folder.rename_file(old_name, new_name):
                        raise CleaningAborted
                self._folder.sync()
            path = join(self._state.directory, offset_file(cleaned.base_offset, ""))
            new = Segment(
                files, path, cleaned.base_offset, cleaned.size_bytes, self._state.config.index_interval_bytes
            )
            new.aborted.note_saved(cleaned.aborted)
            new.is_flushed = new.trust.was_scanned = True
            self._swapped.append((old, new))

    def _is_whole(self, cleaned: CleanedSegment) -> bool:
        """Whether the cleaned file has its full size: the replaced segments cannot come back."""
        name = offset_file(cleaned.base_offset, LOG_SUFFIX) + CLEANED_SUFFIX
        try:
            file = self._environment.files.open(join(self._state.directory, name), writable=False)
            return file.size() == cleaned.size_bytes
        except FileNotFoundError:
            return False

    def holds(self, segments: Sequence[SegmentToClean]) -> bool:
        """Whether the log still has all these segments as they are described."""
        sizes = {segment.base_offset: segment.size for segment in self._state.segments}
        return not self._state.closed and all(sizes.get(s.base_offset) == s.size_bytes for s in segments)

    def adopt(self) -> None:
        """Read cleaned segments instead of those they replace, whose files are removed later."""
        while self._swapped:
            old, new = self._swapped.pop(0)
            segments = self._state.segments
            number = segments.index(old[0])
            self._state.segments = (*segments[:number], new, *segments[number + len(old) :])
            self._environment.bury(partial(_unlink_deleted, old), self._state.config.file_delete_delay_ms)

    def finish(self, end_offset: int) -> None:
        """A round has cleaned the log up to `end_offset`. That does not count if the log was truncated since:
        it may grow past that offset with other records.
        """
        self.adopt()
        if not self._is_cut:
            self._state.cleaned_offset = end_offset

    def failed(self, error: Exception) -> None:
        """The disk refused to take a cleaned segment: report it."""
        if isinstance(error, OSError):
            self._environment.write_failed(error)

    def remove_leftovers(self) -> None:
        """Remove the files of an unfinished round. Worker thread."""
        try:
            names = {entry.name for entry in self._environment.files.entries(self._state.directory)}
            for old_name, new_name in swap.undoing(frozenset(names)):
                assert new_name is not None
                self._folder.rename_file(old_name, new_name)
                names.add(new_name)
            self._folder.remove_files([name for name in names if name.endswith(CLEANED_SUFFIX)])
        except OSError as error:
            logger.debug(
                "%s: leftovers of a compaction stay until the next start: %s", self._state.name, error
            )

    def on_truncation(self) -> None:
        """The log is about to lose its end: records that justified the cleaning may go."""
        self._is_cut = True
        self.adopt()


def _max_timestamp(segment: Segment) -> int:
    return segment.max_timestamp


def _unlink_deleted(segments: Iterable[Segment]) -> None:
    for segment in segments:
        segment.files.remove_all(DELETED_SUFFIX)
