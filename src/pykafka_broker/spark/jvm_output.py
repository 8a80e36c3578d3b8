"""The output of a JVM, kept from the terminal: a JVM inherits the descriptors of this process when it
starts.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STDERR = 2


@contextmanager
def kept_output() -> Iterator[Callable[[], str]]:
    """In this context standard error goes into a file; the code inside can ask for its content so far."""
    with tempfile.TemporaryFile() as file:
        sys.stderr.flush()
        saved = os.dup(STDERR)
        os.dup2(file.fileno(), STDERR)

        def printed() -> str:
            size = os.fstat(file.fileno()).st_size
            return os.pread(file.fileno(), size, 0).decode(errors="replace")

        try:
            yield printed
        finally:
            os.dup2(saved, STDERR)
            os.close(saved)
