"""The counts and the times of one partition, whose records are added in the order of their offsets. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pykafka_broker.arrow.core.profile.distinct import DistinctKeys
from pykafka_broker.arrow.core.profile.murmur3 import Hashes
from pykafka_broker.arrow.core.profile.results import PartitionProfile, Times
from pykafka_broker.arrow.core.stored_batches import OffsetRange
from pykafka_broker.arrow.core.varints import Numbers
from pykafka_broker.protocol.records.batch import LOG_APPEND_TIME, BatchHeader
from pykafka_broker.system.named_tuple import NamedTuple

NO_TIMES = Times(None, None, 0, None, 0, 0, 0, 0, 0, 0, None, None)


class Records(NamedTuple):
    """Some records of a partition, one behind the other."""

    sizes: Numbers
    timestamps: Numbers
    null_keys: int
    tombstones: int
    #: Of the keys that are not null.
    hashes: Hashes


class PartitionState:
    """What is known of a partition so far."""

    __slots__ = (
        "_batches",
        "_bytes",
        "_control_batches",
        "_keys",
        "_now_ms",
        "_null_keys",
        "_records",
        "_stored_bytes",
        "_times",
        "_tombstones",
        "_transactional_batches",
    )

    def __init__(self, now_ms: int) -> None:
        """`now_ms`: when reading began."""
        self._now_ms = now_ms
        self._records = self._bytes = self._null_keys = self._tombstones = 0
        self._batches = self._stored_bytes = self._transactional_batches = self._control_batches = 0
        self._times = NO_TIMES
        self._keys = DistinctKeys()

    @property
    def keys(self) -> DistinctKeys:
        """The different keys."""
        return self._keys

    def add_batch(self, header: BatchHeader) -> None:
        """Count a batch, but not its records."""
        self._stored_bytes += header.size_in_bytes
        if header.is_control:
            self._control_batches += 1
            return
        self._batches += 1
        self._transactional_batches += header.is_transactional
        if header.timestamp_type == LOG_APPEND_TIME and header.base_timestamp >= 0:
            delay_ms = header.max_timestamp - header.base_timestamp
            self._times = self._times._replace(
                least_append_delay_ms=_least(self._times.least_append_delay_ms, delay_ms),
                most_append_delay_ms=_most(self._times.most_append_delay_ms, delay_ms),
            )

    def add_records(self, records: Records, append_time: int) -> None:
        """Count the next records, of which `append_time` have the time of their append."""
        self._records += len(records.sizes)
        self._bytes += int(records.sizes.sum())
        self._null_keys += records.null_keys
        self._tombstones += records.tombstones
        self._keys.add(records.hashes)
        self._times = _with(self._times, records.timestamps, self._now_ms)._replace(
            append_time=self._times.append_time + append_time
        )

    def result(self, partition: int, read: OffsetRange) -> PartitionProfile:
        """The profile, once all of these offsets were read."""
        return PartitionProfile(
            partition=partition,
            start_offset=read.start,
            end_offset=read.end,
            records=self._records,
            missing_offsets=read.end - read.start - self._records,
            bytes=self._bytes,
            batches=self._batches,
            transactional_batches=self._transactional_batches,
            control_batches=self._control_batches,
            stored_bytes=self._stored_bytes,
            null_keys=self._null_keys,
            tombstones=self._tombstones,
            distinct_keys=self._keys.estimate(),
            times=self._times,
        )


def _with(times: Times, timestamps: Numbers, now_ms: int) -> Times:
    """The times, with those of the next records."""
    known = timestamps[timestamps >= 0]
    without = times.without_timestamp + len(timestamps) - len(known)
    if not known.size:
        return times._replace(without_timestamp=without)
    newest = np.maximum.accumulate(known)
    before = np.empty_like(newest)
    before[1:] = newest[:-1]
    before[0] = known[0]
    if times.newest_ms is not None:
        before[0] = times.newest_ms
        np.maximum(before, times.newest_ms, out=before)
    steps = known - before
    longest = int(steps.argmax())
    silence_ms, silence_from_ms = times.silence_ms, times.silence_from_ms
    if steps[longest] > silence_ms:
        silence_ms, silence_from_ms = int(steps[longest]), int(before[longest])
    latest_ms = int(newest[-1])
    return times._replace(
        oldest_ms=_least(times.oldest_ms, int(known.min())),
        newest_ms=_most(times.newest_ms, latest_ms),
        silence_ms=silence_ms,
        silence_from_ms=silence_from_ms,
        behind=times.behind + int((steps < 0).sum()),
        most_behind_ms=max(times.most_behind_ms, -int(steps.min())),
        ahead=times.ahead + int((known > now_ms).sum()),
        most_ahead_ms=max(times.most_ahead_ms, latest_ms - now_ms),
        without_timestamp=without,
    )


def times_of_all(partitions: Sequence[Times]) -> Times:
    """The times of several partitions together."""
    together = NO_TIMES
    for times in partitions:
        is_longer = times.silence_ms > together.silence_ms
        together = Times(
            oldest_ms=_least(together.oldest_ms, times.oldest_ms),
            newest_ms=_most(together.newest_ms, times.newest_ms),
            silence_ms=max(together.silence_ms, times.silence_ms),
            silence_from_ms=times.silence_from_ms if is_longer else together.silence_from_ms,
            behind=together.behind + times.behind,
            most_behind_ms=max(together.most_behind_ms, times.most_behind_ms),
            ahead=together.ahead + times.ahead,
            most_ahead_ms=max(together.most_ahead_ms, times.most_ahead_ms),
            without_timestamp=together.without_timestamp + times.without_timestamp,
            append_time=together.append_time + times.append_time,
            least_append_delay_ms=_least(together.least_append_delay_ms, times.least_append_delay_ms),
            most_append_delay_ms=_most(together.most_append_delay_ms, times.most_append_delay_ms),
        )
    return together


def _least(*numbers: int | None) -> int | None:
    return min((number for number in numbers if number is not None), default=None)


def _most(*numbers: int | None) -> int | None:
    return max((number for number in numbers if number is not None), default=None)
