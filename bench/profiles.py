"""What a profile of a topic costs beside reading it: records for each second of processor time.

    python -m bench.profiles [records]

Records in a folder have 100 B of JSON and a key: each its own one, or one of many, of which some are hot. The
best of three runs counts, in turns.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pykafka_broker.arrow import profile_folder, read_folder
from pykafka_broker.protocol.records.batch import BatchFields, build_batch

RECORDS = 1_000_000
BATCH_RECORDS = 500
ROUNDS = 3
BEGIN_MS = 1_700_000_000_000
VALUE = b'{"amount": 10, "name": "%s"}' % (b"n" * 73)


def uniform(dice: random.Random) -> bytes:
    return b"%016x" % dice.getrandbits(64)


def skewed(dice: random.Random) -> bytes:
    return b"user-%d" % int(min(dice.paretovariate(0.6), 1e5))


KEYS: tuple[Callable[[random.Random], bytes], ...] = (uniform, skewed)


def log(key: Callable[[random.Random], bytes], records: int) -> Iterator[bytes]:
    """The batches of a partition."""
    dice = random.Random(1)
    for at in range(0, records, BATCH_RECORDS):
        written = [(BEGIN_MS + at + number, key(dice), VALUE, ()) for number in range(BATCH_RECORDS)]
        yield build_batch(written, BatchFields(base_offset=at))


def per_second(records: int, read: Callable[[], int]) -> float:
    began = time.process_time()
    assert read() == records
    return records / (time.process_time() - began)


def main() -> None:
    records = (int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS) // BATCH_RECORDS * BATCH_RECORDS
    for key in KEYS:
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent) / f"{key.__name__}-0"
            folder.mkdir()
            with (folder / f"{0:020d}.log").open("wb") as file:
                file.writelines(log(key, records))

            def read(folder: Path = folder) -> int:
                return sum(batch.num_rows for batch in read_folder(folder))

            def profile(folder: Path = folder) -> int:
                return profile_folder(folder).records

            rates = [(per_second(records, read), per_second(records, profile)) for _ in range(ROUNDS)]
            reading, profiling = (max(each) for each in zip(*rates, strict=True))
        print(
            f"{key.__name__} keys: read_folder {reading / 1e6:.2f} M records a second, "
            f"profile_folder {profiling / 1e6:.2f} M"
        )


if __name__ == "__main__":
    main()
