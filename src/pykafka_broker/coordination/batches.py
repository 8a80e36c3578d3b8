"""How records of a coordinator become batches, and where those go.

A batch may have as many bytes as `max.message.bytes` of the coordinator's topic allows. A larger one is
refused with MESSAGE_TOO_LARGE, which clients of the coordinator see as UNKNOWN_SERVER_ERROR, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Union

from pykafka_broker.protocol.records.batch import HEADER_BYTES

#: Deletions that do not fit into one batch may be spread over several; anything else must stay together.
MAX_TOMBSTONE_BATCH_BYTES = 512 * 1024
#: What the record of a deletion has beside its key, at most.
TOMBSTONE_OVERHEAD_BYTES = 20

#: How many bytes a batch in a partition may have.
MaxBatchBytes = Callable[[int], int]

#: Timestamp, key, value and headers of a record, as batches are built from.
Entry = tuple[int, bytes, Union[bytes, None], tuple[()]]


class Append(Protocol):
    """Appends one record batch to a partition; its offsets and leader epoch are for the log to set."""

    def __call__(self, partition: int, batch: bytes, *, guard: int = 0, transaction_version: int = 0) -> int:
        """Returns the log end offset after the batch.

        `guard` is the coordinator's leave for a transaction's batch, `transaction_version` is that of the
        transaction a marker ends.

        Raises:
            KafkaError: the log refuses the batch, or is not here, or failed.

        """


def batches_of(entries: list[Entry], max_bytes: int) -> list[list[Entry]]:
    """One batch, unless these are only deletions, and too many of them for one of `max_bytes`."""
    if len(entries) == 1 or any(value is not None for _, _, value, _ in entries):
        return [entries]
    batches: list[list[Entry]] = [[]]
    max_bytes = min(max_bytes, MAX_TOMBSTONE_BATCH_BYTES)
    size = HEADER_BYTES
    for entry in entries:
        entry_size = len(entry[1]) + TOMBSTONE_OVERHEAD_BYTES
        if size + entry_size > max_bytes and batches[-1]:
            batches.append([])
            size = HEADER_BYTES
        batches[-1].append(entry)
        size += entry_size
    return batches
