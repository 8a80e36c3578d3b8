"""The records of a Fetch answer, as the batches that a replica appends."""

from __future__ import annotations

from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.records.batch import check_batch, iter_batches, read_records
from pykafka_broker.protocol.records.control import decode_raft_record
from pykafka_broker.raft.core.log_view import Batch


def fetched_batches(records: Buffer | None) -> tuple[Batch, ...]:
    """Return the whole batches before the first damaged one; the rest is fetched again.

    Checksums are verified and control records decoded here, before the replica acknowledges the records.
    """
    if not records:
        return ()
    batches: list[Batch] = []
    try:
        for position, header in iter_batches(records):
            check_batch(records, position)
            data = bytes(records[position : position + header.size_in_bytes])
            control: tuple[object, ...] = ()
            if header.is_control:
                control = tuple(decode_raft_record(r.key, r.value) for r in read_records(data))
            batches.append(
                Batch(header.base_offset, header.next_offset, header.partition_leader_epoch, control, data)
            )
    except KafkaError:
        return tuple(batches)
    return tuple(batches)
