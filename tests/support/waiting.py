"""Waiting for what other processes and threads do; `testing/home.py` has this for an event loop."""

from __future__ import annotations

import time
from collections.abc import Callable

#: A limit on hangs, also of a busy machine.
PATIENCE_S = 120


def until(is_so: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + patience_s
    while not is_so():
        assert time.monotonic() < deadline, f"waited {patience_s:.0f} s in vain until {what}"
        time.sleep(0.05)
