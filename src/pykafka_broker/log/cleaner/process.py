"""Cleaning in a process of its own, started for a round and ended after it.

It answers with a line for every finished group and one for the end, and never writes to a file in service.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Any

from pykafka_broker.log.cleaner.work import clean
from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.log.disk.throttle import Throttle
from pykafka_broker.log.disk.worker_process import WorkerProcess, say, serve
from pykafka_broker.log.partition.cleaning_job import (
    CleanedSegment,
    CleaningAborted,
    DamagedSegment,
    Job,
    LastRecord,
    SegmentToClean,
)
from pykafka_broker.log.segment.aborted_txns import AbortedTxn

_NICENESS = 10
_MODULE = "pykafka_broker.log.cleaner.process"


class CleaningProcess:
    """One process that cleans log after log; used by one thread at a time."""

    def __init__(self) -> None:
        self.worker = WorkerProcess(_MODULE)

    def clean(self, job: Job, bytes_per_second: float, on_group: Callable[[CleanedSegment], None]) -> int:
        """As `work.clean`. Blocking.

        Raises:
            CleaningAborted: also when `close` was called meanwhile.
            ChildProcessError: the process has died, which says nothing about the disk.
            RuntimeError: the process failed in another way; the text is its traceback.
        """
        try:
            for kind, *values in self.worker.answers([encode_job(job), bytes_per_second]):
                if kind == "group":
                    on_group(_decode_group(values))
                elif kind == "end":
                    end_offset: int = values[0]
                    return end_offset
                elif kind == "damaged":
                    raise DamagedSegment(*values)
                elif kind == "refused":
                    raise OSError(*values)
                else:
                    raise RuntimeError(*values)
        except BaseException:
            # Its further answers must not be taken for those of the next job.
            self.worker.end()
            raise
        if self.worker.is_closed:
            raise CleaningAborted
        raise ChildProcessError("the cleaning process has died")

    def close(self) -> None:
        """End the process and start none any more. Any thread."""
        self.worker.close()


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


def _do(request: Any) -> None:
    values, bytes_per_second = request
    throttle = Throttle(bytes_per_second, now_s=time.monotonic, sleep=time.sleep)
    try:
        job = decode_job(values)
        end_offset = clean(OsFileSystem(), job, throttle.count, lambda group: say(("group", *group)))
    except DamagedSegment as error:
        say(("damaged", *error.args))
    except OSError as error:
        say(("refused", error.errno or 0, error.strerror or str(error)))
    except Exception:
        say(("failed", traceback.format_exc()))
    else:
        say(("end", end_offset))


if __name__ == "__main__":
    serve(_NICENESS, _do)
