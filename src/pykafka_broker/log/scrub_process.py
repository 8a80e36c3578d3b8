"""Scrubbing in a process of its own, started for a round and gone after it.

To go through batches is work for the interpreter, which a thread of ours would take from every request. The
process gets a job as a line of JSON on its standard input and answers with a line. It writes nothing, and
ends when its input does, so also when the broker dies.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

from pykafka_broker.log.cleaner.throttle import Throttle
from pykafka_broker.log.epochs import EpochEntry
from pykafka_broker.log.files import OsFileSystem
from pykafka_broker.log.scrubbing import ScrubAborted, Scrubbed, ScrubJob, scrub

#: It gives way to whoever else wants the processor.
_NICENESS = 19
_MODULE = "pykafka_broker.log.scrub_process"


class ScrubProcess:
    """One process; used by one thread at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def scrub(self, job: ScrubJob, bytes_per_second: float) -> Scrubbed:
        """As `scrubbing.scrub`. Blocking.

        Raises:
            ScrubAborted: `close` was called meanwhile.
            OSError: the process has died.
        """
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        line = ""
        with suppress(OSError, ValueError):  # it is gone, or its pipes are closed
            process.stdin.write(json.dumps([job._asdict(), bytes_per_second]) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        if self._is_closed:
            raise ScrubAborted
        if not line:
            self._end()
            raise OSError(0, "the scrubbing process has died")
        return Scrubbed(*json.loads(line))

    def _started(self) -> subprocess.Popen[str]:
        with self._lock:
            if self._is_closed:
                raise ScrubAborted
            if self._process is None:
                path = os.pathsep.join([entry for entry in sys.path if entry])
                self._process = subprocess.Popen(
                    [sys.executable, "-m", _MODULE],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env={**os.environ, "PYTHONPATH": path},
                )
            return self._process

    def _end(self) -> None:
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
        self._is_closed = True
        self._end()


def main() -> None:
    """Do the jobs that arrive on standard input."""
    with suppress(OSError, AttributeError):
        os.nice(_NICENESS)
    files = OsFileSystem()
    for line in sys.stdin:
        values, bytes_per_second = json.loads(line)
        throttle = Throttle(bytes_per_second, now_s=time.monotonic, sleep=time.sleep)
        epochs = [EpochEntry(*entry) for entry in values["epochs"]]
        job = ScrubJob(**{**values, "epochs": epochs})
        sys.stdout.write(json.dumps(scrub(files, job, throttle.count)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
