"""Which header version goes with which request and response."""

from __future__ import annotations

import pytest

from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.messages.headers import (
    RequestHeader,
    request_header_version,
    response_header_version,
)

HEADER = RequestHeader(request_api_key=3, request_api_version=12, correlation_id=7, client_id="me")


@pytest.mark.parametrize(
    ("api", "api_key", "version", "request_header", "response_header"),
    [
        ("Produce, not flexible", 0, 8, 1, 0),
        ("Produce, flexible", 0, 9, 2, 1),
        ("OffsetDelete, never flexible", 47, 0, 1, 0),
        ("SaslHandshake, never flexible", 17, 1, 1, 0),
        ("ApiVersions answers with header v0 for ever", 18, 3, 2, 0),
        ("a version of tomorrow has the headers of today", 18, 99, 2, 0),
        ("a version that cannot be", 18, -1, 1, 0),
    ],
)
def test_flexible_versions_have_flexible_headers(
    api: str, api_key: int, version: int, request_header: int, response_header: int
) -> None:
    assert request_header_version(api_key, version) == request_header
    assert response_header_version(api_key, version) == response_header


@pytest.mark.parametrize("api_key", [-1, 4, 7, 93, 1000])
def test_an_api_that_does_not_exist_is_the_peers_fault(api_key: int) -> None:
    with pytest.raises(ProtocolError, match=f"unknown API key {api_key}"):
        request_header_version(api_key, 0)
    with pytest.raises(ProtocolError, match=f"unknown API key {api_key}"):
        response_header_version(api_key, 0)


def test_the_client_id_keeps_its_two_byte_length_in_the_flexible_header() -> None:
    fixed = b"\x00\x03" + b"\x00\x0c" + b"\x00\x00\x00\x07"

    assert encode(HEADER, 1) == fixed + b"\x00\x02me"
    assert encode(HEADER, 2) == fixed + b"\x00\x02me" + b"\x00"


@pytest.mark.parametrize("client_id", [b"\xff\xff", b"\xff\xfb"])
def test_a_null_client_id_is_accepted(client_id: bytes) -> None:
    header, end = decode(RequestHeader, 2, b"\x00\x03\x00\x0c\xff\xff\xff\xff" + client_id + b"\x00")

    assert (header.client_id, header.correlation_id, end) == (None, -1, 11)


def test_a_client_id_that_is_not_utf8_is_accepted() -> None:
    header, _ = decode(RequestHeader, 1, b"\x00\x03\x00\x0c\x00\x00\x00\x01\x00\x03a\xffb")

    assert header.client_id == "a�b"


def test_the_old_header_where_the_flexible_one_is_due_is_refused() -> None:
    """Kafka reads the body's first byte as the tag count, and then has too few bytes."""
    with pytest.raises(ProtocolError):
        decode(RequestHeader, 2, encode(HEADER, 1))
