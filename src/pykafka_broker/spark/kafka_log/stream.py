"""The position of a stream, and the splits of each of its batches. Runs on the driver.

Spark 4.0 asks a stream in Python only for the end of the next batch, without its start: so the stream
remembers the end of the last batch, and goes on from there as far as `maxOffsetsPerTrigger` lets it. After a
restart Spark hands it the end of the last batch before it asks (`at`).

The checkpoint does not have the start of a stream before its first batch is done. A stream that starts at the
end has a first batch without records, so that a restart before that loses no record that came meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from pykafka_broker.arrow.core.stored_batches import OffsetRange
from pykafka_broker.arrow.folder import GrowingEnd
from pykafka_broker.arrow.partition_folder import PartitionFolder
from pykafka_broker.log.disk.files import FileSystem
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.kafka_log.folders import Folders, find_folders, insist_on_chosen
from pykafka_broker.spark.kafka_log.losses import report_loss
from pykafka_broker.spark.kafka_log.offsets import Positions, capped
from pykafka_broker.spark.kafka_log.options import EVERYTHING_UP_TO, LATEST, LogOptions
from pykafka_broker.spark.kafka_log.planning import (
    Split,
    end_of,
    insist_on_partitions,
    isolation_level,
    offset_at,
    splits_of,
)

AT_END = EVERYTHING_UP_TO[LATEST]


class LogStream:
    """A stream over log folders."""

    def __init__(self, files: FileSystem, options: LogOptions) -> None:
        self._files = files
        self._options = options
        self._start = AT_END if options.start is None else options.start
        self._first: Positions | None = None
        #: The end of the last batch, if it is known.
        self.position: Positions | None = None
        #: By partition, with the id of its topic.
        self._ends: dict[tuple[TopicPartition, str | None], GrowingEnd] = {}
        #: The end offsets of this stream, whatever is written later; None: it goes on with later records.
        self._last: dict[TopicPartition, int] | None = None

    def first(self) -> Positions:
        """The positions at which a new stream begins.

        Raises:
            SparkError: a topic, a partition, an offset or a time is not there.
            KafkaError: a log is damaged.
        """
        if self._first is not None:
            return self._first
        options, start = self._options, self._start
        found = find_folders(self._files, options)
        insist_on_chosen(options, found)
        insist_on_partitions(start, found, "The start")
        offsets = {}
        for name, folder in found.items():
            low, high = folder.start_offset(), end_of(folder, options)
            offset = offset_at(name, folder, high, start, none_is_end=options.may_start_at_end)
            if not low <= offset <= max(low, high):
                raise SparkError(f"{name} has no offset {offset}: it has those from {low} up to {high}.")
            offsets[name] = offset
        self._first = Positions(offsets, _topic_ids(found))
        return self._first

    def at(self, position: Positions) -> None:
        """Go on from a position."""
        self.position = position

    def end_here(self) -> None:
        """Read no further than the logs go now.

        Raises:
            KafkaError: a log is damaged.
        """
        found = find_folders(self._files, self._options)
        self._last = {name: end_of(folder, self._options) for name, folder in found.items()}

    def advance(self, most: int | None) -> Positions:
        """The end of the next batch, about `most` offsets after the end of the last one; that end itself if
        nothing was written since.

        Raises:
            SparkError: records are missing, and that is an error.
            KafkaError: a log is damaged.
        """
        if self.position is None:
            self.position = self.first()
            if self._start == AT_END:
                return self.position
        before = self.position
        found = find_folders(self._files, self._options)
        ids = _topic_ids(found)
        for name in sorted(before.offsets.keys() - found.keys()):
            self._lose(f"The folder of {name} is gone, which the stream was reading.")
        begins: dict[TopicPartition, int] = {}
        ends: dict[TopicPartition, int] = {}
        for name, folder in found.items():
            begin = self._begin(name, before, ids)
            end = self._end(name, folder, ids.get(name.topic), begin)
            if end < begin:
                self._lose(f"{name} ends at offset {end}, and the stream has read up to {begin}.")
                begin = end
            if self._last is not None:
                end = min(end, max(self._last.get(name, begin), begin))
            begins[name] = self._insist_on_start(name, folder, OffsetRange(begin, end))
            ends[name] = end
        self._ends = {key: each for key, each in self._ends.items() if key[0] in found}
        self.position = Positions(capped(begins, ends, most), ids)
        return self.position

    def splits(self, start: Positions, end: Positions) -> list[Split]:
        """The splits of the batch between two positions.

        Raises:
            SparkError: records are missing, and that is an error.
        """
        found = find_folders(self._files, self._options)
        ids = _topic_ids(found)
        ranges = {}
        for name, stop in end.offsets.items():
            begin = self._begin(name, start, end.topic_ids)
            if begin >= stop:
                continue
            if name not in found:
                self._lose(f"The folder of {name} is gone, and offsets {begin} to {stop - 1} with it.")
            elif self._is_same(name.topic, end.topic_ids, ids):
                begin = self._insist_on_start(name, found[name], OffsetRange(begin, stop))
                if begin < stop:
                    ranges[name] = OffsetRange(begin, stop)
        return splits_of(ranges, found, self._options)

    def _begin(self, name: TopicPartition, before: Positions, ids: Mapping[str, str]) -> int:
        """The start offset of the next batch: 0 for a new partition, even of a new topic."""
        return before.offsets.get(name, 0) if self._is_same(name.topic, before.topic_ids, ids) else 0

    def _is_same(self, topic: str, known: Mapping[str, str], ids: Mapping[str, str]) -> bool:
        """Whether a topic has the same id as before; True if one is unknown."""
        before, now = known.get(topic), ids.get(topic)
        if before is None or now is None or before == now:
            return True
        self._lose(
            f"Topic '{topic}' was created anew since the stream read it (its id is {now}, and was {before}): "
            "what the old one had is gone."
        )
        return False

    def _end(self, name: TopicPartition, folder: PartitionFolder, topic_id: str | None, begin: int) -> int:
        """The end offset of a log now; `begin` if it has just been removed."""
        with suppress(FileNotFoundError):
            end = self._ends.get((name, topic_id))
            if end is None:
                end = self._ends[name, topic_id] = GrowingEnd(folder, isolation_level(self._options))
            return end.now()
        return begin

    def _insist_on_start(self, name: TopicPartition, folder: PartitionFolder, wanted: OffsetRange) -> int:
        """The first of these offsets that is there."""
        if wanted.start >= wanted.end:
            return wanted.start
        low = folder.start_offset()
        if low <= wanted.start:
            return wanted.start
        first = min(low, wanted.end)
        self._lose(
            f"Offsets {wanted.start} to {first - 1} of {name} were deleted before the stream read them."
        )
        return first

    def _lose(self, what: str) -> None:
        report_loss(what, is_error=self._options.fail_on_data_loss)


def _topic_ids(found: Folders) -> dict[str, str]:
    """The id of each topic whose folders have one."""
    ids: dict[str, str] = {}
    for name, folder in found.items():
        if name.topic not in ids and (topic_id := folder.topic_id()) is not None:
            ids[name.topic] = topic_id
    return ids
