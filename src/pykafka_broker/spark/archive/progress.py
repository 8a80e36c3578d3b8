"""The progress of an archive job, from Spark's reports of its batches. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykafka_broker.spark.checkpoint.files import Offsets
from pykafka_broker.spark.progress import end_offsets
from pykafka_broker.system.named_tuple import NamedTuple


class Batch(NamedTuple):
    """A batch that is archived."""

    number: int
    records: int
    #: The bytes of keys, values and headers.
    bytes: int
    #: The time from the batch's planning to its commit.
    seconds: float
    #: Offsets between the end of the batch and the ends of the topics; None where the brokers did not say.
    lag: int | None

    @property
    def records_per_s(self) -> float:
        """The records per second; 0 if no time was measured."""
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def bytes_per_s(self) -> float:
        """The bytes per second; 0 if no time was measured."""
        return self.bytes / self.seconds if self.seconds else 0.0


class Archived(NamedTuple):
    """The totals that a job has archived since its start."""

    batches: int = 0
    records: int = 0
    bytes: int = 0

    def plus(self, batch: Batch) -> Archived:
        """The totals with one more batch."""
        return Archived(self.batches + 1, self.records + batch.records, self.bytes + batch.bytes)


def ends_of(progress: Mapping[str, Any]) -> Offsets:
    """The end offsets of a batch.

    Args:
        progress: As Spark tells it, the value of its JSON.
    """
    import json

    sources = progress.get("sources") or ()
    return end_offsets((each["description"], json.dumps(each.get("endOffset"))) for each in sources)


def batch_of(progress: Mapping[str, Any], bytes_name: tuple[str, str], log_ends: Offsets | None) -> Batch:
    """A batch, as Spark reports it.

    Args:
        progress: The value of its JSON.
        bytes_name: The name of what Spark observed of the batch, and of the number of bytes in it.
        log_ends: Where the topics end; None if that is not known.
    """
    name, number = bytes_name
    observed = (progress.get("observedMetrics") or {}).get(name) or {}
    lag = None
    if log_ends is not None:
        lag = sum(max(log_ends.get(partition, end) - end, 0) for partition, end in ends_of(progress).items())
    return Batch(
        progress["batchId"],
        progress.get("numInputRows") or 0,
        observed.get(number) or 0,
        (progress.get("batchDuration") or 0) / 1000,
        lag,
    )
