"""Records are found by what their beginnings look like, as when one goes from one to the next."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.arrow.core import record_starts
from pykafka_broker.arrow.core.record_starts import Layout, find_starts
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.protocol.records.errors import InvalidRecord
from tests.arrow.batches import NOW, payloads


def laid_out(*sections: bytes, counts: list[int]) -> Layout:
    """Sections of records, one behind the other."""
    data = b"".join(sections)
    sizes = np.array([len(section) for section in sections], np.int64)
    ends = np.cumsum(sizes)
    return Layout(data, np.frombuffer(data, np.uint8), ends - sizes, ends, np.array(counts, np.int64))


def section_of(values: list[bytes | None], headers: Any = ()) -> bytes:
    """The records of a batch with these values."""
    return build_batch([(NOW + number, b"key", value, headers) for number, value in enumerate(values)])[61:]


def starts_one_by_one(sections: list[list[bytes | None]]) -> list[int]:
    """Where the records begin, by the lengths of what is put before them."""
    starts, pos = [], 0
    for values in sections:
        starts += [pos + len(section_of(values[:number])) if number else pos for number in range(len(values))]
        pos += len(section_of(values))
    return starts


@given(st.lists(st.lists(payloads, min_size=1, max_size=80), min_size=1, max_size=3))
def test_records_begin_where_those_before_them_end(sections: list[list[bytes | None]]) -> None:
    layout = laid_out(*map(section_of, sections), counts=[len(values) for values in sections])

    assert find_starts(layout).tolist() == starts_one_by_one(sections)


@pytest.mark.parametrize("size", [100, 900])
def test_beginnings_are_found_by_their_looks_among_random_bytes(size: int) -> None:
    dice = random.Random(size)
    values: list[bytes | None] = [dice.randbytes(dice.randrange(size)) for _ in range(5_000)]
    layout = laid_out(section_of(values), counts=[len(values)])

    guessed = record_starts._guess(layout, len(values))

    assert guessed is not None
    assert guessed.tolist() == record_starts._walk(layout).tolist()


def test_records_with_headers_are_gone_through_one_by_one() -> None:
    values: list[bytes | None] = [b"v" * 50] * 10
    layout = laid_out(section_of(values, (("name", b"value"),)), counts=[10])

    assert record_starts._guess(layout, 10) is None
    assert find_starts(layout).tolist() == record_starts._walk(layout).tolist()


@pytest.mark.parametrize("count", [-1, 3, 2**31 - 1])
def test_a_batch_cannot_hold_more_records_than_fit_in_it(count: int) -> None:
    with pytest.raises(InvalidRecord):
        find_starts(laid_out(section_of([b"v"]), counts=[count]))


def test_bytes_without_records_are_refused() -> None:
    with pytest.raises(InvalidRecord):
        find_starts(laid_out(section_of([b"v"]), section_of([b"w"]), counts=[1, 0]))
