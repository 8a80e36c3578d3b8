"""How records of a coordinator become batches, and where those go."""

from __future__ import annotations

from typing import Protocol, Union

#: Deletions that do not fit into one batch may be spread over several; anything else must stay together.
MAX_TOMBSTONE_BATCH_BYTES = 512 * 1024

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


def batches_of(entries: list[Entry]) -> list[list[Entry]]:
    """One batch, unless these are only deletions, and too many of them for one."""
    if len(entries) == 1 or any(value is not None for _, _, value, _ in entries):
        return [entries]
    batches: list[list[Entry]] = [[]]
    size = 0
    for entry in entries:
        if size > MAX_TOMBSTONE_BATCH_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(entry)
        size += len(entry[1])
    return batches
