"""Snapshots of the metadata log: `<end offset>-<epoch>.checkpoint`, batches like those of a log.

    control batch   SnapshotHeader, and with kraft.version 1 also KRaftVersion and Voters
    batches         the metadata records, offsets from 0 on, the epoch is the snapshot's
    control batch   SnapshotFooter: without it the file is torn

`bootstrap.checkpoint` has the same form without voters; its records become the first records of the log.
The snapshot with id (0, 0) has only the first voters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pykafka_broker.log.disk.checkpoints import MalformedFile
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.records import control as m
from pykafka_broker.protocol.records.batch import BatchFields, build_batch, iter_batches, read_records
from pykafka_broker.protocol.records.control import decode_raft_record, encode_raft_record
from pykafka_broker.raft.core.log_view import SnapshotId
from pykafka_broker.raft.core.quorum import VoterSet
from pykafka_broker.system.named_tuple import NamedTuple

#: The limit of a batch; Kafka's snapshots also limit its size.
RECORDS_PER_BATCH = 10_000

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class Snapshot(NamedTuple):
    """The content of a snapshot: framed metadata records, and the voters as of its end."""

    values: tuple[bytes, ...]
    voters: VoterSet | None
    last_timestamp_ms: int


def parse_snapshot_name(name: str) -> SnapshotId | None:
    """The id in a file name, None if it is not a finished snapshot's."""
    match = _NAME.fullmatch(name)
    return SnapshotId(int(match[1]), int(match[2])) if match else None


def encode_snapshot(
    values: Sequence[bytes],
    voters: VoterSet | None,
    *,
    last_timestamp_ms: int,
    now_ms: int,
    epoch: int = 0,
) -> bytes:
    """A whole snapshot file."""
    header: list[object] = [m.SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_timestamp_ms)]
    if voters is not None:
        header += [m.KRaftVersionRecord(version=0, kraft_version=1), voters.to_record()]
    batches = [control_batch(header, base_offset=0, epoch=epoch, now_ms=now_ms)]
    offset = len(header)
    for start in range(0, len(values), RECORDS_PER_BATCH):
        part = values[start : start + RECORDS_PER_BATCH]
        batches.append(metadata_batch(part, base_offset=offset, epoch=epoch, now_ms=now_ms))
        offset += len(part)
    footer = m.SnapshotFooterRecord(version=0)
    batches.append(control_batch([footer], base_offset=offset, epoch=epoch, now_ms=now_ms))
    return b"".join(batches)


def decode_snapshot(data: Buffer) -> Snapshot:
    """Read a whole snapshot file; MalformedFile if it is damaged or its end is missing."""
    values: list[bytes] = []
    voters: VoterSet | None = None
    last_timestamp_ms = -1
    finished = False
    try:
        for position, header in iter_batches(data):
            batch = data[position : position + header.size_in_bytes]
            for record in read_records(batch):
                if not header.is_control:
                    values.append(record.value or b"")
                    continue
                message = decode_raft_record(record.key, record.value)
                if isinstance(message, m.SnapshotHeaderRecord):
                    last_timestamp_ms = message.last_contained_log_timestamp
                elif isinstance(message, m.VotersRecord):
                    voters = VoterSet.from_record(message)
                elif isinstance(message, m.SnapshotFooterRecord):
                    finished = True
    except KafkaError as error:
        raise MalformedFile(f"the snapshot is damaged: {error.message}") from None
    if not finished:
        raise MalformedFile("the snapshot has no footer: it was not written to its end")
    return Snapshot(tuple(values), voters, last_timestamp_ms)


def control_batch(messages: Iterable[object], *, base_offset: int, epoch: int, now_ms: int) -> bytes:
    """One batch of Raft control records."""
    records = [(now_ms, *encode_raft_record(message), ()) for message in messages]
    return build_batch(records, BatchFields(base_offset=base_offset, leader_epoch=epoch, control=True))


def metadata_batch(values: Iterable[bytes], *, base_offset: int, epoch: int, now_ms: int) -> bytes:
    """One batch of framed metadata records; readers see all of it or nothing."""
    records = [(now_ms, None, value, ()) for value in values]
    return build_batch(records, BatchFields(base_offset=base_offset, leader_epoch=epoch))
