"""The event loop that runs the broker, and the limit of its open files.

It is uvloop if that can be imported (Linux, macOS), with about twice the requests per second. Otherwise it is
asyncio's own loop; on Windows the selector loop, because listening sockets are watched with `add_reader`,
which the proactor loop lacks.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the factory of the best event loop for this machine."""
    if sys.platform == "win32":
        return asyncio.SelectorEventLoop
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run `main` to its end on the best event loop of this machine."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main)


def raise_open_file_limit() -> int | None:
    """Raise the soft limit of open files to the hard limit; return the limit in force, None if unlimited.

    A broker needs a descriptor per connection and several per partition; the usual soft limit of 1024 is a
    precaution for programs that use select(2).
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (ValueError, OSError):  # macOS reports more than it grants
            return soft
    return None if soft == resource.RLIM_INFINITY else soft
