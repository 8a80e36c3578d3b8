"""The links of tests: this process is node 1, and asks a process of its own, node 2."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pykafka_broker.testing.processes import free_port
from tests.torture.links import Links

ECHO = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    print("listens", flush=True)
    while True:
        connection, _ = server.accept()
        try:
            while data := connection.recv(100):
                print(data.decode(), flush=True)
                connection.sendall(data)
            print("end", flush=True)
        except ConnectionResetError:
            print("reset", flush=True)
"""


class Pair:
    """A connection from node 1 to node 2 over the links."""

    def __init__(self, links: Links, node: subprocess.Popen[str], port: int) -> None:
        self.links = links
        self._node = node
        self._port = port
        self.socket = self.connect()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), 10)

    def heard(self) -> str:
        """What node 2 has heard next."""
        assert self._node.stdout is not None
        return self._node.stdout.readline().strip()

    def silent(self) -> bool:
        """Nothing comes back within a moment."""
        self.socket.settimeout(0.2)
        try:
            return not self.socket.recv(100)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(10)


@pytest.fixture
def pair() -> Iterator[Pair]:
    port, behind = free_port(), free_port()
    command = [sys.executable, "-c", ECHO, str(behind)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as node:
        try:
            assert node.stdout is not None and node.stdout.readline() == "listens\n"
            with Links(lambda: {1: os.getpid(), 2: node.pid}) as links:
                links.open(2, port, behind)
                found = Pair(links, node, port)
                with found.socket:
                    yield found
        finally:
            node.kill()


def test_a_link_carries_what_both_say(pair: Pair) -> None:
    pair.socket.sendall(b"one")
    assert (pair.heard(), pair.socket.recv(100)) == ("one", b"one")


def test_what_goes_into_a_cut_link_comes_out_when_it_is_mended(pair: Pair) -> None:
    pair.links.cut([(1, 2)])
    pair.socket.sendall(b"one")
    assert pair.silent()
    pair.links.mend()
    assert (pair.heard(), pair.socket.recv(100)) == ("one", b"one")


def test_a_link_that_is_cut_in_one_direction_carries_the_other(pair: Pair) -> None:
    pair.socket.sendall(b"one")
    assert (pair.heard(), pair.socket.recv(100)) == ("one", b"one")
    pair.links.cut([(2, 1)])
    pair.socket.sendall(b"two")
    assert pair.heard() == "two"
    assert pair.silent()
    pair.links.mend()
    assert pair.socket.recv(100) == b"two"


def test_a_link_that_is_cut_in_one_direction_makes_no_connection(pair: Pair) -> None:
    pair.links.cut([(2, 1)])
    pair.socket.sendall(b"one")
    assert pair.silent()
    pair.links.mend()
    assert (pair.heard(), pair.socket.recv(100)) == ("one", b"one")


def test_links_between_other_nodes_are_cut_without_this_one(pair: Pair) -> None:
    pair.links.cut([(3, 2), (2, 3), (1, 3)])
    pair.socket.sendall(b"one")
    assert pair.socket.recv(100) == b"one"


def test_the_end_of_a_connection_goes_its_way_too(pair: Pair) -> None:
    pair.socket.sendall(b"one")
    assert pair.heard() == "one"
    pair.socket.shutdown(socket.SHUT_WR)
    assert pair.heard() == "end"
    assert pair.socket.recv(100) == b"one"  # the other direction goes on


def test_connections_that_are_dropped_are_reset_and_others_are_made(pair: Pair) -> None:
    pair.socket.sendall(b"one")
    assert pair.heard() == "one"
    assert pair.socket.recv(100) == b"one"
    pair.links.drop()
    with pytest.raises(ConnectionResetError):
        pair.socket.recv(100)
    assert pair.heard() == "reset"
    with pair.connect() as another:
        another.sendall(b"two")
        assert another.recv(100) == b"two"
