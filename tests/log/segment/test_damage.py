"""The `.damaged` file: ranges that must not be served, over a restart."""

from __future__ import annotations

import pytest

from pykafka_broker.log.segment.damage import Damage, decode_damages, encode_damages

DAMAGES = (Damage(100, 200, 3, 6), Damage(500, 569, 10, 11))


def test_ranges_read_as_they_were_written() -> None:
    data = encode_damages(DAMAGES)

    assert data == b"100 200 3 6\n500 569 10 11\n"
    assert decode_damages(data) == DAMAGES


def test_no_damage_is_an_empty_file() -> None:
    assert (encode_damages(()), decode_damages(b"")) == (b"", ())


@pytest.mark.parametrize("data", [b"100 200 3\n", b"100 200 3 six\n", b"\xff\xff"])
def test_a_garbled_file_is_refused(data: bytes) -> None:
    with pytest.raises((ValueError, TypeError)):
        decode_damages(data)
