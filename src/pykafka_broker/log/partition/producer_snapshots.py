"""Producer state on disk: the snapshots of a partition's folder, and how the state is rebuilt from them and
the log.

Kafka takes a snapshot at every roll (named by the new segment's base offset) and at a clean stop (by the
log end offset), and after a restart knows one batch per producer. We know all five: from the `.window` file
beside the snapshot; where that is missing (a folder Apache Kafka wrote) or does not fit, from the batch
headers behind an older snapshot. Blocking; worker-safe as far as the segments are.
"""

from __future__ import annotations

import logging
from bisect import insort
from collections.abc import Iterable, Sequence
from operator import neg

from pykafka_broker.log.disk.files import FileSystem, join, sync_file
from pykafka_broker.log.disk.names import SNAPSHOT_SUFFIX, WINDOW_SUFFIX, offset_file, parse_offset_file
from pykafka_broker.log.partition.producers import (
    CorruptSnapshotError,
    ProducerState,
    ProducerStates,
    read_snapshot,
    restore_windows,
    snapshot_bytes,
    transaction_marker,
    window_bytes,
)
from pykafka_broker.log.segment.segment import Segment

logger = logging.getLogger("org.apache.kafka.storage.internals.log.ProducerStateManager")


class Snapshot:
    """The bytes of one snapshot, taken on the event loop and written in a worker thread."""

    __slots__ = ("data", "offset", "window")

    def __init__(self, offset: int, states: Iterable[ProducerState]) -> None:
        states = tuple(states)
        self.offset = offset
        self.data = snapshot_bytes(states)
        self.window = window_bytes(states) if states else b""

    def write(self, files: FileSystem, directory: str) -> None:
        """Write it; not durable before `sync`."""
        if self.window:
            files.write_file(
                join(directory, offset_file(self.offset, WINDOW_SUFFIX)), self.window, sync=False
            )
        files.write_file(join(directory, offset_file(self.offset, SNAPSHOT_SUFFIX)), self.data, sync=False)

    def sync(self, files: FileSystem, directory: str) -> None:
        """Make it durable, but for its names."""
        if self.window:
            sync_file(files, join(directory, offset_file(self.offset, WINDOW_SUFFIX)))
        sync_file(files, join(directory, offset_file(self.offset, SNAPSHOT_SUFFIX)))


def snapshot_offsets(names: Iterable[str]) -> list[int]:
    """Offsets of the snapshots among the files of a folder, newest first."""
    parsed = [parse_offset_file(name) for name in names]
    return sorted((p[0] for p in parsed if p is not None and p[1] == SNAPSHOT_SUFFIX), reverse=True)


class Rebuilt:
    """The state, and the offset of the snapshot it was built from (-1: none)."""

    __slots__ = ("producers", "snapshot_offset")

    def __init__(self, producers: ProducerStates, snapshot_offset: int) -> None:
        self.producers = producers
        self.snapshot_offset = snapshot_offset


class ProducerFiles:
    """The snapshots of one folder."""

    def __init__(self, files: FileSystem, directory: str, offsets: Iterable[int]) -> None:
        self._files = files
        self._directory = directory
        self._offsets = sorted(offsets, reverse=True)

    def rebuild(
        self,
        segments: Sequence[Segment],
        log_start_offset: int,
        log_end_offset: int,
        *,
        trusted_end: int | None = None,
    ) -> Rebuilt:
        """The producer state at the log end; unreadable and stray snapshots are removed.

        So are those from before the first segment: the log no longer tells what happened to their producers'
        transactions.

        Snapshots past `trusted_end`, the base offset of the first segment that had to be scanned, are removed
        too: a replay from an older one finds that segment's aborted transactions again.
        """
        first = segments[0].base_offset
        last = log_end_offset if trusted_end is None else min(trusted_end, log_end_offset)
        for offset in [offset for offset in self._offsets if not first <= offset <= last]:
            self._remove(offset)
            self._offsets.remove(offset)
        producers = ProducerStates(log_start_offset)
        newest: list[ProducerState] = []
        chosen = -1
        for offset in self._offsets:
            loaded = self._read(offset)
            if loaded is None:
                continue
            states, complete = loaded
            newest = newest or states
            # Without its window, a snapshot has one batch per producer: use one from before the last segment
            # and read that segment's batches. Producers silent since then keep one batch, as in Kafka.
            if complete or offset <= segments[-1].base_offset:
                producers.load(states, offset)
                chosen = offset
                break
        start_offset = chosen if chosen >= 0 else first
        for number, segment in enumerate(segments):
            following = segments[number + 1].base_offset if number + 1 < len(segments) else log_end_offset
            if following <= start_offset:
                continue
            if segment.base_offset > start_offset and segment.base_offset not in self._offsets:
                self._write(segment.base_offset, producers)
            replay(producers, segment, start_offset)
        producers.add_missing(newest)  # known to a snapshot, but not to the log any more
        producers.end_offset = log_end_offset
        bases = {segment.base_offset for segment in segments}
        for offset in self._offsets[1:]:
            if offset not in bases:
                self._remove(offset)
        return Rebuilt(producers, chosen)

    def _path(self, offset: int, suffix: str) -> str:
        return join(self._directory, offset_file(offset, suffix))

    def _read(self, offset: int) -> tuple[list[ProducerState], bool] | None:
        """(states, whether all their batches are known) of one snapshot; an unusable one is removed: None."""
        try:
            states = read_snapshot(self._files.read_file(self._path(offset, SNAPSHOT_SUFFIX)))
        except (CorruptSnapshotError, FileNotFoundError) as error:
            logger.warning("%s: dropping the producer snapshot at %d: %s", self._directory, offset, error)
            self._remove(offset)
            return None
        if not states:
            return states, True
        try:
            return states, restore_windows(states, self._files.read_file(self._path(offset, WINDOW_SUFFIX)))
        except (CorruptSnapshotError, FileNotFoundError):
            return states, False

    def _write(self, offset: int, producers: ProducerStates) -> None:
        """Write a snapshot that is missing, so that the next start replays less."""
        try:
            Snapshot(offset, producers.producers.values()).write(self._files, self._directory)
        except OSError as error:
            logger.warning("%s: no producer snapshot at %d: %s", self._directory, offset, error)
        else:
            insort(self._offsets, offset, key=neg)

    def _remove(self, offset: int) -> None:
        self._files.remove(self._path(offset, SNAPSHOT_SUFFIX))
        self._files.remove(self._path(offset, WINDOW_SUFFIX))


def replay(producers: ProducerStates, segment: Segment, start_offset: int) -> None:
    """Note a segment's batches from `start_offset` on, by their headers; restores aborted transactions."""
    begin = segment.index.position_before(start_offset) if start_offset > segment.base_offset else 0
    for position, header in segment.headers(begin):
        if header.base_offset < start_offset or header.producer_id < 0:
            continue
        marker = None
        if header.is_control:
            marker = transaction_marker(segment.file.pread(header.size_in_bytes, position), header)
        aborted = producers.note(header, marker)
        if aborted is not None and aborted not in segment.aborted.entries:
            segment.aborted.append(aborted)
