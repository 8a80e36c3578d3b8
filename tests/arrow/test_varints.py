"""Numbers of any length are read together as one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.arrow.core.varints import read_numbers
from pykafka_broker.protocol.records.batch import _encode_varint
from pykafka_broker.protocol.records.errors import OverlongVarint

numbers = st.one_of(st.integers(-70, 70), st.integers(-9_000, 9_000), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(numbers, min_size=1, max_size=40))
def test_numbers_are_read_as_they_were_written(written: list[int]) -> None:
    encoded = [_encode_varint(number) for number in written]
    ends = np.cumsum([len(each) for each in encoded])
    octets = np.frombuffer(b"".join(encoded), np.uint8)

    found, after = read_numbers(octets, ends - [len(each) for each in encoded])

    assert found.tolist() == written
    assert after.tolist() == ends.tolist()


def test_a_number_may_take_more_bytes_than_it_needs_but_not_more_than_ten() -> None:
    octets = np.frombuffer(b"\x82" + b"\x80" * 8 + b"\x00" + b"\x80" * 10 + b"\x00", np.uint8)

    found, after = read_numbers(octets, np.array([0]))

    assert (found.tolist(), after.tolist()) == ([1], [10])
    with pytest.raises(OverlongVarint):
        read_numbers(octets, np.array([0, 10]))
