"""Scrubbing in a process of its own, started for a round and ended after it. It writes nothing."""

from __future__ import annotations

import time
from typing import Any

from pykafka_broker.log.check.scrubber import ScrubAborted, Scrubbed, ScrubJob, scrub
from pykafka_broker.log.disk.checkpoints import EpochEntry
from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.log.disk.throttle import Throttle
from pykafka_broker.log.disk.worker_process import WorkerProcess, say, serve

_NICENESS = 19
_MODULE = "pykafka_broker.log.check.scrub_process"


class ScrubProcess:
    """One process; used by one thread at a time."""

    def __init__(self) -> None:
        self.worker = WorkerProcess(_MODULE)

    def scrub(self, job: ScrubJob, bytes_per_second: float) -> Scrubbed:
        """As `scrubber.scrub`. Blocking.

        Raises:
            ScrubAborted: `close` was called meanwhile.
            OSError: the process has died.
        """
        for scrubbed in self.worker.answers([job._asdict(), bytes_per_second]):
            return Scrubbed(*scrubbed)
        if self.worker.is_closed:
            raise ScrubAborted
        raise OSError(0, "the scrubbing process has died")

    def close(self) -> None:
        """End the process and start none any more. Any thread."""
        self.worker.close()


def _do(job: Any) -> None:
    values, bytes_per_second = job
    throttle = Throttle(bytes_per_second, now_s=time.monotonic, sleep=time.sleep)
    epochs = [EpochEntry(*entry) for entry in values["epochs"]]
    say(scrub(OsFileSystem(), ScrubJob(**{**values, "epochs": epochs}), throttle.count))


if __name__ == "__main__":
    serve(_NICENESS, _do)
