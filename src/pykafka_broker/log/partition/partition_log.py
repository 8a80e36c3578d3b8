"""The log of one partition. What it is: `state`; how it is read: `readable`; how it grows: `writable`. Here,
what goes away: by retention, DeleteRecords, truncation.

Left out on purpose: remote (tiered) storage, message formats before v2.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import join
from pykafka_broker.log.disk.names import DELETED_SUFFIX, offset_file
from pykafka_broker.log.partition.compaction import Compaction
from pykafka_broker.log.partition.leader_epochs import LeaderEpochs
from pykafka_broker.log.partition.producer_snapshots import ProducerFiles, snapshot_offsets
from pykafka_broker.log.partition.producers import AppendOrigin, ProducerStates
from pykafka_broker.log.partition.read_plan import FoundOffset, ReadPlan, segment_number
from pykafka_broker.log.partition.retention import Expired, SegmentFacts, expired_segments
from pykafka_broker.log.partition.state import Limit
from pykafka_broker.log.partition.writer import AppendResult, NamesDue, WritableLog
from pykafka_broker.log.segment.segment import Segment, segment_ends
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

__all__ = ["AppendOrigin", "AppendResult", "FoundOffset", "Limit", "NamesDue", "PartitionLog", "ReadPlan"]

logger = logging.getLogger(__name__)


class PartitionLog(WritableLog):
    """One partition's segments and state. Made by `loading.open_log`."""

    __slots__ = ("compaction",)

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
        super().__init__(
            environment,
            directory,
            topic,
            partition,
            topic_id,
            config,
            segments=segments,
            log_start_offset=log_start_offset,
            log_end_offset=log_end_offset,
            recovery_point=recovery_point,
            high_watermark=high_watermark,
            epochs=epochs,
            producers=producers,
            snapshot_offset=snapshot_offset,
            is_new=is_new,
        )
        #: What compaction does to this log.
        self.compaction = Compaction(self, environment, self._flusher, self.density)

    @property
    def was_compacted(self) -> bool:
        return self.config.is_compacted or self.compaction.cleaned_offset is not None

    @property
    def noted_density(self) -> int | None:
        return self.density.noted

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
            self._save_epochs_later()
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
            self._active.jitter_ms = self._jitter_ms(self._active)
            for segment in reversed(gone):  # a crash in between leaves no hole
                segment.files.remove_all()
            self._active.truncate_to(offset)
            self._end_at(offset)

    def reset_to(self, offset: int) -> None:
        """Throw everything away and start empty at `offset`. May wait for disks."""
        logger.info("%s: starting over at offset %d", self.name, offset)
        self._copies_gaps()
        with self._flusher.lock:
            self.compaction.on_truncation()
            for segment in self.segments:
                segment.files.remove_all()
            path = join(self.directory, offset_file(offset, ""))
            self._active = Segment.create(
                self._environment.files, path, offset, self.config.index_interval_bytes
            )
            self._active.jitter_ms = self._jitter_ms(self._active)
            self.segments = (self._active,)
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)
            self._end_at(offset)

    def skip_to(self, offset: int) -> None:
        """End at a later offset: what lay between was compacted away in the log that this is a copy of."""
        self._copies_gaps()
        if self._active.size == 0:
            self.segments = self.segments[:-1]
            self._active.files.remove_all()
        self._roll(offset)
        self.log_end_offset = self.producers.end_offset = offset

    def take_over(self, source: PartitionLog, directory: str) -> None:
        """Be from now on what `source` was, which has nothing that is not here, in the folder `directory`.

        Its place, its producers with what they have under way, and who waits for it go on here; `source` can
        only be read from now on. The new name is durable with the next flush.

        Raises:
            OSError: the folder cannot be renamed; nothing has changed.
        """
        assert self.log_end_offset == source.log_end_offset
        self.rename_folder(directory)
        self.config = source.config
        self.producers = source.producers
        self.epochs = LeaderEpochs(source.epochs.entries)
        self._epochs_are_saved = False
        self._latest_epoch = source.latest_epoch
        self.log_start_offset = source.log_start_offset
        self.high_watermark = source.high_watermark
        self.last_stable_offset = source.last_stable_offset
        self.compaction.cleaned_offset = source.compaction.cleaned_offset
        self.density.ends_copying(self.log_end_offset)
        self.on_advance = source.on_advance
        if self.log_end_offset > self.segments[0].base_offset:
            self._take_snapshot(self.log_end_offset)

    def rename_folder(self, directory: str) -> None:
        """Give the folder another name in the same log directory, durable with the next flush.

        Raises:
            OSError: it cannot be renamed; nothing has changed.
        """
        with self._flusher.lock:
            self._environment.files.rename(self.directory, directory)
            self.directory = directory
            self._flusher.relocate(directory)
            for segment in self.segments:
                segment.files.path = join(directory, offset_file(segment.base_offset, ""))

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

    def apply_retention(self, now_ms: int, *, defers_names: bool = False) -> int:
        """Remove the segments that are due by start offset, size and time; returns how many.

        Where that is to wait for no disk, `expired` has been asked before.

        Raises:
            NamesDue: everything has expired, so another segment has to be begun before; with `defers_names`.
        """
        if self.compaction.is_under_way or (self.makes_names and defers_names):
            return 0
        expired = self.expired(now_ms)
        count = expired.segments
        if count == len(self.segments):
            if defers_names and self._active.size:
                raise NamesDue(self, self.log_end_offset)
            try:
                self.roll()
            except KafkaError:
                if count == 1:
                    raise
                count -= 1  # there is no room for another segment before the others have gone
        if count == 0:
            return 0
        gone = self.segments[:count]
        self.segments = self.segments[count:]
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

    def expired(self, now_ms: int) -> Expired:
        """What retention would remove now. Worker-safe; may wait for the disk, for each segment once."""
        segments, log_end_offset = self.segments, self.log_end_offset
        facts = [
            SegmentFacts(s.base_offset, end, s.size, s.newest_timestamp_or_mtime)
            for s, end in zip(segments, segment_ends(segments, log_end_offset), strict=True)
        ]
        return expired_segments(
            facts,
            self.config,
            now_ms=now_ms,
            log_start_offset=self.log_start_offset,
            high_watermark=self.high_watermark,
        )

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
                segment.files.remove_all(DELETED_SUFFIX)

        self._environment.run_later(set_aside)
        self._environment.bury(unlink, self.config.file_delete_delay_ms)

    def expire_producers(self, now_ms: int) -> int:
        """Forget producers idle for `producer.id.expiration.ms`; returns how many."""
        return self.producers.expire(now_ms, self.config.producer_id_expiration_ms)
