"""The use of a process, read from /proc: processor seconds and resident memory."""

from __future__ import annotations

import os
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of the process so far."""
    # The name of the program may hold spaces and brackets: the fields are counted from the last bracket.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user_ticks, system_ticks = int(fields[11]), int(fields[12])
    return (user_ticks + system_ticks) / TICKS_PER_SECOND


def resident_megabytes(pid: int) -> float:
    """The part of the process that is in memory, as ps and top show it."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    raise ValueError(f"process {pid} has no VmRSS")


def touch_memory(folder: Path, size: int) -> None:
    """Make the machine hand out memory for `size` bytes of page cache, by a file that is gone again
    afterwards.

    In a virtual machine memory that was never used costs several times what the write itself does, so the
    broker that comes first, or that needs fresh pages, would seem slow. Every broker gets memory that has
    been used.
    """
    block = bytes(1 << 20)
    file = folder / "touched"
    with file.open("wb", buffering=0) as target:
        for _ in range(size // len(block) + 1):
            target.write(block)
    file.unlink()
