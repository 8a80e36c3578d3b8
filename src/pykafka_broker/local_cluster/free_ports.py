"""Free ports for servers that stop and start again on the same port.

They are below the ports that the system gives to outgoing connections and to programs that let it choose. So
while a server is down, a client that tries to reach it, or another server, does not get its port.
"""

from __future__ import annotations

import random
import socket
from contextlib import suppress

from pykafka_broker.local_cluster.layout import HOST

#: Linux takes its outgoing ports from here on, other systems from higher ones.
FIRST_OUTGOING_PORT = 32_768
FIRST_PORT = 10_000

#: Not `random`, which some tests seed with the same number again and again.
_DICE = random.SystemRandom()
#: Ports whose servers may not listen yet.
_HANDED_OUT: set[int] = set()
MOST_HANDED_OUT = 10_000


def free_port() -> int:
    """A free port that this process has not handed out before."""
    while True:
        port = _DICE.randrange(FIRST_PORT, FIRST_OUTGOING_PORT)
        with socket.socket() as listener, suppress(OSError):
            listener.bind((HOST, port))
            if len(_HANDED_OUT) == MOST_HANDED_OUT:
                _HANDED_OUT.clear()
            if port not in _HANDED_OUT:
                _HANDED_OUT.add(port)
                return port
