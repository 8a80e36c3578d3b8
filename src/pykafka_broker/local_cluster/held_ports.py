"""Ports that stay those of a cluster while none of its nodes listens there.

Nodes come and go, and find their ports again. Other programs that let the system choose a port, which tests
do, are not given one of these. On Linux a bound socket that does not listen keeps a port so: connections are
refused, as at a port that nothing has, and a node can listen there beside it. Elsewhere a node could not, and
ports are not held.
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

        One that another program has is left to it: the node that cannot listen there says so better.
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
