"""A port is given once, and a held one stays its cluster's while none of its nodes listens there."""

from __future__ import annotations

import errno
import fcntl
import random
import socket
import subprocess
import sys
from itertools import chain, count

import pytest

from pykafka_broker.local_cluster.free_ports import FIRST_PORT
from pykafka_broker.local_cluster.held_ports import HeldPorts
from pykafka_broker.local_cluster.layout import HOST
from pykafka_broker.network.endpoint import ListenerLimits
from pykafka_broker.network.listening import bound_socket
from pykafka_broker.testing.processes import free_port

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ports are held on Linux alone")


def test_a_held_port_refuses_clients_and_is_refused_to_others() -> None:
    held, port = HeldPorts(), free_port()
    held.hold([port])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port))
    with socket.socket() as other, pytest.raises(OSError) as refused:
        other.bind((HOST, port))
    held.release()
    assert refused.value.errno == errno.EADDRINUSE
    with socket.socket() as other:
        other.bind((HOST, port))


def test_a_node_listens_at_a_held_port_time_and_again() -> None:
    held, port = HeldPorts(), free_port()
    held.hold([port])
    for _ in range(2):
        with bound_socket(socket.AF_INET, (HOST, port), ListenerLimits()) as listening:
            listening.listen()
            socket.create_connection((HOST, port)).close()
    held.release()


def test_a_port_that_another_has_is_left_to_it() -> None:
    with socket.create_server((HOST, 0)) as other:
        held, port = HeldPorts(), other.getsockname()[1]
        held.hold([port])
        socket.create_connection((HOST, port)).close()
    held.release()


def test_no_port_is_given_while_the_process_that_was_given_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    asks = "from pykafka_broker.testing.processes import free_port; print(free_port(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", asks], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        theirs = int(other.stdout.readline())
        tried = chain((theirs,), count(FIRST_PORT))
        monkeypatch.setattr(random.SystemRandom, "randrange", lambda *_: next(tried))
        assert free_port() != theirs
        other.communicate("\n")
    tried = chain((theirs,))
    assert free_port() == theirs


def test_ports_are_given_without_locks_where_the_file_system_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", refused)
    assert free_port() >= FIRST_PORT
