"""Cleaning in a process of its own, started for a round and gone after it.

Going through records is work for the interpreter, and a thread of ours that does it would make every
request wait for it: 5 ms and more, where an answer takes a fraction of one. The process gets a job as a line
of JSON on its standard input, and answers with a line for every finished group and one for the end; it never
touches a file that is in service. It ends when its input does, so also when the broker dies.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pykafka_broker.log.cleaner.job import (
    CleanedSegment,
    CleaningAborted,
    DamagedSegment,
    Job,
    LastRecord,
    SegmentToClean,
)
from pykafka_broker.log.cleaner.throttle import Throttle
from pykafka_broker.log.cleaner.work import clean
from pykafka_broker.log.files import OsFileSystem
from pykafka_broker.log.index import AbortedTxn

#: The cleaner gives way to whoever else wants the processor.
_NICENESS = 10
_MODULE = "pykafka_broker.log.cleaner.process"


class CleaningProcess:
    """One process that cleans log after log; used by one thread at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def clean(self, job: Job, bytes_per_second: float, on_group: Callable[[CleanedSegment], None]) -> int:
        """As `work.clean`. Blocking.

        Raises:
            CleaningAborted: also when `close` was called meanwhile.
        """
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps([encode_job(job), bytes_per_second]) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                kind, *values = json.loads(line)
                if kind == "group":
                    on_group(_decode_group(values))
                elif kind == "end":
                    end_offset: int = values[0]
                    return end_offset
                elif kind == "damaged":
                    raise DamagedSegment(*values)
                else:
                    raise OSError(*values)
        except BrokenPipeError:
            pass
        except BaseException:
            self.close_process()
            raise
        self.close_process()
        if self._is_closed:
            raise CleaningAborted
        raise OSError(0, "the cleaning process has died")

    def _started(self) -> subprocess.Popen[str]:
        with self._lock:
            if self._is_closed:
                raise CleaningAborted
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

    def close_process(self) -> None:
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
        self._is_closed = True
        self.close_process()


def encode_job(job: Job) -> dict[str, Any]:
    """A job as JSON values."""
    return job._asdict()


def decode_job(values: dict[str, Any]) -> Job:
    """The inverse of `encode_job`, after a way through JSON."""
    return Job(
        **{
            **values,
            "segments": [SegmentToClean(*segment) for segment in values["segments"]],
            "aborted": [AbortedTxn(*txn) for txn in values["aborted"]],
            "last_records": {int(key): LastRecord(*last) for key, last in values["last_records"].items()},
        }
    )


def _decode_group(values: list[Any]) -> CleanedSegment:
    group = CleanedSegment(*values)
    return group._replace(aborted=[AbortedTxn(*txn) for txn in group.aborted])


def main() -> None:
    """Do the jobs that arrive on standard input."""
    with suppress(OSError, AttributeError):
        os.nice(_NICENESS)
    files = OsFileSystem()
    for line in sys.stdin:
        values, bytes_per_second = json.loads(line)
        throttle = Throttle(bytes_per_second, now_s=time.monotonic, sleep=time.sleep)
        try:
            job = decode_job(values)
            end_offset = clean(files, job, throttle.count, lambda group: _say("group", *group))
        except DamagedSegment as error:
            _say("damaged", *error.args)
        except OSError as error:
            _say("failed", error.errno or 0, error.strerror or str(error))
        else:
            _say("end", end_offset)


def _say(*values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
