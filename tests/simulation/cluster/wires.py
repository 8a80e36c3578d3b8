"""TCP between simulated machines: bytes come in their order, in pieces, late, or not before a cut is mended.

A process that is killed resets its connections; a machine that loses its power says nothing, and resets what
still comes to it once it is back. Nothing here depends on Kafka.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Protocol, cast
from zlib import crc32

from pykafka_broker.network import listening
from tests.simulation.network import Network
from tests.simulation.world import World

Address = tuple[str, int]

#: The most bytes on their way on one side of a connection; more wait at the sender.
WINDOW_BYTES = 64 * 1024
#: What was lost is sent again after this time, as long as it takes.
RETRANSMISSION_MS = 200
#: The first port of clients' ends.
FIRST_EPHEMERAL_PORT = 40_000


class Host(Protocol):
    """A machine, as the network sees it."""

    @property
    def number(self) -> int: ...

    @property
    def host(self) -> str: ...

    @property
    def has_power(self) -> bool: ...


class Process(Protocol):
    """The process that has an end of a connection."""

    is_over: bool

    def call_after(self, delay_ms: int, callback: Callable[..., object], *args: Any) -> object: ...


class Wires:
    """All connections of a simulation."""

    def __init__(self, world: World, network: Network) -> None:
        self.world = world
        self.network = network
        self._listening: dict[Address, ListeningSocket] = {}
        self._by_descriptor: dict[int, ListeningSocket] = {}
        self._descriptors = count(1000)
        self._ports = count(FIRST_EPHEMERAL_PORT)
        #: Stands for all that was carried, and when: two runs of a seed have the same.
        self.digest = 0

    # -- listening -------------------------------------------------------------------------------------------

    def bind(self, host: Host, process: Process, port: int) -> ListeningSocket:
        """Take an address; raises OSError if it is taken."""
        address = host.host, port or next(self._ports)
        if address in self._listening:
            raise OSError(98, "Address already in use")
        socket = ListeningSocket(self, host, process, address, next(self._descriptors))
        self._listening[address] = self._by_descriptor[socket.fileno()] = socket
        return socket

    def unbind(self, socket: ListeningSocket) -> None:
        """Free the address; connections that were not accepted are reset."""
        self._by_descriptor.pop(socket.fileno(), None)
        if self._listening.get(socket.address) is socket:
            del self._listening[socket.address]
            for end in socket.queue:
                end.abort()
            socket.queue.clear()

    def watch(self, descriptor: int, callback: Callable[[], object] | None) -> None:
        """Call back whenever connections wait at a listening socket; None: no longer."""
        socket = self._by_descriptor.get(descriptor)
        if socket is not None:
            socket.callback = callback
            socket.tell()

    def ended(self, process: Process) -> None:
        """A process has ended: nothing listens at its addresses."""
        for socket in [one for one in self._listening.values() if one.process is process]:
            self.unbind(socket)

    # -- connecting ------------------------------------------------------------------------------------------

    def connect(
        self, host: Host, process: Process, address: Address, connected: Callable[[End | None], None]
    ) -> None:
        """Connect; `connected` gets this side's end, or None if the connection was refused."""
        target = self._listening.get(address)
        number = _number(address[0])

        def answer(end: End | None) -> None:
            self._carry(number, host.number, lambda: process.call_after(0, connected, end))

        def arrived() -> None:
            there = self._listening.get(address)
            if there is None or not there.is_listening:
                if target is None or target.host.has_power:
                    answer(None)
                return
            near = End(self, host, process, (host.host, next(self._ports)), address)
            far = End(self, there.host, there.process, address, near.own)
            near.other, far.other = far, near
            there.queue.append(far)
            there.tell()
            answer(near)

        self._carry(host.number, number, arrived)

    def _carry(self, source: int, target: int, deliver: Callable[[], object]) -> None:
        """Deliver one packet, however often it has to be sent again."""

        def arrive() -> None:
            if self.is_cut(source, target):
                self.world.at(RETRANSMISSION_MS, arrive)
            else:
                deliver()

        self.world.at(self.delay_ms(), arrive)

    def is_cut(self, source: int, target: int) -> bool:
        return (source, target) in self.network.cut

    def delay_ms(self) -> int:
        """The time of one packet; a lost one comes later."""
        profile, world = self.network.profile, self.world
        delay_ms = world.random.randint(0, profile.delay_ms)
        while world.happens(profile.drop):
            delay_ms += RETRANSMISSION_MS
        return delay_ms

    @contextmanager
    def installed(self, current: Callable[[], tuple[Host, Process]]) -> Iterator[None]:
        """Have listeners of the running process bind here."""

        def bound_socket(family: object, address: Address, limits: object) -> Any:
            host, process = current()
            return self.bind(host, process, address[1])

        before = listening.bound_socket
        listening.bound_socket = bound_socket
        try:
            yield
        finally:
            listening.bound_socket = before


def _number(host: str) -> int:
    return int(host.rpartition(".")[2])


class ListeningSocket:
    """What `network/listening.py` asks of a socket."""

    def __init__(self, wires: Wires, host: Host, process: Process, address: Address, descriptor: int) -> None:
        self.host = host
        self.process = process
        self.address = address
        self.queue: deque[End] = deque()
        self.callback: Callable[[], object] | None = None
        self.is_listening = False
        self._wires = wires
        self._descriptor = descriptor
        self._is_told = False

    def getsockname(self) -> Address:
        return self.address

    def fileno(self) -> int:
        return self._descriptor

    def listen(self, backlog: int) -> None:
        self.is_listening = True

    def accept(self) -> tuple[AcceptedSocket, Address]:
        if not self.queue:
            raise BlockingIOError
        end = self.queue.popleft()
        return AcceptedSocket(end), end.peer

    def close(self) -> None:
        self._wires.unbind(self)

    def tell(self) -> None:
        """Tell the process that connections wait, as long as some do."""
        if self.queue and self.callback is not None and not self._is_told:
            self._is_told = True
            self.process.call_after(0, self._call)

    def _call(self) -> None:
        self._is_told = False
        if self.queue and self.callback is not None:
            self.callback()
            self.tell()


class AcceptedSocket:
    """An accepted connection before it has a protocol."""

    def __init__(self, end: End) -> None:
        self.end = end

    def setblocking(self, flag: bool) -> None:
        """No socket of the simulation blocks."""

    def setsockopt(self, level: int, option: int, value: int) -> None:
        """No option counts here."""

    def close(self) -> None:
        self.end.abort()


class _End:
    """The mark behind the last byte; a reset instead of an orderly end."""

    def __init__(self, is_reset: bool) -> None:
        self.is_reset = is_reset


class End(asyncio.Transport):
    """One end of a connection, the transport of a protocol."""

    other: End

    def __init__(self, wires: Wires, host: Host, process: Process, own: Address, peer: Address) -> None:
        super().__init__()
        self.own = own
        self.peer = peer
        self._wires = wires
        self._host = host
        self._process = process
        self._protocol: asyncio.BaseProtocol | None = None
        self._is_closing = False
        self._is_gone = False
        self._is_reading = True
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._high_water_bytes = WINDOW_BYTES
        self._is_paused = False
        #: What is on its way to the other end: when it is there, and what it is.
        self._on_wire: deque[tuple[int, bytes | _End]] = deque()
        self._in_flight_bytes = 0
        self._is_delivering = False
        self._received: deque[bytes | _End] = deque()

    # -- what asyncio and protocols call ---------------------------------------------------------------------

    def attach(self, protocol: asyncio.BaseProtocol) -> None:
        """Serve a protocol from now on."""
        self._protocol = protocol
        protocol.connection_made(self)
        self._feed_soon()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"sockname": self.own, "peername": self.peer}.get(name, default)

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self._feed_soon()

    def get_write_buffer_size(self) -> int:
        return self._unsent_bytes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_water_bytes = WINDOW_BYTES if high is None else high

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self._is_closing or not len(data):
            return
        self._unsent.append(bytes(data))
        self._unsent_bytes += len(data)
        self._pump()
        if self._unsent_bytes > self._high_water_bytes and not self._is_paused:
            self._is_paused = True
            cast(asyncio.Protocol, self._protocol).pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        for data in list_of_data:
            self.write(data)

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._pump()

    def abort(self) -> None:
        self._end(ConnectionResetError("reset here"), _End(is_reset=True), is_told=False)

    def can_write_eof(self) -> bool:
        return False

    # -- sending ---------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Send as much as the other end takes."""
        world = self._wires.world
        while self._unsent and self._in_flight_bytes < WINDOW_BYTES:
            piece = self._unsent.popleft()
            if len(piece) > 1 and world.happens(0.02):
                cut = world.random.randint(1, len(piece) - 1)
                self._unsent.appendleft(piece[cut:])
                piece = piece[:cut]
            self._unsent_bytes -= len(piece)
            self._in_flight_bytes += len(piece)
            self._put(piece)
        if self._is_paused and not self._unsent and self._protocol is not None:
            self._is_paused = False
            self._process.call_after(0, self._resume_writing)
        if self._is_closing and not self._unsent and not self._is_gone:
            self._end(None, _End(is_reset=False))

    def _resume_writing(self) -> None:
        if not self._is_gone:
            cast(asyncio.Protocol, self._protocol).resume_writing()

    def _put(self, piece: bytes | _End) -> None:
        arrival_ms = self._wires.world.now_ms + self._wires.delay_ms()
        if self._on_wire:
            arrival_ms = max(arrival_ms, self._on_wire[-1][0])
        self._on_wire.append((arrival_ms, piece))
        if not self._is_delivering:
            self._is_delivering = True
            self._wires.world.at(arrival_ms - self._wires.world.now_ms, self._deliver)

    def _deliver(self) -> None:
        """Hand the first piece on the wire to the other end."""
        world, other = self._wires.world, self.other
        if self._wires.is_cut(self._host.number, other._host.number) or not other._host.has_power:
            world.at(RETRANSMISSION_MS, self._deliver)
            return
        _, piece = self._on_wire.popleft()
        carried = b"" if isinstance(piece, _End) else piece
        self._wires.digest = crc32(carried, self._wires.digest ^ world.now_ms)
        if not other._process.is_over and not other._is_gone:
            other._take(piece)
        elif not self._is_gone and not self._process.is_over and not isinstance(piece, _End):
            self._process.call_after(self._wires.delay_ms(), self._was_reset)
        if self._on_wire:
            world.at(self._on_wire[0][0] - world.now_ms, self._deliver)
        else:
            self._is_delivering = False

    def _was_reset(self) -> None:
        self._end(ConnectionResetError("reset by peer"), None)

    # -- receiving -------------------------------------------------------------------------------------------

    def _take(self, piece: bytes | _End) -> None:
        if isinstance(piece, _End) and piece.is_reset:
            self._received.clear()
        self._received.append(piece)
        if self._protocol is not None:
            self._feed_soon()

    def _feed_soon(self) -> None:
        if self._received:
            self._process.call_after(0, self._feed)

    def _feed(self) -> None:
        """Give the protocol what has come, as long as it reads."""
        while self._received and not self._is_gone:
            piece = self._received[0]
            if isinstance(piece, _End):
                self._received.popleft()
                error = ConnectionResetError("reset by peer") if piece.is_reset else None
                self._end(error, None if piece.is_reset else _End(is_reset=False))
                return
            if not self._is_reading or self._is_closing:
                return
            self._received.popleft()
            self.other._acknowledged(len(piece))
            self._give(piece)

    def _give(self, piece: bytes) -> None:
        protocol = self._protocol
        if not isinstance(protocol, asyncio.BufferedProtocol):
            cast(asyncio.Protocol, protocol).data_received(piece)
            return
        buffer = memoryview(protocol.get_buffer(len(piece)))
        taken = min(len(buffer), len(piece))
        buffer[:taken] = piece[:taken]
        if taken < len(piece):
            self._received.appendleft(piece[taken:])
            self.other._in_flight_bytes += len(piece) - taken
        protocol.buffer_updated(taken)

    def _acknowledged(self, size: int) -> None:
        self._in_flight_bytes -= size
        if self._unsent and not self._process.is_over:
            self._process.call_after(0, self._pump)

    # -- the end ---------------------------------------------------------------------------------------------

    def _end(self, error: Exception | None, mark: _End | None, *, is_told: bool = True) -> None:
        """End this side; `mark` tells the other."""
        if self._is_gone:
            return
        self._is_gone = self._is_closing = True
        self._unsent.clear()
        self._unsent_bytes = 0
        if mark is not None:
            self._put(mark)
        if self._protocol is not None:
            self._process.call_after(0, self._protocol.connection_lost, error if is_told else None)

    def was_killed(self) -> None:
        """The process has ended: its system resets the connection."""
        if not self._is_gone:
            self._is_gone = self._is_closing = True
            self._put(_End(is_reset=True))
