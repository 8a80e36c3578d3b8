"""A tiny Kafka client on our own codec: one connection, requests one at a time or pipelined."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import Any, Self

from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.messages import response_type
from pykafka_broker.protocol.messages.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)


class Client:
    """Sends request messages and returns response messages."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str | None
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.client_id = client_id
        self._correlation_id = 0

    @classmethod
    async def connect(cls, address: str, client_id: str | None = "test-client") -> Self:
        """Connect to "host:port"."""
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        return cls(reader, writer, client_id)

    def write(self, request: Any, version: int) -> int:
        """Send `request` without waiting; its correlation id."""
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=request.api_key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self.client_id,
        )
        payload = encode(header, request_header_version(request.api_key, version)) + encode(request, version)
        self.writer.write(struct.pack(">i", len(payload)) + payload)
        return self._correlation_id

    async def read_frame(self) -> bytes:
        """The next answer, header and all."""
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def read(self, api_key: int, version: int) -> Any:
        """The next answer, as the response message of `api_key`."""
        frame = await self.read_frame()
        header, position = decode(ResponseHeader, response_header_version(api_key, version), frame)
        self.last_correlation_id = header.correlation_id
        message, _ = decode(response_type(api_key), version, frame, position)
        return message

    async def send(self, request: Any, version: int) -> Any:
        """Send `request` and wait for its answer."""
        correlation_id = self.write(request, version)
        answer = await self.read(request.api_key, version)
        assert self.last_correlation_id == correlation_id
        return answer

    async def is_closed(self) -> bool:
        """True if the broker closed this connection (waits for it to say something)."""
        return await self.reader.read(1) == b""

    async def close(self) -> None:
        """Close the connection and wait until it is gone."""
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
