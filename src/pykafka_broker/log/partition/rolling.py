"""From one segment to the next: when that is due, and how the log goes on in a new one.

Making the files of a segment may wait for the disk. Where producers can wait for it, the append returns
`NamesDue` instead; a worker thread makes the files (`make_names`), and the append is repeated
(`log/manager/deferred_files.py`). While that goes on (`makes_names`) all such appends wait.
"""

from __future__ import annotations

import errno
import logging
from typing import Optional

from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.partition.append_errors import append_failed, storage_error
from pykafka_broker.log.partition.epoch_file import EpochFile
from pykafka_broker.log.partition.flushing import Flusher
from pykafka_broker.log.partition.folder import LogFolder
from pykafka_broker.log.partition.state import LogState
from pykafka_broker.log.segment.aborted_txns import AbortedTxn
from pykafka_broker.log.segment.index import MAX_RELATIVE_OFFSET
from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.crc import crc32c
from pykafka_broker.system.named_tuple import NamedTuple

logger = logging.getLogger("org.apache.kafka.storage.internals.log.UnifiedLog")


def is_due(state: LogState, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
    """Whether a batch of `size` bytes has to go to a new segment: the active one would get too large, its
    offsets too far apart, it is too old, or its indexes are full.

    A segment's age is measured by its records' timestamps, if they have any. Called by every append.
    """
    segment, config = state.active, state.config
    first_timestamp = segment.indexes.first_timestamp
    if first_timestamp < 0:
        first_timestamp, max_timestamp = segment.first_append_ms, now_ms
    return (
        segment.size + size > config.segment_bytes
        or last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
        or 0 <= first_timestamp < max_timestamp - state.roll_ms + segment.jitter_ms
        or segment.indexes.is_full(segment, config.segment_index_bytes)
    )


class NamesDue(NamedTuple):
    """An append has written nothing: it needs a file made or replaced, which may wait for the disk longer
    than any write does.
    """

    #: The roller of the log that needs the file.
    roller: Roller
    #: The base offset of the segment that has to begin; None if leader epochs are to be written.
    base_offset: Optional[int]


class Roller:
    """Begins the segments of one log. Event loop, except where said."""

    __slots__ = ("_environment", "_epoch_file", "_flusher", "_folder", "makes_names", "state")

    def __init__(
        self,
        state: LogState,
        environment: Environment,
        folder: LogFolder,
        flusher: Flusher,
        epoch_file: EpochFile,
    ) -> None:
        self.state = state
        self._environment = environment
        self._folder = folder
        self._flusher = flusher
        self._epoch_file = epoch_file
        #: A thread is making files of the log: appends with `defers_names` wait for it.
        self.makes_names = False
        state.active.jitter_ms = self.jitter_ms(state.active)

    def check_open(self, defers_names: bool) -> NamesDue | None:
        """The files that an append with `defers_names` must wait for; None if it may begin.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, the log is offline.
        """
        if self.state.offline is not None:
            raise storage_error(self.state.name, self.state.offline)
        return NamesDue(self, None) if defers_names and self.makes_names else None

    def make_ready(
        self,
        leader_epoch: int,
        size: int,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        now_ms: int,
        defers_names: bool,
    ) -> NamesDue | None:
        """What every append does before it writes a batch of `size` bytes to the active segment: go on in a
        new segment if that is due, and note the leader epoch if it begins. With `defers_names`, return the
        file that has to be made first. A log that is a copy may end before `first_offset`.

        Raises:
            KafkaError: RECORD_LIST_TOO_LARGE, no segment may get so large; FENCED_LEADER_EPOCH, a batch of a
                later epoch is in the log.
            OSError: the disk refuses, or the partition was deleted.
        """
        state = self.state
        if is_due(state, size, last_offset, max_timestamp, now_ms):
            if size > state.config.segment_bytes:
                raise KafkaError(
                    ErrorCode.RECORD_LIST_TOO_LARGE,
                    f"Message batch size is {size} bytes in append to partition {state.name}, "
                    f"which exceeds the maximum configured segment size of {state.config.segment_bytes}.",
                )
            if state.active.size:
                if defers_names:
                    return NamesDue(self, state.log_end_offset)
                self.roll_to(first_offset)
        if leader_epoch != state.latest_epoch:
            if defers_names and not self._epoch_file.is_saved:
                return NamesDue(self, None)
            self._epoch_file.start(leader_epoch, first_offset)
        return None

    def note_aborted(self, aborted: AbortedTxn) -> None:
        """Note an aborted transaction, whose marker is in the active segment."""
        self._folder.note_names()  # the file may be new
        try:
            self.state.active.aborted.append(aborted)
        except OSError as error:  # it is in memory, and in the log, from which the file is rebuilt
            self._environment.write_failed(error)

    def roll(self) -> None:
        """Close the active segment and start the next one at the log end offset; nothing happens if it is
        empty.
        """
        state = self.state
        if state.active.size:
            try:
                self.roll_to(state.log_end_offset)
            except OSError as error:
                raise append_failed(self._environment, state.name, state.active, error) from error

    def roll_to(self, base_offset: int) -> None:
        """Go on in a new segment that begins at `base_offset`.

        Raises:
            OSError: the disk refuses, or the partition was deleted.
        """
        active = self.state.active
        if active.has_torn_tail:
            active.cut_torn_tail()
        self._go_on_in(self._made(base_offset))

    def make_names(self, base_offset: int | None) -> Segment | None:
        """Write the leader epochs if that is due, then make and return the segment at `base_offset`, if one
        is due, for `adopt`. Worker thread; nothing may be appended meanwhile.

        Raises:
            OSError: the disk refuses, or the partition was deleted.
        """
        if not self._epoch_file.is_saved:
            self._epoch_file.save()
        return None if base_offset is None else self._made(base_offset)

    def adopt(self, new: Segment) -> None:
        """Go on in a segment that `make_names` has made; remove it if the log was truncated or appended to
        meanwhile. Otherwise the next start would take it for the end of the log, and a roll at its offset
        would find its files.

        Raises:
            OSError: the disk refuses to cut off the torn end of a failed append, or the removal.
        """
        state, active = self.state, self.state.active
        if not new.base_offset == state.log_end_offset > active.base_offset:
            logger.info(
                "%s ends at %d now: segment %d goes", state.name, state.log_end_offset, new.base_offset
            )
            new.files.remove_all()
            return
        if active.has_torn_tail:
            active.cut_torn_tail()
        self._go_on_in(new)

    def names_refused(self, error: OSError) -> KafkaError:
        """The answer to waiting appends when `make_names` or `adopt` has failed."""
        state = self.state
        if not state.retired:
            return append_failed(self._environment, state.name, state.active, error)
        return storage_error(state.name, error)

    def jitter_ms(self, segment: Segment) -> int:
        """The milliseconds, at most `segment.jitter.ms`, by which a segment is rolled before `segment.ms` has
        passed; differs from segment to segment, so that not all roll at once.
        """
        limit_ms = min(self.state.config.segment_jitter_ms, self.state.roll_ms)
        return crc32c(segment.path.encode()) % limit_ms if limit_ms > 0 else 0

    def _made(self, base_offset: int) -> Segment:
        new = self._folder.create_segment(base_offset)
        if new is None:
            raise OSError(errno.ESTALE, "the partition was deleted")
        return new

    def _go_on_in(self, new: Segment) -> None:
        state = self.state
        new.jitter_ms = self.jitter_ms(new)
        state.segments = (*state.segments, new)
        state.active = new
        self._folder.note_names()
        self._flusher.take_snapshot(new.base_offset)
        self._environment.run_in_turn(self._flusher.flush_closed_in_background)
