"""`make simulate SEEDS=1000 SHELL_SEEDS=100`, or `SECONDS=60`: seeds of the quorum's simulation.

Seeds of the core, and seeds of the shell over files, which take several times as long. Without SHELL_SEEDS
there are a tenth as many of them; of SECONDS each kind gets half. FIRST is the first seed (0). A seed that
fails prints its transcript, and the exit code is 1.
"""

from __future__ import annotations

import logging
import os
import sys
import time

from tests.simulation.core_replica import CORE
from tests.simulation.quorum import run
from tests.simulation.replica import Kind
from tests.simulation.shell_replica import SHELL
from tests.simulation.violation import Violation


def main() -> int:
    """Run seeds of both kinds until there are enough of them, or the time is over."""
    logging.disable()  # what a log says of damage and cuts is nothing new here
    seconds = float(os.environ.get("SECONDS") or 0) / 2
    seeds = int(os.environ.get("SEEDS") or (0 if seconds else 1000))
    shell_seeds = int(os.environ.get("SHELL_SEEDS") or seeds // 10)
    failed = simulate(CORE, seeds, seconds) + simulate(SHELL, shell_seeds, seconds)
    return 1 if failed else 0


def simulate(kind: Kind, seeds: int, seconds: float) -> int:
    """Run seeds of one kind; return how many have failed."""
    first = int(os.environ.get("FIRST") or 0)
    started = time.monotonic()
    done = events = failed = 0
    while (not seeds or done < seeds) and (not seconds or time.monotonic() - started < seconds):
        try:
            events += run(first + done, kind=kind)
        except Violation as violation:
            failed += 1
            print(violation, flush=True)
        done += 1
    took = time.monotonic() - started
    rate = f"{done / took:.1f} seeds/s, {events / took:.0f} events/s"
    print(f"{kind.name}: {done} seeds from {first} on, {failed} failed: {rate}", flush=True)
    return failed


sys.exit(main())
