"""A transport without a socket: tests play the peer and the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from pykafka_broker.protocol.compile import Buffer


class MemoryTransport(asyncio.Transport):
    """Drives a `BufferedProtocol` by hand, and keeps the bytes that it writes."""

    def __init__(self, protocol: asyncio.BufferedProtocol) -> None:
        super().__init__(extra={"sockname": ("127.0.0.1", 9092)})
        self.protocol = protocol
        #: Everything written, and the number of calls.
        self.written = bytearray()
        self.writes = 0
        self.reading = True
        self.closing = False
        self.aborted = False
        #: False once the peer stopped reading: the transport keeps the bytes written then in its buffer.
        self.peer_reads = True
        self.unsent_bytes = 0
        self._high_water = 64 * 1024
        self._lost = False
        protocol.connection_made(self)

    # Called by the test, for the peer and the network.

    def feed(self, data: bytes | bytearray | memoryview, step: int = 0) -> None:
        """The peer sends `data`, which arrives in pieces of `step` bytes (0: as large as there is room)."""
        data = memoryview(data)
        while data and not self.closing:
            assert self.reading, "the protocol asked to stop reading"
            buffer = memoryview(self.protocol.get_buffer(-1))
            assert len(buffer) > 0
            size = min(len(buffer), len(data), step or len(data))
            buffer[:size] = data[:size]
            data = data[size:]
            self.protocol.buffer_updated(size)

    def offer(self, data: bytes) -> int:
        """The peer sends `data`; returns how much of it the protocol wanted to read."""
        view = memoryview(data)
        while view and self.reading and not self.closing:
            buffer = memoryview(self.protocol.get_buffer(-1))
            size = min(len(buffer), len(view))
            buffer[:size] = view[:size]
            view = view[size:]
            self.protocol.buffer_updated(size)
        return len(data) - len(view)

    def disconnect(self, error: Exception | None = None) -> None:
        """The peer goes away."""
        self.closing = True
        self._lose(error)

    def read_all(self) -> None:
        """The peer reads again."""
        self.peer_reads = True
        was_paused = self.unsent_bytes > self._high_water
        self.unsent_bytes = 0
        if was_paused:
            self.protocol.resume_writing()
        if self.closing:
            self._lose(None)

    # Called by the protocol.

    def write(self, data: Buffer) -> None:
        self.writelines([data])

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        assert not self._lost
        was_below = self.unsent_bytes <= self._high_water
        self.writes += 1
        for data in list_of_data:
            self.written += data
            if not self.peer_reads:
                self.unsent_bytes += len(data)
        if was_below and self.unsent_bytes > self._high_water:
            self.protocol.pause_writing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_water = 64 * 1024 if high is None else high

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True
        if not self.unsent_bytes:
            asyncio.get_running_loop().call_soon(self._lose, None)

    def abort(self) -> None:
        self.closing = self.aborted = True
        asyncio.get_running_loop().call_soon(self._lose, None)

    def _lose(self, error: Exception | None) -> None:
        if not self._lost:
            self._lost = True
            self.protocol.connection_lost(error)
