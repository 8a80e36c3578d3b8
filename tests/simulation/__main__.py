"""`make simulate SEEDS=1000`, or `SECONDS=60`: seeds of the quorum's simulation, and how many a second.

FIRST is the first seed (0). A seed that fails prints its transcript, and the exit code is 1.
"""

from __future__ import annotations

import os
import sys
import time

from tests.simulation.quorum import run
from tests.simulation.violation import Violation


def main() -> int:
    """Run seeds until there are enough of them, or the time is over."""
    first = int(os.environ.get("FIRST") or 0)
    seconds = float(os.environ.get("SECONDS") or 0)
    seeds = int(os.environ.get("SEEDS") or (0 if seconds else 1000))
    started = time.monotonic()
    done = events = failed = 0
    while (not seeds or done < seeds) and (not seconds or time.monotonic() - started < seconds):
        try:
            events += run(first + done)
        except Violation as violation:
            failed += 1
            print(violation, flush=True)
        done += 1
    took = time.monotonic() - started
    rate = f"{done / took:.1f} seeds/s, {events / took:.0f} events/s"
    print(f"{done} seeds from {first} on, {failed} failed: {rate}")
    return 1 if failed else 0


sys.exit(main())
