"""The folder of a streaming checkpoint, as Spark writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.spark.checkpoint.files import offsets_line

PLANNED_MS = 1_700_000_000_000
QUERY_ID = "7a1d4c5e-0000-4000-8000-000000000001"


def make_checkpoint(
    folder: Path,
    batches: Sequence[Mapping[PartitionKey, int]],
    *,
    done: int | None = None,
    planned_ms: int = PLANNED_MS,
) -> Path:
    """A checkpoint whose batches end at these offsets; of them `done` are done, all if None."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text(json.dumps({"id": QUERY_ID}))
    settings = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": planned_ms, "conf": {}})
    for number, offsets in enumerate(batches):
        (folder / "offsets" / str(number)).write_text(f"v1\n{settings}\n{offsets_line(offsets)}")
        (folder / "offsets" / f".{number}.crc").write_bytes(b"crc")
        if done is None or number < done:
            (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return folder
