"""Ports to the threads of a node: jobs that may block run there, and the event loop awaits their results.

Thread pools implement them (`broker/threads.py`, `log/manager/disk_threads.py`); tests run the jobs at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

Result = TypeVar("Result")


class RunBlocking(Protocol):
    """Runs a job in a worker thread."""

    def __call__(self, job: Callable[[], Result], /) -> Awaitable[Result]: ...


class RunOnDisk(Protocol):
    """Runs a job in a worker thread for the disk of a log directory."""

    def __call__(self, directory: str, job: Callable[[], Result], /) -> Awaitable[Result]: ...
