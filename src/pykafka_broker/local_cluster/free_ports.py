"""Free ports for servers that stop and start again on the same port.

They are below the ports that the system gives to outgoing connections and to programs that let it choose. So
while a server is down, a client that tries to reach it, or another server, does not get its port.
"""

from __future__ import annotations

import os
import random
import socket
import tempfile
from contextlib import suppress
from functools import cache

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
    """A free port that no process of this user has handed out and still runs, this one included."""
    while True:
        port = _DICE.randrange(FIRST_PORT, FIRST_OUTGOING_PORT)
        with socket.socket() as listener, suppress(OSError):
            listener.bind((HOST, port))
            if len(_HANDED_OUT) == MOST_HANDED_OUT:
                _HANDED_OUT.clear()
            if port not in _HANDED_OUT and _claimed(port):
                _HANDED_OUT.add(port)
                return port


def _claimed(port: int) -> bool:
    """Claim the port until this process ends; False if another process that asks here has it."""
    claims = _claims()
    if claims is None:
        return True
    import fcntl

    try:
        fcntl.lockf(claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except (BlockingIOError, PermissionError):  # by system
        return False
    except OSError:
        return True  # a file system without locks
    return True


@cache
def _claims() -> int | None:
    """The file in which each byte is the lock of a port; None on Windows, or if it cannot be opened."""
    if os.name == "nt":
        return None
    path = os.path.join(tempfile.gettempdir(), f"pykafka_broker-ports-{os.getuid()}")
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
