"""A process that has hardly a file descriptor left."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def descriptors_left(number: int) -> Iterator[None]:
    """Let this process open so many files more, and others only for those that it closes meanwhile."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    top = max(map(int, os.listdir("/dev/fd")))
    gaps = []
    while (descriptor := os.open(os.devnull, os.O_RDONLY)) <= top:
        gaps.append(descriptor)
    os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptor + number, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        for descriptor in gaps:
            os.close(descriptor)
