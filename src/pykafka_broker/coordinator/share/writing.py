"""Writes the records of a share shard into its partition of `__share_group_state`, and cuts that log."""

from __future__ import annotations

from typing import Protocol

from pykafka_broker.coordinator.batches import CoordinatorLog, batches_of
from pykafka_broker.coordinator.share.core.records import Snapshot, Update, encode_record
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
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
    """Append records as one batch, or large sets of tombstones as several; return the log end offset.

    Raises:
        KafkaError: any error of `log`.

    """
    encoded = [
        (now_ms, *encode_record(record), ()) for record in records if isinstance(record, (Snapshot, Update))
    ]
    end_offset = 0
    for each in batches_of(encoded, log.max_batch_bytes(partition)):
        end_offset = log.append(partition, build_batch(each, BatchFields(codec=codec)))
    return end_offset
