"""The network of the torture loses, refuses and delays what it is told to, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.torture.network import IN_LONG_FORM, OUTSIDE, Network, why_not

pytestmark = [pytest.mark.slow, IN_LONG_FORM]

HOSTS = (1, 2, 3)
PORTS = (7001, 7002)
#: Sends back what comes, on two ports: `SERVER ADDRESS`.
SERVER = f"""
import asyncio, sys

async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)

async def main():
    servers = [await asyncio.start_server(echo, sys.argv[1], port) for port in {PORTS}]
    print("ready", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))

asyncio.run(main())
"""
#: Has some bytes sent back, and prints what came of it: `CLIENT ADDRESS PORT TIMEOUT_S BYTES`.
CLIENT = """
import socket, sys

address, port, timeout_s, size = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
try:
    with socket.create_connection((address, port), timeout_s) as connection:
        connection.sendall(bytes(size))
        while size:
            size -= len(connection.recv(65536))
    print("answered")
except TimeoutError:
    print("silence")
except OSError:
    print("refused")
"""


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    if reason := why_not():
        pytest.skip(reason)
    with Network(HOSTS) as made, ExitStack() as stack:
        for host in HOSTS:
            command = [*made.inside(host), sys.executable, "-c", SERVER, made.address(host)]
            server = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(server.kill)
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
        yield made


@pytest.fixture(autouse=True)
def _mended(network: Network) -> Iterator[None]:
    yield
    network.mend()


def answer(
    network: Network, source: int, target: int, port: int = PORTS[0], size: int = 1, timeout_s: float = 0.5
) -> str:
    """What a client on one host hears from the server on another."""
    where = [] if source == OUTSIDE else network.inside(source)
    asked = [network.address(target), str(port), str(timeout_s), str(size)]
    command = [*where, sys.executable, "-c", CLIENT, *asked]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_all_hosts_reach_each_other(network: Network) -> None:
    ways = [(source, target) for source in (*HOSTS, OUTSIDE) for target in HOSTS if source != target]
    patient = 20.0
    assert {way: answer(network, *way, timeout_s=patient) for way in ways} == dict.fromkeys(ways, "answered")


def test_what_is_dropped_in_one_direction_is_silence_in_both_and_elsewhere_nothing(network: Network) -> None:
    network.drop(1, 2)
    assert [answer(network, 1, 2), answer(network, 2, 1)] == ["silence", "silence"]
    assert [answer(network, *way, timeout_s=20) for way in ((1, 3), (3, 2), (OUTSIDE, 2))] == ["answered"] * 3
    network.mend()
    assert answer(network, 1, 2, timeout_s=20) == "answered"


def test_a_dropped_port_leaves_the_other_port_and_the_other_direction(network: Network) -> None:
    network.drop(1, 2, PORTS[0])
    assert answer(network, 1, 2, PORTS[0]) == "silence"
    assert answer(network, 1, 2, PORTS[1], timeout_s=20) == "answered"
    assert answer(network, 2, 1, PORTS[0], timeout_s=20) == "answered"


def test_who_is_refused_learns_it_at_once(network: Network) -> None:
    network.refuse(1, 2)
    assert answer(network, 1, 2, timeout_s=60) == "refused"


def test_a_slow_link_is_slow_in_its_direction(network: Network) -> None:
    size = 60_000
    network.slow(1, 2, 200_000)
    began = time.monotonic()
    assert answer(network, 1, 2, size=size, timeout_s=60) == "answered"
    # 2.4 s at that speed, of which the first bytes come at once.
    assert time.monotonic() - began > 1
