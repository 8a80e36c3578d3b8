"""A proxy in front of one node that keeps what goes through it: whole exchanges, byte for byte.

Nodes reach each other through it where a node's `advertised.listeners` name the proxy's port. Connections end
without a word: the nodes of a quorum are killed while it watches.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

LENGTH = struct.Struct(">i")
#: API key, version and correlation id of a request; the first four bytes of a response.
REQUEST_START = struct.Struct(">hhi")
CORRELATION_ID = struct.Struct(">i")


@dataclass(frozen=True)
class Exchange:
    """A request and its answer as they were sent, without their lengths."""

    api_key: int
    version: int
    request: bytes
    response: bytes


async def frame(reader: asyncio.StreamReader) -> bytes:
    """The next frame, with its length."""
    length = await reader.readexactly(LENGTH.size)
    return length + await reader.readexactly(LENGTH.unpack(length)[0])


class Recorder:
    """Proxies in a thread of their own, which tell `keep` each exchange."""

    def __init__(self, keep: Callable[[Exchange], None]) -> None:
        self._keep = keep
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def proxy(self, port: int, to: int) -> None:
        """Listen on `port`, and pass everything on to the node that listens on `to`."""

        async def listen() -> None:
            await asyncio.start_server(
                lambda reader, writer: self._pass_on(reader, writer, to), "127.0.0.1", port
            )

        asyncio.run_coroutine_threadsafe(listen(), self._loop).result()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, to: int) -> None:
        try:
            node_reader, node_writer = await asyncio.open_connection("127.0.0.1", to)
        except OSError:
            writer.close()
            return
        asked: dict[int, bytes] = {}

        async def requests() -> None:
            while True:
                data = await frame(reader)
                _, _, correlation_id = REQUEST_START.unpack_from(data, LENGTH.size)
                asked[correlation_id] = data[LENGTH.size :]
                node_writer.write(data)
                await node_writer.drain()

        async def responses() -> None:
            while True:
                data = await frame(node_reader)
                request = asked.pop(CORRELATION_ID.unpack_from(data, LENGTH.size)[0])
                writer.write(data)
                await writer.drain()
                api_key, version, _ = REQUEST_START.unpack_from(request)
                self._keep(Exchange(api_key, version, request, data[LENGTH.size :]))

        both = [asyncio.ensure_future(requests()), asyncio.ensure_future(responses())]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in both:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError, asyncio.IncompleteReadError):
                await task
        writer.close()
        node_writer.close()
