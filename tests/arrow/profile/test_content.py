"""What keys and values look like, and which records are looked at."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from pykafka_broker.arrow.core.profile.content import LARGEST_BYTES, SAMPLED, Look, Sample, look

SCHEMA_7 = b"\x00\x00\x00\x00\x07"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, Look("null")),
        (b"", Look("empty")),
        (b"v" * (LARGEST_BYTES + 1), Look("large")),
        (b'{"amount": 10}', Look("json")),
        (b" [1, 2]\n", Look("json")),
        (b'{"amount": ', Look("text")),
        (b"[" * 100_000, Look("text")),
        (b"12", Look("text")),
        ("größer\tals\r\n".encode(), Look("text")),
        (b"order-17", Look("text")),
        (b"\x00\x00\x00\x05", Look("number")),
        # A time in milliseconds, not the schema 101,327.
        ((1_700_000_000_000).to_bytes(8, "big"), Look("number")),
        (b"\x08\x96\x01\x12\x04abcd", Look("protobuf")),
        (b"\x08\x96\x01\x12\x05abcd", Look("binary")),
        (b"\x0b\x0c" * 5, Look("binary")),
        (b"\xff" * 11, Look("binary")),
        (b"Caf\xe9 au lait", Look("binary")),
        (SCHEMA_7 + b'{"amount": 10}', Look("registry json", 7)),
        (SCHEMA_7 + b"\x00\x08\x96\x01", Look("registry protobuf", 7)),
        (SCHEMA_7 + b"\x02\x00\x08\x96\x01", Look("registry protobuf", 7)),
        (SCHEMA_7 + b"\x06abc\x02", Look("registry avro", 7)),
        (SCHEMA_7 + b"\x00\x08", Look("registry avro", 7)),
        (SCHEMA_7, Look("registry avro", 7)),
        (bytes(9), Look("binary")),
    ],
)
def test_bytes_look_like_a_format(data: bytes | None, expected: Look) -> None:
    assert look(data) == expected


def sampled(values: Sequence[bytes | None], portion: int = 1_000) -> Sample:
    """A sample of records of partition 0 with these values, and no keys."""
    sample = Sample()
    for at in range(0, len(values), portion):
        offsets = np.arange(at, min(at + portion, len(values)), dtype=np.int64)

        def look_at(row: int, at: int = at) -> tuple[Look, Look]:
            return look(None), look(values[at + row])

        sample.add(np.zeros_like(offsets), offsets, look_at)
    return sample


def test_shares_of_the_sample_are_about_those_of_the_topic() -> None:
    values = [b"{}" if number % 4 else b"text" for number in range(20_000)]
    keys, found = sampled(values).results()

    assert [(each.format, each.sampled) for each in keys] == [("null", SAMPLED)]
    assert [each.format for each in found] == ["json", "text"]
    assert sum(each.sampled for each in found) == SAMPLED
    assert abs(found[1].sampled / SAMPLED - 0.25) < 0.09


def test_the_same_records_are_sampled_however_they_come() -> None:
    values = [json.dumps([number] * (number % 3)).encode() for number in range(5_000)]
    assert sampled(values).results() == sampled(values, portion=37).results()


def test_an_id_of_which_one_value_is_no_protobuf_is_avros() -> None:
    values = [SCHEMA_7 + b"\x00\x08\x96\x01", SCHEMA_7 + b"\x06abc\x02", b"\x00\x00\x00\x00\x08\x00\x08\x01"]
    values[2] += b"\x10\x01"
    _, found = sampled(values).results()

    assert [(each.format, each.sampled, each.schema_ids) for each in found] == [
        ("registry avro", 2, [7]),
        ("registry protobuf", 1, [8]),
    ]
