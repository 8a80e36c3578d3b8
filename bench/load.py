"""Load from a native client: bench/load (Go, franz-go) where Go is present, else bench/librdkafka.py (C)."""

from __future__ import annotations

import functools
import json
import subprocess
import sys

from bench.systems import UnavailableError, go_program


@functools.cache
def generator() -> tuple[str, tuple[str, ...]]:
    """A program that puts the load on, as the table names it, and the command that runs it."""
    try:
        return "franz-go 1.22", (str(go_program("load")),)
    except UnavailableError:
        return "librdkafka", (sys.executable, "-m", "bench.librdkafka")


def run(what: str, address: str, topic: str, records: int, **options: object) -> dict[str, float]:
    flags = [text for name, value in options.items() for text in (f"-{name}", str(value))]
    done = subprocess.run(
        [*generator()[1], what, "-brokers", address, "-topic", topic, "-records", str(records), *flags],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{what} with {generator()[0]} failed: {done.stderr.strip()[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout)
    return result
