"""The state of a topic: batches are added to it, or the state of other partitions is merged into it. Pure.

What it holds: 16 KiB and some counts for each partition, `COUNTERS` keys and `HEADER_COUNTERS` names of
headers with their first `frequent.NAME_BYTES` bytes, three times 16 KiB of counts of sizes, and the looks of
`content.SAMPLED` records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import add

import numpy as np
import numpy.typing as npt

from pykafka_broker.arrow.core.decoding import Decoded, Section, Spans
from pykafka_broker.arrow.core.profile.content import Look, Sample, look
from pykafka_broker.arrow.core.profile.distinct import STANDARD_ERROR, DistinctKeys
from pykafka_broker.arrow.core.profile.frequent import Frequent
from pykafka_broker.arrow.core.profile.murmur3 import hash64
from pykafka_broker.arrow.core.profile.partition import PartitionState, Records, times_of_all
from pykafka_broker.arrow.core.profile.results import CodecUse, HeaderName, HotKey, TopicProfile
from pykafka_broker.arrow.core.profile.sizes import SIZE_ERROR, SizeCounts
from pykafka_broker.arrow.core.stored_batches import OffsetRange
from pykafka_broker.arrow.core.varints import Octets, Positions
from pykafka_broker.protocol.records.batch import HEADER_BYTES, LOG_APPEND_TIME, BatchHeader, Codec

#: The keys that are counted: none with more than one of 1,001 records is missed.
COUNTERS = 1_000
#: The names of headers that are counted.
HEADER_COUNTERS = 100

Rows = npt.NDArray[np.intp]


class TopicState:
    """What is known of some partitions of a topic."""

    __slots__ = ("_codecs", "_headers", "_keys", "_now_ms", "_partitions", "_sample", "_sizes")

    def __init__(self, now_ms: int) -> None:
        """`now_ms`: when reading began."""
        self._now_ms = now_ms
        self._partitions: dict[int, PartitionState] = {}
        self._keys = Frequent(COUNTERS)
        self._headers = Frequent(HEADER_COUNTERS)
        #: Of keys, values and records.
        self._sizes = SizeCounts(), SizeCounts(), SizeCounts()
        #: The numbers of `CodecUse`.
        self._codecs: dict[Codec, list[int]] = {}
        self._sample = Sample()

    def add_marker(self, partition: int, header: BatchHeader) -> None:
        """Count a control batch."""
        self._partition(partition).add_batch(header)

    def add(self, sections: Sequence[Section], decoded: Decoded) -> None:
        """Count some batches, and their wanted records, which were decoded with their headers. The batches of
        each partition come in the order of their offsets.
        """
        for section in sections:
            self._add_batch(section)
        octets = np.frombuffer(decoded.data, np.uint8)
        rows = np.arange(len(decoded.offsets)) if decoded.wanted is None else decoded.wanted
        keyed, keys_at, keys_end = _chosen(decoded.keys, rows)
        valued, values_at, values_end = _chosen(decoded.values, rows)
        hashes = hash64(octets, keys_at, keys_end)
        sizes = np.diff(decoded.ends, prepend=0)[rows]
        self._keys.add(octets, keys_at, keys_end, hashes)
        for counts, counted in zip(
            self._sizes, (keys_end - keys_at, values_end - values_at, sizes), strict=True
        ):
            counts.add(counted)
        self._add_headers(octets, decoded)

        partition_of_section = np.array([section.partition for section in sections], np.int64)
        partitions = partition_of_section[decoded.sections[rows]]
        self._add_sample(partitions, rows, decoded)
        is_appended = np.array(
            [section.header.timestamp_type == LOG_APPEND_TIME for section in sections], bool
        )[decoded.sections[rows]]
        cuts = (np.flatnonzero(np.diff(partitions)) + 1).tolist()
        for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
            if begin == end:
                continue
            first_key, last_key = np.searchsorted(keyed, (begin, end)).tolist()
            first_value, last_value = np.searchsorted(valued, (begin, end)).tolist()
            self._partition(int(partitions[begin])).add_records(
                Records(
                    sizes=sizes[begin:end],
                    timestamps=decoded.timestamps[rows[begin:end]],
                    null_keys=end - begin - (last_key - first_key),
                    tombstones=end - begin - (last_value - first_value),
                    hashes=hashes[first_key:last_key],
                ),
                append_time=int(is_appended[begin:end].sum()),
            )

    def merge(self, other: TopicState) -> None:
        """Add what is known of other partitions, of which this state has none."""
        self._partitions.update(other._partitions)
        self._keys.merge(other._keys)
        self._headers.merge(other._headers)
        for counts, others in zip(self._sizes, other._sizes, strict=True):
            counts.merge(others)
        for codec, numbers in other._codecs.items():
            self._add_codec(codec, numbers)
        self._sample.merge(other._sample)

    # -- batches
    # ----------

    def _partition(self, number: int) -> PartitionState:
        found = self._partitions.get(number)
        if found is None:
            found = self._partitions[number] = PartitionState(self._now_ms)
        return found

    def _add_batch(self, section: Section) -> None:
        header = section.header
        self._partition(section.partition).add_batch(header)
        size = HEADER_BYTES + len(section.data)
        self._add_codec(header.codec, [1, header.records_count, header.size_in_bytes, size])

    def _add_codec(self, codec: Codec, numbers: list[int]) -> None:
        before = self._codecs.get(codec)
        self._codecs[codec] = numbers if before is None else list(map(add, before, numbers))

    # -- records
    # ----------

    def _add_headers(self, octets: Octets, decoded: Decoded) -> None:
        rows, spans, wanted = decoded.with_headers, decoded.headers, decoded.wanted
        if rows is None or spans is None:
            return
        names_at, names_end = spans.names_at, spans.names_end
        if wanted is not None:
            chosen = np.repeat(np.isin(rows, wanted), spans.counts)
            names_at, names_end = names_at[chosen], names_end[chosen]
        self._headers.add(octets, names_at, names_end)

    def _add_sample(self, partitions: npt.NDArray[np.int64], rows: Rows, decoded: Decoded) -> None:
        def look_at(number: int) -> tuple[Look, Look]:
            row = rows[number]
            return look(_bytes(decoded, decoded.keys, row)), look(_bytes(decoded, decoded.values, row))

        self._sample.add(partitions, decoded.offsets[rows], look_at)

    # -- the result
    # -------------

    def result(self, topic: str, read: Mapping[int, OffsetRange], hot_keys: int) -> TopicProfile:
        """The profile, once all of these offsets were read, with so many of the most frequent keys."""
        partitions = [self._partition(number).result(number, offsets) for number, offsets in read.items()]
        distinct = DistinctKeys()
        for number in read:
            distinct.merge(self._partition(number).keys)
        distinct_keys = distinct.estimate()
        hot, other_keys_at_most = self._keys.most_frequent(hot_keys)
        headers, other_headers_at_most = self._headers.most_frequent(HEADER_COUNTERS)
        key_sizes, value_sizes, record_sizes = (counts.result() for counts in self._sizes)
        key_content, value_content = self._sample.results()

        def total(name: str) -> int:
            return sum(getattr(each, name) for each in partitions)

        return TopicProfile(
            topic=topic,
            records=total("records"),
            missing_offsets=total("missing_offsets"),
            bytes=total("bytes"),
            batches=total("batches"),
            transactional_batches=total("transactional_batches"),
            control_batches=total("control_batches"),
            stored_bytes=total("stored_bytes"),
            null_keys=total("null_keys"),
            tombstones=total("tombstones"),
            record_skew=_skew([each.records for each in partitions]),
            byte_skew=_skew([each.bytes for each in partitions]),
            distinct_keys=distinct_keys,
            distinct_keys_error=STANDARD_ERROR,
            partitions_per_key=round(total("distinct_keys") / distinct_keys, 2) if distinct_keys else None,
            hot_keys=[HotKey(_text(each.name), *each[1:]) for each in hot],
            other_keys_at_most=other_keys_at_most,
            key_sizes=key_sizes,
            value_sizes=value_sizes,
            record_sizes=record_sizes,
            size_error=SIZE_ERROR,
            headers=[HeaderName(_text(each.name), *each[1:]) for each in headers],
            other_headers_at_most=other_headers_at_most,
            codecs=[
                CodecUse(codec.name.lower(), *numbers) for codec, numbers in sorted(self._codecs.items())
            ],
            key_content=key_content,
            value_content=value_content,
            times=times_of_all([each.times for each in partitions]),
            partitions=partitions,
        )


def _chosen(spans: Spans, rows: Rows) -> tuple[Rows, Positions, Positions]:
    """Which of the rows have a key, or a value, that is not null, and the positions of these."""
    at, ends = spans.at[rows], spans.ends[rows]
    if spans.nulls is None:
        return np.arange(len(rows)), at, ends
    there = np.flatnonzero(~spans.nulls[rows])
    return there, at[there], ends[there]


def _bytes(decoded: Decoded, spans: Spans, row: int) -> bytes | None:
    if spans.nulls is not None and spans.nulls[row]:
        return None
    return decoded.data[int(spans.at[row]) : int(spans.ends[row])]


def _skew(numbers: Sequence[int]) -> float | None:
    total = sum(numbers)
    return round(max(numbers) * len(numbers) / total, 2) if total else None


def _text(name: bytes) -> str:
    r"""Bytes as text; those that are not UTF-8 as `\xff`."""
    return name.decode(errors="backslashreplace")
