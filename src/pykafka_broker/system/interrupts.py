"""The effect of an interrupt (SIGINT, Ctrl-C) before a command has begun its work: the process ends at once.

Loading a command's modules takes a tenth of a second. An exception during an import would show its traceback,
or be swallowed, and there is nothing to undo yet.
"""

from __future__ import annotations

import os

#: As in `typing`, whose import takes too long here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    try:
        # `signal` imports other modules, and an interrupt during that would show a traceback.
        import _signal as signal
    except ImportError:
        import signal

#: Exit status after an interrupt, as a shell reports it.
INTERRUPTED = 130


def end_at_once() -> None:
    """Let an interrupt end the process, until `raise_again`; ignored interrupts stay ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_again() -> None:
    """Let an interrupt raise KeyboardInterrupt, as is Python's default."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(_number: int, _frame: object) -> None:
    os._exit(INTERRUPTED)
