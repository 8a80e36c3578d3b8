"""Writes the records of a share shard into its partition of `__share_group_state`, and deletes old ones."""

from __future__ import annotations

from typing import Protocol

from pykafka_broker.coordinator.batches import CoordinatorLog, append_entries
from pykafka_broker.coordinator.share.core.records import Snapshot, Update, encode_record
from pykafka_broker.protocol.records.compression import Codec


class ShareLog(CoordinatorLog, Protocol):
    """The partitions of `__share_group_state` that this node leads."""

    def end_offset(self, partition: int) -> int:
        """The offset of the next record.

        Raises:
            KafkaError: the partition is not led here.
        """
        ...

    def delete_records(self, partition: int, before_offset: int) -> None:
        """Delete the records before an offset.

        Raises:
            KafkaError: the partition is not led here, the offset is not committed, or the topic is compacted.
        """
        ...


def write(
    log: CoordinatorLog, partition: int, records: tuple[object, ...], *, now_ms: int, codec: Codec
) -> int:
    """Append records as `append_entries` does; return the log end offset."""
    encoded = [
        (now_ms, *encode_record(record), ()) for record in records if isinstance(record, (Snapshot, Update))
    ]
    return append_entries(log, partition, encoded, codec)
