"""Ports stay a cluster's while none of its nodes listens there."""

from __future__ import annotations

import errno
import socket
import sys

import pytest

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
