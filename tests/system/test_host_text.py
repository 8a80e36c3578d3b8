"""Addresses as Java writes them."""

from __future__ import annotations

import pytest

from pykafka_broker.system.host_text import java_address


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::a0:1", "2001:db8:0:0:0:0:a0:1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
    ],
)
def test_no_group_is_left_out(address: str, shown: str) -> None:
    assert java_address(address) == shown
