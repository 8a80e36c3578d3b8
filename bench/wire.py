"""Requests of our own codec over bare sockets: one at a time, or from many connections at once.

The client shares the cores with the broker, so it builds what it can beforehand.
"""

from __future__ import annotations

import heapq
import select
import socket
import time
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from bench.pinger import no_pauses, quantile
from pykafka_broker.client import blocking
from pykafka_broker.client.blocking import ResponseBuffer
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.client.core.frames import read_response, request_frame
from pykafka_broker.protocol.fields import api_key_of
from pykafka_broker.protocol.frames import LENGTH_BYTES

#: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, a topic not known yet, and
#: CONCURRENT_TRANSACTIONS while what an earlier producer left open is aborted.
NOT_YET = (3, 6, 14, 15, 16, 51)
PATIENCE_S = 120
#: How long a request waits that the broker asked to send again.
RETRY_S = 0.001
#: Turns before those that count, as a share of them.
WARM_UP = 0.1


def connect(address: str) -> socket.socket:
    return blocking.connect(parse_address(address), PATIENCE_S)


def frame(request: object, version: int) -> bytes:
    """The request as it goes on the wire."""
    return request_frame(request, version, client_id="bench")


def answer(request: type[object], version: int, received: memoryview) -> Any:
    """The response message in what was received, with its size in front."""
    return read_response(api_key_of(request), version, bytes(received[LENGTH_BYTES:])).message


def call(connection: socket.socket, request: object, version: int) -> Any:
    connection.sendall(frame(request, version))
    return answer(type(request), version, ResponseBuffer().receive(connection))


def call_until_ready(connection: socket.socket, request: object, version: int) -> Any:
    """The first answer that does not ask for patience."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        response = call(connection, request, version)
        if not any(f"error_code={code}," in f"{response},".replace(")", ",") for code in NOT_YET):
            return response
        assert time.monotonic() < deadline, response
        time.sleep(0.02)


class Speaker(Protocol):
    """What one connection says, in turns of one or more requests."""

    def begin(self) -> bytes:
        """The first request of a turn."""

    def answered(self, received: memoryview) -> bytes | float | None:
        """The next request of the turn; None when it is over; seconds after which the last is sent again.

        What was received is valid until this returns.
        """


AnySpeaker = TypeVar("AnySpeaker", bound=Speaker)


def many_connections(
    address: str, speakers: Sequence[AnySpeaker], turns: int, *, answers: int = 1
) -> dict[str, float]:
    """Each speaker on a connection of its own begins a turn when its last one is over: turns a second over
    all, p50 and p99 of a turn in milliseconds. What a speaker says brings that many `answers`.
    """
    connections = [connect(address) for _ in speakers]
    by_number = {
        connection.fileno(): (connection, speaker)
        for connection, speaker in zip(connections, speakers, strict=True)
    }
    poll = select.epoll()
    receive = ResponseBuffer().receive
    began: dict[int, float] = {}
    said: dict[int, bytes] = {}
    again: list[tuple[float, int]] = []
    took: list[float] = []

    def say(number: int, request: bytes) -> None:
        said[number] = request
        by_number[number][0].sendall(request)

    try:
        with no_pauses():
            for number, (_, speaker) in by_number.items():
                poll.register(number, select.EPOLLIN)
                began[number] = time.perf_counter()
                say(number, speaker.begin())
            warm_up, over = int(turns * WARM_UP), 0
            started = time.perf_counter()
            while over < turns + warm_up:
                patience = max(0.0, again[0][0] - time.perf_counter()) if again else PATIENCE_S
                # One event a turn: of several, the later would wait for the client's work on the earlier.
                ready = poll.poll(patience, maxevents=1)
                assert ready or again, "the broker does not answer"
                while again and again[0][0] <= time.perf_counter():
                    _, number = heapq.heappop(again)
                    say(number, said[number])
                for number, _ in ready:
                    connection, speaker = by_number[number]
                    following = speaker.answered(receive(connection, answers))
                    now = time.perf_counter()
                    if isinstance(following, bytes):
                        say(number, following)
                    elif following is not None:
                        heapq.heappush(again, (now + following, number))
                    else:
                        took.append(now - began[number])
                        over += 1
                        if over == warm_up:
                            started = now
                            took.clear()
                        began[number] = now
                        say(number, speaker.begin())
            seconds = time.perf_counter() - started
    finally:
        poll.close()
        for connection in connections:
            connection.close()
    took.sort()
    return {
        "per_s": turns / seconds,
        "p50_ms": quantile(took, 0.5) * 1e3,
        "p99_ms": quantile(took, 0.99) * 1e3,
    }
