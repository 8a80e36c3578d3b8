"""Ports that stay reserved for a cluster while none of its nodes listens there.

The system does not give a held port to programs that let it choose one. On Linux a bound socket that does not
listen holds a port: connections are refused, as at a port without a listener, and a node can listen there
too. Elsewhere a node could not, and ports are not held.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable
from contextlib import ExitStack

from pykafka_broker.local_cluster.layout import HOST


class HeldPorts:
    """Holds ports until `release`."""

    def __init__(self) -> None:
        self._sockets = ExitStack()

    def hold(self, ports: Iterable[int]) -> None:
        """Keep these ports.

        A port of another program is left to it: the node that cannot listen there has the better error.
        """
        if sys.platform != "linux":
            return
        for port in ports:
            sock = self._sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind((HOST, port))
            except OSError:
                sock.close()

    def release(self) -> None:
        """Give the ports back."""
        self._sockets.close()
