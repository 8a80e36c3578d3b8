"""Addresses as users write them."""

from __future__ import annotations

import pytest

from pykafka_broker.client.core.addresses import Address, parse_address, parse_addresses


def test_addresses_are_lists_of_hosts_and_ports() -> None:
    assert parse_addresses("a:1, [::1]:2,:3") == [("a", 1), ("::1", 2), ("127.0.0.1", 3)]


@pytest.mark.parametrize("text", ["", "a", "a:", "a:b", "a:-1", "a:65536", "a:100000", "a:٣x"])
def test_what_has_no_port_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        parse_address(text)


@pytest.mark.parametrize("text", ["http://a:1", "a:1, PLAINTEXT://b:2 ", "http://a/"])
def test_a_url_is_no_address(text: str) -> None:
    """Its host was looked up: `Name or service not known`."""
    with pytest.raises(ValueError, match=r"^'\S+' is a URL: brokers are named HOST:PORT, as 127.0.0.1:9092$"):
        parse_addresses(text)


def test_an_address_is_shown_as_it_is_written() -> None:
    assert str(Address("broker", 9092)) == "broker:9092"
