"""A reader holds what its limits say, however large the log is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.arrow.batches import batch_of

MEBIBYTE = 1024 * 1024
PROGRAM = """
import resource, sys
from pykafka_broker.arrow import Limits, Ranges, read_folder

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

limits = Limits(fetch_bytes=1 << 20, batch_bytes=1 << 20)
few = read_folder(sys.argv[1], ranges=Ranges(end=2_000), limits=limits)
rows = sum(batch.num_rows for batch in few)
before = peak()
rows = sum(batch.num_rows for batch in read_folder(sys.argv[1], limits=limits))
print(rows, peak() - before)
"""


def test_a_log_of_200_megabytes_is_read_in_a_few(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    batch = batch_of([b"%03d" % number * 100 for number in range(200)])
    batches = 200 * MEBIBYTE // len(batch)
    with (folder / f"{0:020d}.log").open("wb") as log:
        for number in range(batches):
            # The checksum begins behind the base offset.
            log.write((number * 200).to_bytes(8, "big") + batch[8:])

    command = [sys.executable, "-c", PROGRAM, str(folder)]
    rows, megabytes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    assert int(rows) == batches * 200
    assert int(megabytes) < 30
