"""The profile of a topic is what its records say, counted one by one."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka_broker.arrow import Limits
from pykafka_broker.arrow.core.decoding import decode
from pykafka_broker.arrow.core.profile.results import Times, TopicProfile
from pykafka_broker.arrow.core.profile.topic import COUNTERS, HEADER_COUNTERS, TopicState
from pykafka_broker.arrow.core.sections import sections_of
from pykafka_broker.arrow.core.stored_batches import NO_END, OffsetRange, StoredBatch
from pykafka_broker.protocol.records.batch import BatchFields, Codec, build_batch, iter_batches
from pykafka_broker.protocol.records.control import EndTransactionMarker, build_marker_batch
from tests.arrow.batches import NOW, Written, batch_of, batch_rows, read_one_by_one, stored

#: Later than every generated timestamp.
LONG_AFTER = 2**46


def state_of(
    batches: Sequence[StoredBatch], *, now_ms: int = LONG_AFTER, limits: Limits | None = None
) -> TopicState:
    state = TopicState(now_ms)
    for batch in batches:
        if batch.is_marker:
            state.add_marker(batch.partition, batch.header)
    for sections in sections_of(batches, "orders", limits or Limits()):
        state.add(sections, decode(sections, "orders", headers=True))
    return state


def profile_of(
    partitions: Mapping[int, bytes], *, first: int = 0, end: int = NO_END, **options: Any
) -> TopicProfile:
    """The profile of partitions with these batches, between two offsets."""
    batches = [
        each
        for partition, data in partitions.items()
        for each in stored(data, partition=partition, first=first, end=end)
    ]
    read = {partition: OffsetRange(first, min(end, end_of(data))) for partition, data in partitions.items()}
    return state_of(batches, **options).result("orders", read, hot_keys=COUNTERS)


def end_of(data: bytes) -> int:
    return max((header.next_offset for _, header in iter_batches(data)), default=0)


def written(records: Sequence[Written], **fields: Any) -> bytes:
    return build_batch(records, BatchFields(**fields))


def keyed(*keys: bytes | None) -> bytes:
    """A batch of records with these keys, a millisecond apart."""
    return written([(NOW + number, key, b"v", ()) for number, key in enumerate(keys)])


# -- counts
# ---------


def exact_times(rows: Sequence[Mapping[str, Any]], now_ms: int) -> Times:
    """The times, record by record; append delays are left out."""
    newest = silence_from = None
    silence = behind = most_behind = 0
    known = [row["timestamp"] for row in rows if row["timestamp"] >= 0]
    for time in known:
        if newest is not None:
            if time - newest > silence:
                silence, silence_from = time - newest, newest
            if time < newest:
                behind += 1
                most_behind = max(most_behind, newest - time)
        newest = time if newest is None else max(newest, time)
    return Times(
        oldest_ms=min(known, default=None),
        newest_ms=newest,
        silence_ms=silence,
        silence_from_ms=silence_from,
        behind=behind,
        most_behind_ms=most_behind,
        ahead=sum(time > now_ms for time in known),
        most_ahead_ms=max([time - now_ms for time in known] + [0]),
        without_timestamp=len(rows) - len(known),
        append_time=sum(row["timestampType"] for row in rows),
        least_append_delay_ms=None,
        most_append_delay_ms=None,
    )


@settings(deadline=None, max_examples=50)
@given(
    st.lists(batch_rows(), min_size=1, max_size=3),
    st.sampled_from([Limits(), Limits(batch_rows=5)]),
    st.sampled_from([LONG_AFTER, NOW + 100]),
    st.data(),
)
def test_every_count_is_what_the_records_say(
    logs: list[bytes], limits: Limits, now_ms: int, data: st.DataObject
) -> None:
    partitions = dict(enumerate(logs))
    last = max(map(end_of, logs))
    first = data.draw(st.sampled_from([0, last - 20, last - 3]).map(lambda offset: max(offset, 0)))
    end = data.draw(st.sampled_from([NO_END, last - 1]))
    found = profile_of(partitions, first=first, end=end, now_ms=now_ms, limits=limits)
    rows = {
        partition: [row for row in read_one_by_one(log) if first <= row["offset"] < end]
        for partition, log in partitions.items()
    }
    everything = [row for some in rows.values() for row in some]

    for each in found.partitions:
        mine = rows[each.partition]
        assert each.records == len(mine)
        assert each.missing_offsets == each.end_offset - first - len(mine)
        assert each.null_keys == sum(row["key"] is None for row in mine)
        assert each.tombstones == sum(row["value"] is None for row in mine)
        told = each.times._replace(least_append_delay_ms=None, most_append_delay_ms=None)
        assert told == exact_times(mine, now_ms)
        # So few keys are estimated exactly.
        assert each.distinct_keys == len({row["key"] for row in mine} - {None})
    for name in ("records", "bytes", "null_keys", "tombstones", "stored_bytes", "batches", "missing_offsets"):
        assert getattr(found, name) == sum(getattr(each, name) for each in found.partitions)
    assert found.distinct_keys == len({row["key"] for row in everything} - {None})
    keys = Counter(row["key"] for row in everything if row["key"] is not None)
    assert sorted(each.records for each in found.hot_keys) == sorted(keys.values())
    names = Counter(header["key"] for row in everything for header in row["headers"] or ())
    assert {each.name: each.headers for each in found.headers} == dict(names)
    for sizes, column in ((found.key_sizes, "key"), (found.value_sizes, "value")):
        lengths = [len(row[column]) for row in everything if row[column] is not None]
        ends = None if sizes is None else (sizes.smallest, sizes.largest)
        assert ends == ((min(lengths), max(lengths)) if lengths else None)
    for content, column in ((found.key_content, "key"), (found.value_content, "value")):
        sampled = {each.format: each.sampled for each in content}
        assert sum(sampled.values()) == len(everything)
        assert sampled.get("null", 0) == sum(row[column] is None for row in everything)


def test_bytes_are_told_as_they_are_read_and_as_they_are_stored() -> None:
    plain = batch_of([b"v" * 100] * 50)
    packed = batch_of([b"v" * 100] * 50, codec=Codec.GZIP)
    found = profile_of({0: plain, 1: packed})

    assert [each.codec for each in found.codecs] == ["none", "gzip"]
    assert [each.stored_bytes for each in found.codecs] == [len(plain), len(packed)]
    assert [each.bytes for each in found.codecs] == [len(plain)] * 2
    assert [(each.batches, each.records) for each in found.codecs] == [(1, 50)] * 2
    assert [each.bytes for each in found.partitions] == [len(plain) - 61] * 2
    assert found.stored_bytes == len(plain) + len(packed)


def test_the_fullest_partition_is_compared_with_the_mean() -> None:
    found = profile_of({0: keyed(b"a", b"b", b"c"), 1: keyed(b"a"), 2: b"", 3: b""})

    assert found.record_skew == 3.0
    assert found.byte_skew == 3.0
    assert found.partitions_per_key == 1.33
    assert [each.records for each in found.partitions] == [3, 1, 0, 0]


def test_a_topic_without_records_has_a_profile() -> None:
    found = profile_of({0: b"", 1: b""})

    assert (found.records, found.record_skew, found.partitions_per_key) == (0, None, None)
    assert (found.key_sizes, found.hot_keys, found.codecs, found.key_content) == (None, [], [], [])
    assert found.times.oldest_ms is None


def test_markers_and_transactions_are_counted() -> None:
    commit = EndTransactionMarker(commit=True, coordinator_epoch=0)
    log = (
        batch_of([b"a", b"b"], producer_id=7, transactional=True)
        + build_marker_batch(commit, producer_id=7, producer_epoch=0, timestamp_ms=NOW, base_offset=2)
        + batch_of([b"c"], base_offset=3)
    )
    [partition] = profile_of({0: log}).partitions

    assert (partition.batches, partition.transactional_batches, partition.control_batches) == (2, 1, 1)
    assert (partition.records, partition.missing_offsets) == (3, 1)
    assert partition.stored_bytes == len(log)


# -- keys
# -------


def test_hot_keys_are_told_with_their_counts() -> None:
    found = profile_of({0: keyed(b"hot", b"cold", None, b"hot"), 1: keyed(b"hot", b"\xff")})

    assert [(each.key, each.records, each.error) for each in found.hot_keys] == [
        ("hot", 3, 0),
        ("cold", 1, 0),
        (r"\xff", 1, 0),
    ]
    assert found.other_keys_at_most == 0
    assert found.null_keys == 1


@pytest.mark.parametrize("skew", [0.5, 1.1])
def test_no_hot_key_of_many_is_missed(skew: float) -> None:
    dice = random.Random(11)
    keys = [b"user-%d" % int(dice.paretovariate(skew)) for _ in range(60_000)]
    limits = Limits(batch_rows=4_000)
    log = b"".join(
        written([(NOW, key, b"v", ()) for key in keys[at : at + 500]], base_offset=at)
        for at in range(0, len(keys), 500)
    )
    found = profile_of({0: log}, limits=limits)
    exact = Counter(key.decode() for key in keys)

    assert len(found.hot_keys) <= COUNTERS < len(exact) or len(found.hot_keys) == len(exact)
    assert found.other_keys_at_most <= len(keys) / (COUNTERS + 1)
    for each in found.hot_keys:
        assert each.records - each.error <= exact[each.key] <= each.records
    told = {each.key for each in found.hot_keys}
    assert all(count <= found.other_keys_at_most for key, count in exact.items() if key not in told)
    assert abs(found.distinct_keys - len(exact)) <= 3 * found.distinct_keys_error * len(exact)


def test_more_names_of_headers_than_counters_are_bounded() -> None:
    records = [(NOW, None, b"v", [(f"h{number}", b""), ("all", None)]) for number in range(500)]
    found = profile_of({0: build_batch(records)})

    assert len(found.headers) == HEADER_COUNTERS
    assert (found.headers[0].name, found.headers[0].headers) == ("all", 500)
    assert 1 <= found.other_headers_at_most <= 1_000 / (HEADER_COUNTERS + 1)


# -- times
# --------


def timed(*times: int, base_offset: int = 0, **fields: Any) -> bytes:
    return written([(time, None, b"v", ()) for time in times], base_offset=base_offset, **fields)


def test_times_are_told_across_batches() -> None:
    log = timed(NOW, NOW + 10) + timed(NOW + 5_010, NOW + 4_000, base_offset=2)
    found = profile_of({0: log}, now_ms=NOW + 5_000, limits=Limits(batch_rows=2))

    assert found.times == Times(
        oldest_ms=NOW,
        newest_ms=NOW + 5_010,
        silence_ms=5_000,
        silence_from_ms=NOW + 10,
        behind=1,
        most_behind_ms=1_010,
        ahead=1,
        most_ahead_ms=10,
        without_timestamp=0,
        append_time=0,
        least_append_delay_ms=None,
        most_append_delay_ms=None,
    )


def test_a_record_without_a_timestamp_is_left_out_of_the_times() -> None:
    times = profile_of({0: timed(-1, NOW, -1, NOW + 30)}).times

    assert times.without_timestamp == 2
    assert (times.oldest_ms, times.newest_ms, times.silence_ms, times.behind) == (NOW, NOW + 30, 30, 0)


def test_the_delay_of_an_append_is_told_where_the_broker_has_set_the_time() -> None:
    ahead = timed(NOW, timestamp_type=1, max_timestamp=NOW - 40)
    late = timed(NOW, NOW + 1, base_offset=1, timestamp_type=1, max_timestamp=NOW + 700)
    times = profile_of({0: ahead, 1: late}).times

    assert (times.least_append_delay_ms, times.most_append_delay_ms) == (-40, 700)
    assert times.append_time == 3


def test_the_longest_silence_of_all_partitions_is_told() -> None:
    found = profile_of({0: timed(NOW, NOW + 5), 1: timed(NOW + 3, NOW + 90), 2: timed(NOW)})
    assert (found.times.silence_ms, found.times.silence_from_ms) == (87, NOW + 3)


# -- merging and memory
# ---------------------


@settings(deadline=None, max_examples=50)
@given(st.lists(batch_rows(), min_size=2, max_size=4), st.integers(1, 3))
def test_partitions_that_are_profiled_apart_and_merged_have_the_profile_of_all(
    logs: list[bytes], cut: int
) -> None:
    parts = [
        [each for partition, log in part for each in stored(log, partition=partition)]
        for part in (list(enumerate(logs))[:cut], list(enumerate(logs))[cut:])
    ]
    merged = TopicState(LONG_AFTER)
    for part in parts:
        merged.merge(state_of(part))
    read = {partition: OffsetRange(0, end_of(log)) for partition, log in enumerate(logs)}

    together = state_of([each for part in parts for each in part])
    assert merged.result("orders", read, 100) == together.result("orders", read, 100)


def size_of(value: Any, seen: set[int] | None = None) -> int:
    """The bytes of an object with all that only it refers to."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, type):
        return 0
    seen.add(id(value))
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple, set)):
        inner = list(value)
    else:
        inner = [getattr(value, name) for name in getattr(type(value), "__slots__", ()) if name[:2] != "__"]
    return size + sum(size_of(each, seen) for each in inner)


def test_the_state_does_not_grow_with_the_records() -> None:
    state = TopicState(LONG_AFTER)
    grown = []
    for number in range(40):
        records = [
            (NOW, b"%d-%d" % (number, row), b"v" * (row % 300), [(f"{number}-{row}", b"")])
            for row in range(3_000)
        ]
        log = build_batch(records, BatchFields(base_offset=number * 3_000))
        for sections in sections_of(stored(log), "orders", Limits()):
            state.add(sections, decode(sections, "orders", headers=True))
        grown.append(size_of(state))

    assert grown[-1] < 600_000
    assert grown[-1] < 1.05 * grown[4]
    assert state.result("orders", {0: OffsetRange(0, 120_000)}, 10).records == 120_000
