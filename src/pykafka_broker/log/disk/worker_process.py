"""A Python process of its own that does long work for the log, one job after the other.

Reading records keeps the interpreter busy: in a thread of the broker it would delay every request by 5 ms or
more, while an answer takes less than 1 ms. The process gets a job as a line of JSON on its standard input and
answers with lines of JSON. It ends when its input ends, which includes the broker's death.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import Any


class WorkerProcess:
    """Runs `module`, which calls `serve`; started at its first job, used by one thread at a time."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self.is_closed = False

    def answers(self, job: object) -> Iterator[Any]:
        """Give it a job and yield its answers; the caller knows which is the last. Blocking.

        Ends before that if the process died or `close` was called; the next job starts another process.
        """
        process = self.started()
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        line = ""
        with suppress(OSError, ValueError):  # it is gone, or its pipes are closed
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        while line.endswith("\n"):  # not an answer that the end of the process has cut short
            yield json.loads(line)
            line = ""
            with suppress(OSError, ValueError):
                line = process.stdout.readline()
        self.end()

    def started(self) -> subprocess.Popen[str] | None:
        """The process; None once `close` was called."""
        with self._lock:
            if self._process is None and not self.is_closed:
                path = os.pathsep.join([entry for entry in sys.path if entry])
                self._process = subprocess.Popen(
                    [sys.executable, "-m", self._module],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env={**os.environ, "PYTHONPATH": path},
                )
            return self._process

    def end(self) -> None:
        """End the process; the next job starts another. Any thread."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            with suppress(OSError):
                process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()

    def close(self) -> None:
        """End the process and start none any more. Any thread."""
        self.is_closed = True
        self.end()


def serve(niceness: int, do: Callable[[Any], None]) -> None:
    """In the process: do the jobs that arrive, at a low priority.

    Ends in the middle of a job when the broker is gone: the next broker, or Apache Kafka, uses the same names
    for the files that its cleaner writes.
    """
    with suppress(OSError, AttributeError):
        os.nice(niceness)
    jobs: SimpleQueue[Any] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            jobs.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        do(jobs.get())


def say(answer: object) -> None:
    """In the process: one line of the answer."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
