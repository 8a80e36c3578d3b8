"""Requests of HTTP, read from bytes."""

from __future__ import annotations

import pytest

from pykafka_broker.metrics.http_request import MOST_HEAD_BYTES, BadRequest, Request, read_request


def test_a_request_is_read_when_its_head_is_complete() -> None:
    head = b"GET /metrics?name=up HTTP/1.1\r\nHost: here\r\n\r\n"
    received = bytearray()
    for byte in head[:-1]:
        received.append(byte)
        assert read_request(received) is None
    received += head[-1:] + b"GET"

    assert read_request(received) == Request(
        "GET", "/metrics", takes_chunks=True, keeps_alive=True, query="name=up", host="here"
    )
    assert received == b"GET"


@pytest.mark.parametrize(
    ("version", "connection", "takes_chunks", "keeps_alive"),
    [
        ("HTTP/1.1", "", True, True),
        ("HTTP/1.1", "Connection: Close\r\n", True, False),
        ("HTTP/1.0", "", False, False),
        ("HTTP/1.0", "Connection: keep-alive\r\n", False, True),
    ],
)
def test_the_version_and_a_header_say_whether_the_connection_stays(
    version: str, connection: str, takes_chunks: bool, keeps_alive: bool
) -> None:
    received = bytearray(f"HEAD / {version}\r\n{connection}\r\n".encode())

    assert read_request(received) == Request("HEAD", "/", takes_chunks, keeps_alive)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x00\x00\x00\x12\x00\x12\x00\x03\r\n\r\n", 400),
        (b"GET /metrics\r\n\r\n", 400),
        (b"GET /metrics HTTP/2\r\n\r\n", 505),
        (b"GET /metrics HTTP/1.1\r\nHost here\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nHost : here\r\n\r\n", 400),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 413),
        (b"POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
        (b"GET /" + b"a" * MOST_HEAD_BYTES, 431),
        (b"GET /" + b"a" * MOST_HEAD_BYTES + b" HTTP/1.1\r\n\r\n", 431),
    ],
)
def test_what_is_not_served_has_a_status(sent: bytes, status: int) -> None:
    with pytest.raises(BadRequest) as refused:
        read_request(bytearray(sent))

    assert refused.value.status == status
