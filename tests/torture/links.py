"""The links between nodes that are processes of this machine: cut in one direction or both, slow, or dropped.

What nodes say to each other goes through ports of this process, one for each listener that other nodes use.
The process at the other end of a connection tells which node has opened it; what is not a node, a test for
example, is never held up. A cut link loses nothing and says nothing, as a network does that drops packets:
bytes wait, also the end of a connection, and go on when the link is mended, unless a node has given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Self

#: From a node to another.
Link = tuple[int, int]
#: The other end of a connection that no node has opened.
NO_NODE = 0
CHUNK_BYTES = 65_536


class Links:
    """All links between some nodes. `pids()` gives the processes of the nodes that run."""

    def __init__(self, pids: Callable[[], Mapping[int, int]]) -> None:
        self._pids = pids
        self._cut: frozenset[Link] = frozenset()
        self._delay_s = 0.0
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._ends: set[asyncio.StreamWriter] = set()
        self._served: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="links")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # -- what a test does ------------------------------------------------------------------------------------

    def open(self, node_id: int, port: int, behind: int) -> None:
        """Have `port` lead to the port of a node that is behind it."""
        self._run(self._open(node_id, port, behind))

    def cut(self, links: Iterable[Link]) -> None:
        """Let nothing through these links, and everything through all others."""
        self._run(self._set(frozenset(links), 0.0))

    def slow_down(self, delay_s: float) -> None:
        """Let everything through all links, each part of it so much later."""
        self._run(self._set(frozenset(), delay_s))

    def mend(self) -> None:
        """Let everything through again."""
        self.cut(())

    def drop(self) -> None:
        """Reset all connections that are open now."""
        self._run(self._drop())

    # -- on the loop -----------------------------------------------------------------------------------------

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        done: Future[None] = asyncio.run_coroutine_threadsafe(work, self._loop)
        done.result(30)

    async def _open(self, node_id: int, port: int, behind: int) -> None:
        def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(self._serve(node_id, behind, reader, writer))
            self._served.add(task)
            task.add_done_callback(self._served.discard)

        self._servers.append(await asyncio.start_server(serve, "127.0.0.1", port))

    async def _set(self, cut: frozenset[Link], delay_s: float) -> None:
        self._cut, self._delay_s = cut, delay_s
        self._changed.set()
        self._changed = asyncio.Event()

    async def _drop(self) -> None:
        for end in self._ends:
            at_once = struct.pack("ii", 1, 0)
            end_socket = end.get_extra_info("socket")
            if end_socket.fileno() >= 0:  # one that is closed stays in the set until its task has seen it
                end_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            end.transport.abort()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for task in tuple(self._served):
            task.cancel()
        await asyncio.gather(*self._served, return_exceptions=True)

    async def _passes(self, link: Link) -> None:
        """Return when the link lets something through."""
        while link in self._cut:
            await self._changed.wait()
        if self._delay_s:
            await asyncio.sleep(self._delay_s)

    async def _serve(
        self, node_id: int, behind: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        opened_by = self._node_at(writer)
        there, back = (opened_by, node_id), (node_id, opened_by)
        ends = [writer]
        self._ends.add(writer)
        try:
            await self._passes(there)
            await self._passes(back)
            node_reader, node_writer = await asyncio.open_connection("127.0.0.1", behind)
            ends.append(node_writer)
            self._ends.add(node_writer)
            await asyncio.gather(
                self._carry(reader, node_writer, there), self._carry(node_reader, writer, back)
            )
            for end in ends:
                end.close()
                await end.wait_closed()
        except OSError:  # the node does not run, or one of both ends is gone
            pass
        finally:
            for end in ends:
                self._ends.discard(end)
                end.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: Link) -> None:
        try:
            while data := await reader.read(CHUNK_BYTES):
                await self._passes(link)
                writer.write(data)
                await writer.drain()
        except OSError:
            await self._passes(link)
            raise
        await self._passes(link)
        writer.write_eof()  # of this direction alone: the other may have more to say

    def _node_at(self, writer: asyncio.StreamWriter) -> int:
        """The node whose process has the other end of a connection of this machine."""
        theirs, ours = writer.get_extra_info("peername"), writer.get_extra_info("sockname")
        descriptor = f"socket:[{inode_of(theirs[1], ours[1])}]"
        for node_id, pid in self._pids().items():
            if descriptor in descriptors_of(pid):
                return node_id
        return NO_NODE


def inode_of(port: int, peer_port: int) -> int:
    """The socket at this port of 127.0.0.1 whose connection ends at the other port; 0 if there is none."""
    with open("/proc/net/tcp") as table:
        next(table)
        for line in table:
            _, local, remote, *_, inode = line.split()[:10]
            if (int(local[9:], 16), int(remote[9:], 16)) == (port, peer_port):
                return int(inode)
    return 0


def descriptors_of(pid: int) -> set[str]:
    """What the descriptors of a process stand for."""
    found = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found
