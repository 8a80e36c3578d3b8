"""`check_records` against `walk_records`, which goes over the same bytes one record after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka_broker.protocol.records import checking
from pykafka_broker.protocol.records.batch import (
    HEADER_BYTES,
    BatchFields,
    _encode_varint,
    build_batch,
    read_header,
    walk_records,
)
from pykafka_broker.protocol.records.checking import LARGEST_DELTA, MOST_DELTA, check_records
from pykafka_broker.protocol.records.errors import InvalidRecord

NOW = 1_700_000_000_000
Records = list[tuple[int, bytes | None, bytes | None, Any]]


def section_of(records: Records, **details: Any) -> bytes:
    return build_batch(records, BatchFields(**details))[HEADER_BYTES:]


def judged(data: bytes, count: int) -> int | None:
    """What the slow way says: the largest timestamp delta, None for records that are not sound."""
    try:
        spans = list(walk_records(data, count))
    except InvalidRecord:
        return None
    if [span[0] for span in spans] != list(range(count)):
        return None
    deltas = [span[1] for span in spans]
    if any(abs(delta) > MOST_DELTA for delta in deltas):
        return LARGEST_DELTA
    return max(deltas, default=0)


def found(data: bytes, count: int, expected: int = 0) -> int | None:
    """What the fast way says."""
    try:
        return check_records(data, count, 0, expected)
    except InvalidRecord:
        return None


def is_accepted(data: bytes, count: int) -> bool:
    return found(data, count) is not None


def same_size(count: int, size: int, **kwargs: Any) -> Records:
    return [
        (NOW, kwargs.get("key"), bytes([n % 256]) * size, kwargs.get("headers", ())) for n in range(count)
    ]


#: Batches for every way of looking at them, and for every place where one gives way to another.
BATCHES: dict[str, Records] = {
    "one record": same_size(1, 5),
    "equal records": same_size(300, 100),
    "equal records of one byte lengths": same_size(70, 20),
    "equal records with keys": same_size(300, 100, key=b"key"),
    "equal records with headers": same_size(300, 100, headers=(("trace", b"x" * 16), ("span", None))),
    "headers that differ in their values": [
        (NOW, None, b"value", (("trace", bytes([n % 256]) * 8),)) for n in range(300)
    ],
    "many headers": same_size(40, 10, headers=tuple((f"h{n}", b"v") for n in range(50))),
    "timestamps that grow by the minute": [(NOW + 60_000 * n, b"k", b"v" * 30, ()) for n in range(300)],
    "timestamps that jump about": [(NOW + n * 7919 % 5000, b"k", b"v" * 30, ()) for n in range(1000)],
    "timestamps that jump a little": [(NOW + n * 37 % 60 - 30, b"k", b"v" * 30, ()) for n in range(300)],
    "timestamps that grow": [(NOW + 7 * n, b"k", b"v" * 30, ()) for n in range(2000)],
    "timestamps that fall": [(NOW - 7 * n, b"k", b"v" * 30, ()) for n in range(300)],
    "timestamps far apart": [(NOW + (n << 40), b"k", b"v" * 30, ()) for n in range(300)],
    "values of all sizes": [(NOW, None, b"v" * (n * 37 % 150), ()) for n in range(1000)],
    "values of all sizes, later and later": [(NOW + n, b"k", b"v" * (n * 37 % 150), ()) for n in range(1000)],
    "values and keys of all sizes": [
        (NOW, b"k" * (n * 11 % 70), b"v" * (n * 37 % 150), ()) for n in range(300)
    ],
    "large values": [(NOW, None, b"v" * (8_000 + n * 37), ()) for n in range(30)],
    "large keys": [(NOW, b"k" * (60 + n % 10), b"v" * (n % 3), ()) for n in range(300)],
    "tombstones between": [(NOW, b"key", None if n % 3 else b"v" * (n % 100), ()) for n in range(300)],
    "no key, no value": [(NOW, None, None, ()) for _ in range(300)],
    "two sizes in turn": [(NOW, None, b"v" * (10 + n % 2), ()) for n in range(300)],
    "a header now and then": [(NOW, None, b"v" * (n % 90), (("h", b""),) * (n % 7 == 0)) for n in range(300)],
    "runs of equal sizes": [(NOW, None, b"v" * (n // 50), ()) for n in range(1000)],
    "more than two bytes of offset": [(NOW, None, b"v", ()) for _ in range(20_000)],
    "more than two bytes of offset, all sizes": [(NOW, None, b"v" * (n * 7 % 9), ()) for n in range(20_000)],
}


@pytest.mark.parametrize("name", BATCHES)
def test_sound_records_are_accepted(name: str) -> None:
    data = section_of(BATCHES[name])

    largest = judged(data, len(BATCHES[name]))
    assert largest is not None
    assert check_records(data, len(BATCHES[name])) == largest
    assert check_records(b"header" + data, len(BATCHES[name]), 6) == largest


@pytest.mark.parametrize("name", BATCHES)
def test_the_largest_timestamp_delta_is_found_whatever_was_expected(name: str) -> None:
    data, count = section_of(BATCHES[name]), len(BATCHES[name])
    largest = judged(data, count)
    assert largest is not None

    for expected in (
        0,
        largest,
        largest + 1,
        largest - 1,
        largest // 2,
        63,
        64,
        8192,
        -1,
        MOST_DELTA + 1,
        -(2**64),
    ):
        assert found(data, count, expected) == largest, expected


#: Timestamp deltas around the ends of one byte and of two, alike and apart, before and after the base.
DELTAS = st.one_of(
    st.integers(-70, 70),
    st.integers(-8200, 8200),
    st.integers(-(2**50), 2**50),
    st.sampled_from([0, 0, 0, -1, 1, 63, 64, -64, -65, 8191, 8192, -8192, -8193, MOST_DELTA, -MOST_DELTA]),
)
FAR_DELTAS = st.sampled_from([MOST_DELTA + 1, -MOST_DELTA - 1, 2**63 - 1, -(2**63)])


@settings(max_examples=300, deadline=None)
@given(
    deltas=st.lists(st.one_of(DELTAS, DELTAS, DELTAS, FAR_DELTAS), min_size=1, max_size=40),
    repeated=st.integers(1, 40),
    is_sorted=st.booleans(),
    value_bytes=st.sampled_from([lambda n: 9, lambda n: n % 9]),
    off_by=st.integers(-2, 2),
)
def test_the_largest_of_any_timestamp_deltas_is_found(
    deltas: list[int], repeated: int, is_sorted: bool, value_bytes: Callable[[int], int], off_by: int
) -> None:
    deltas = [delta for delta in deltas for _ in range(repeated)]
    if is_sorted:
        deltas.sort()
    data = b"".join([timed(delta, n, bytes(value_bytes(n))) for n, delta in enumerate(deltas)])
    largest = judged(data, len(deltas))

    assert largest is not None
    assert found(data, len(deltas), largest + off_by) == largest


def timed(timestamp_delta: int, offset_delta: int, value: bytes) -> bytes:
    """A record without a key, any distance from the base timestamp."""
    numbers = [_encode_varint(number) for number in (timestamp_delta, offset_delta, -1, len(value))]
    body = b"\0" + b"".join(numbers) + value + b"\0"
    return _encode_varint(len(body)) + body


@pytest.mark.parametrize("name", BATCHES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_whatever_is_changed_in_them_is_judged_as_by_the_slow_way(name: str, data: st.DataObject) -> None:
    records = BATCHES[name][:150]
    damaged = bytearray(section_of(records))
    for _ in range(data.draw(st.integers(0, 2))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        damaged[place] = data.draw(st.sampled_from([0, 1, 2, 3, 127, 128, 129, 254, 255, damaged[place] ^ 2]))
    if data.draw(st.booleans()):
        del damaged[data.draw(st.integers(0, len(damaged))) :]
    count = len(records) + data.draw(st.sampled_from([0, 0, 0, 1, -1]))

    expected = data.draw(st.integers(0, 1200))
    assert found(bytes(damaged), count, expected) == judged(bytes(damaged), count)


@pytest.mark.parametrize("name", ["equal records", "values of all sizes", "equal records with headers"])
def test_every_single_changed_byte_is_judged_as_by_the_slow_way(name: str) -> None:
    good = section_of(BATCHES[name][:40])
    for place in range(len(good)):
        for change in (1, 2, 0x80):
            damaged = bytearray(good)
            damaged[place] ^= change
            assert found(bytes(damaged), 40) == judged(bytes(damaged), 40), (place, change)


@pytest.mark.parametrize("length", range(90))
def test_records_cut_at_any_byte_are_refused(length: int) -> None:
    data = section_of(same_size(3, 20, key=b"key", headers=(("h", b"v"),)))

    assert len(data) > 90
    assert not is_accepted(data[:length], 3)


@pytest.mark.parametrize("values", [lambda n: b"v" * 9, lambda n: b"v" * (n % 9)], ids=["equal", "all sizes"])
@pytest.mark.parametrize("wrong", [1, 63, 64, 65, 100, 8191, 8192, 8193, 19_999])
def test_one_wrong_offset_among_many_is_found(wrong: int, values: Callable[[int], bytes]) -> None:
    records: Records = [(NOW, None, values(n), ()) for n in range(20_000)]
    deltas = list(range(20_000))
    deltas[wrong] = wrong - 1

    with pytest.raises(InvalidRecord, match=f"Record {wrong} of the batch has the offset delta {wrong - 1}"):
        check_records(section_of(records, offset_deltas=deltas), 20_000)


def test_a_count_of_billions_ends_with_the_bytes() -> None:
    data = section_of(same_size(300, 100))

    assert not is_accepted(data, 2**31 - 1)
    assert not is_accepted(b"", 2**31 - 1)


def test_most_records_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast ways must not fall out of use unnoticed."""
    looked_at = []
    one_by_one = checking._record

    def counted(data: bytes, start: int, index: int) -> checking.Span:
        looked_at.append(index)
        return one_by_one(data, start, index)

    monkeypatch.setattr(checking, "_record", counted)
    for name, most in [
        *(("equal records", 4), ("equal records with headers", 8), ("timestamps that grow", 30)),
        *(("values of all sizes", 8), ("values of all sizes, later and later", 20)),
        *(("headers that differ in their values", 8), ("more than two bytes of offset", 8)),
    ]:
        looked_at.clear()
        check_records(section_of(BATCHES[name]), len(BATCHES[name]))
        assert len(looked_at) <= most, name


def test_the_header_counts_what_is_there() -> None:
    batch = build_batch(same_size(300, 100))

    assert read_header(batch).records_count == 300
    check_records(batch, 300, HEADER_BYTES)
