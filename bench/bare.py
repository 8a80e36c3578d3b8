"""The time that this machine itself takes for a round trip: two processes, one socket, no broker.

The latency rows can be no better than this. On a virtual machine most of a round trip between two idle cores
is spent waking the other one up; where both processes share a core there is nothing to wake.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

from bench.pinger import no_pauses, quantile

#: About a Produce request with one record of 100 bytes, and its answer.
REQUEST_BYTES, RESPONSE_BYTES = 230, 60
ROUND_TRIPS = 20_000


def serve() -> None:
    """Print the port, take one connection, and answer until it ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answer = bytes(RESPONSE_BYTES)
        with connection:
            while connection.recv(65536):
                connection.sendall(answer)


def round_trip(server_core: int, client_core: int) -> dict[str, float]:
    """p50 and p99 in microseconds, with each side held to a core."""
    before = os.sched_getaffinity(0)
    with subprocess.Popen([sys.executable, "-m", "bench.bare"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        os.sched_setaffinity(server.pid, {server_core})
        os.sched_setaffinity(0, {client_core})
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection, no_pauses():
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                took = [_once(connection) for _ in range(ROUND_TRIPS)]
        finally:
            os.sched_setaffinity(0, before)
    took.sort()
    return {"p50_us": quantile(took, 0.5) * 1e6, "p99_us": quantile(took, 0.99) * 1e6}


def _once(connection: socket.socket) -> float:
    sent = time.perf_counter()
    connection.sendall(bytes(REQUEST_BYTES))
    connection.recv(65536)
    return time.perf_counter() - sent


def describe() -> str:
    """A line for the table: round trips on one core and between two; "" where cores cannot be chosen."""
    if not hasattr(os, "sched_setaffinity"):
        return ""
    first, *others = sorted(os.sched_getaffinity(0))
    places = {"on one core": (first, first)}
    if others:
        places["between two cores"] = (first, others[0])
    measured = {name: round_trip(*cores) for name, cores in places.items()}
    return ", ".join(
        f"{name} p50 {m['p50_us']:.0f} us p99 {m['p99_us']:.0f} us" for name, m in measured.items()
    )


if __name__ == "__main__":
    serve()
