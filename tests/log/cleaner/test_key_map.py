"""The map of keys to their newest offsets: exact, and within its memory."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.log.cleaner.key_map import MAX_LOAD, SLOT_BYTES, KeyMap

MIB = 1 << 20


def keys_in(budget_bytes: int, load: float = MAX_LOAD) -> int:
    """How many keys a map takes."""
    found, number = KeyMap(budget_bytes, load=load), 0
    while found.put(b"%d" % number, number):
        number += 1
    assert len(found) == number
    assert found.latest_offset == number - 1
    assert [found.get(b"%d" % n) for n in range(number)] == list(range(number))
    assert found.get(b"%d" % number) == -1
    return number


def test_one_key_always_fits_and_the_newer_offset_of_a_known_key_does_when_the_map_is_full() -> None:
    full = KeyMap(0)
    assert full.put(b"a", 1)
    assert not full.put(b"b", 2)
    assert full.put(b"a", 3)
    assert (full.get(b"a"), full.get(b"b"), len(full), full.latest_offset) == (3, -1, 1, 3)


def test_the_map_takes_what_fits_into_its_memory() -> None:
    """Apache Kafka's takes a ninth more: the dictionary's share is given back when it is full."""
    budget_bytes = MIB
    apache = budget_bytes // 24 * MAX_LOAD
    assert 0.85 * apache < keys_in(budget_bytes) < apache
    assert 0.4 * apache < keys_in(budget_bytes, load=0.5) < 0.5 * apache


def test_no_more_memory_is_taken_than_the_known_number_of_keys_needs() -> None:
    found = KeyMap(MIB, 2_000)
    for number in range(2_000):
        assert found.put(b"%d" % number, number)
    assert found._table is not None
    assert len(found._table._cells) < 2_400 * SLOT_BYTES


@pytest.mark.parametrize("mebibytes", [8, 24])
def test_the_memory_is_what_the_process_really_takes(mebibytes: int) -> None:
    program = f"""
import resource
from pykafka_broker.log.cleaner.key_map import KeyMap
def taken(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
keys, number, before = KeyMap({mebibytes} << 20), 0, taken()
while keys.put(b"key-%d" % number, number): number += 1
print(number, taken() - before)
"""
    number, taken = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert int(number) > mebibytes * MIB / 24 * 0.75
    assert float(taken) < mebibytes + 1


def test_keys_of_all_lengths_are_told_apart() -> None:
    found = KeyMap(MIB)
    alike = [byte * length for length in (*range(30), 999, 1000) for byte in (b"\0", b"\1", b"\x0f", b"\xff")]
    alike += [bytes(999) + b"x", bytes(14) + b"\x0f", bytes(15) + b"\xff"]
    assert len({*alike}) == len(alike) - 3, "the empty key four times"
    for number, key in enumerate(alike):
        assert found.put(key, number)
    assert len(found) == len({*alike})
    assert {key: found.get(key) for key in alike} == {key: number for number, key in enumerate(alike)}


@given(
    puts=st.lists(st.integers(0, 60), max_size=200),
    budget_bytes=st.sampled_from([0, 24, 264, 500, 1_000, 20_000]),
    width=st.sampled_from([1, 15, 16, 40]),
)
def test_the_map_is_a_dictionary_that_may_be_full(puts: list[int], budget_bytes: int, width: int) -> None:
    found, model = KeyMap(budget_bytes), {}
    for offset, number in enumerate(puts):
        key = b"%0*d" % (width, number)
        if found.put(key, offset):
            model[key] = offset
        else:
            assert key not in model
    assert len(found) == len(model)
    for number in range(61):
        key = b"%0*d" % (width, number)
        assert found.get(key) == model.get(key, -1)
