"""The profile of a topic. Bytes are those of records as they are read, not compressed, unless they are said
to be stored; times are milliseconds since 1970. Pure, and without numpy: commands declare their JSON by it.
"""

from __future__ import annotations

from pykafka_broker.system.named_tuple import NamedTuple


class HotKey(NamedTuple):
    """A key that many records have."""

    #: The key as text; bytes that are not UTF-8 are shown as in `\xff`.
    key: str
    #: False: the text has the first `frequent.NAME_BYTES` bytes of a longer key.
    is_whole: bool
    #: The most records that may have the key.
    records: int
    #: At most so many of them do not have it.
    error: int


class HeaderName(NamedTuple):
    """A name that headers have."""

    #: As of a `HotKey`.
    name: str
    is_whole: bool
    #: The most headers that may have the name; a record may have several of them.
    headers: int
    #: At most so many of them do not have it.
    error: int


class Sizes(NamedTuple):
    """Sizes in bytes. Those of a share of the records are right within `size_error`, the others exactly."""

    smallest: int
    p50: int
    p90: int
    p99: int
    largest: int
    mean: float


class CodecUse(NamedTuple):
    """The batches with a codec. A batch of which only some records are wanted counts as a whole."""

    codec: str
    batches: int
    records: int
    #: The size of the batches as they are stored, and as it would be without compression.
    stored_bytes: int
    bytes: int


class Content(NamedTuple):
    """A format that some of the sampled keys or values seem to have."""

    #: One of `content.FORMATS`.
    format: str
    sampled: int
    #: The ids of schemas in a registry that are in the sampled ones, ascending.
    schema_ids: list[int]


class Times(NamedTuple):
    """The timestamps of records. Those of -1, which stands for none, count only in `without_timestamp`."""

    #: None: no record has a timestamp.
    oldest_ms: int | None
    newest_ms: int | None
    #: The longest time between the newest timestamp up to a record and that of the next record, within a
    #: partition; 0 without two records. And the timestamp at which it began.
    silence_ms: int
    silence_from_ms: int | None
    #: Records with a timestamp before the newest one of the records in front of them in their partition, and
    #: the longest such time.
    behind: int
    most_behind_ms: int
    #: Records with a timestamp after the time at which reading began, by the clock of the reader.
    ahead: int
    most_ahead_ms: int
    without_timestamp: int
    #: Records with the time of their append (LogAppendTime).
    append_time: int
    #: From the time that the producer gave the first record of a batch to the time of the append; below 0 if
    #: the producer's clock is ahead. None: no batch has both.
    least_append_delay_ms: int | None
    most_append_delay_ms: int | None


class PartitionProfile(NamedTuple):
    """What is in a partition between two offsets."""

    partition: int
    start_offset: int
    end_offset: int
    records: int
    #: Offsets without a record: compaction removed it, or a marker of a transaction has it.
    missing_offsets: int
    bytes: int
    batches: int
    #: Batches of transactions, and markers of their ends.
    transactional_batches: int
    control_batches: int
    stored_bytes: int
    null_keys: int
    #: Records without a value.
    tombstones: int
    distinct_keys: int
    times: Times


class TopicProfile(NamedTuple):
    """What is in a topic."""

    topic: str
    records: int
    missing_offsets: int
    bytes: int
    batches: int
    transactional_batches: int
    control_batches: int
    stored_bytes: int
    null_keys: int
    tombstones: int
    #: What the fullest partition has of records, and of bytes, compared with the mean of all partitions: 1
    #: where they are equal. None: there are no records.
    record_skew: float | None
    byte_skew: float | None
    #: An estimate, whose standard error is `distinct_keys_error` of it.
    distinct_keys: int
    distinct_keys_error: float
    #: In how many partitions a key is, on average; None without keys.
    partitions_per_key: float | None
    #: The most frequent first.
    hot_keys: list[HotKey]
    #: No other key has more records.
    other_keys_at_most: int
    #: None: there are none. Nulls are left out.
    key_sizes: Sizes | None
    value_sizes: Sizes | None
    record_sizes: Sizes | None
    #: The part of a size by which those of a share of the records may be wrong.
    size_error: float
    #: The most frequent first.
    headers: list[HeaderName]
    #: No other name is in more headers.
    other_headers_at_most: int
    codecs: list[CodecUse]
    #: The most frequent first.
    key_content: list[Content]
    value_content: list[Content]
    #: Of all partitions.
    times: Times
    partitions: list[PartitionProfile]
