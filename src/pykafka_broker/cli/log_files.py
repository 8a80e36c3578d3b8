"""The content of a log's files: each kind of file as lines, or as JSON values, for `dump-log`.

The lines are those of Apache Kafka's DumpLogSegments. Problems (a batch whose checksum is wrong, an index
entry that points nowhere) are collected beside the lines; finding any makes the command fail.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pykafka_broker.cli.output import compact_json
from pykafka_broker.cli.record_json import Decoder, message_json
from pykafka_broker.log.disk.names import BOOTSTRAP_CHECKPOINT, METADATA_TOPIC
from pykafka_broker.log.partition.producers import NO_OFFSET, CorruptSnapshotError, read_snapshot
from pykafka_broker.log.segment.aborted_txns import ABORTED_TXN_BYTES, read_aborted_txns
from pykafka_broker.log.segment.index import InvalidIndexError
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    BatchHeader,
    Record,
    increment_sequence,
    iter_batches,
    read_records,
)
from pykafka_broker.protocol.records.control import (
    ControlRecordType,
    decode_key,
    decode_marker,
    decode_raft_record,
)
from pykafka_broker.protocol.records.crc import crc32c
from pykafka_broker.protocol.records.errors import CorruptRecord
from pykafka_broker.system.named_tuple import NamedTuple

NO_TIMESTAMP = -1
#: Kinds of items that others than this file need to tell apart.
BATCH, UNKNOWN_FILE = "batch", "unknown"
#: The beginning of the names of a log's files: an offset, or an offset and an epoch.
_OFFSET_NAME = re.compile(r"\d+(-\d+)?\.")
#: The names of DumpLogSegments for the control records of Raft.
RAFT_RECORDS = {
    ControlRecordType.LEADER_CHANGE: "LeaderChange:",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlRecordType.KRAFT_VERSION: "KRaftVersion",
    ControlRecordType.KRAFT_VOTERS: "KRaftVoters",
}


class Options(NamedTuple):
    """The parts of a file to show."""

    records: bool = False
    data: bool = False
    record_metadata: bool = True
    decoder: Decoder | None = None
    #: Shows the records of the metadata log where there is no decoder; None to show them as they are.
    metadata_decoder: Decoder | None = None
    max_bytes: int | None = None
    entries: bool = True


class Item(NamedTuple):
    """One line of the dump, and the same as JSON values."""

    text: str
    value: dict[str, Any]


class Problem(NamedTuple):
    """Something wrong with a file: a heading, and the detail below it."""

    heading: str
    detail: str | None = None


Dump = Iterator[Item | Problem]


def dump_file(path: str, options: Options) -> Dump:
    """The content of a file, whose name tells its kind.

    Raises:
        OSError: the file cannot be read.
    """
    os.stat(path)
    name = os.path.basename(path)
    suffix = os.path.splitext(name)[1]
    if name != BOOTSTRAP_CHECKPOINT and not _OFFSET_NAME.match(name):
        suffix = ""
    if suffix in (".log", ".checkpoint"):
        yield from dump_log(path, options)
    elif suffix == ".index":
        yield from dump_offset_index(path, options)
    elif suffix == ".timeindex":
        yield from dump_time_index(path, options)
    elif suffix == ".snapshot":
        yield from dump_producers(path)
    elif suffix == ".txnindex":
        yield from dump_aborted(path)
    else:
        yield Item(f"Ignoring unknown file {path}", {"kind": UNKNOWN_FILE})


# -- logs
# ---------------------------------------------------------------------------------------------------------


def dump_log(path: str, options: Options) -> Dump:
    """Batches and, if wanted, the records in them."""
    name = os.path.basename(path)
    data = memoryview(_read(path))
    yield _title(name)
    if options.decoder is None and _is_of_metadata(path):
        options = options._replace(decoder=options.metadata_decoder)
    end = 0
    previous = None
    for at, header in _batches(data):
        if options.max_bytes is not None and at + header.size_in_bytes > options.max_bytes:
            return
        end = at + header.size_in_bytes
        batch = data[at:end]
        is_valid = header.crc == crc32c(batch[ATTRIBUTES_OFFSET:])
        yield _batch_item(header, at, is_valid)
        if not is_valid:
            yield Problem(f"Corrupt batches in {path}", f"position: {at} base offset: {header.base_offset}")
        if previous is not None and header.base_offset <= previous:
            detail = f"{previous} is followed by {header.base_offset}"
            yield Problem(f"Offsets that do not rise in {path}", detail)
        previous = header.last_offset
        if options.records:
            try:
                for record in read_records(batch, check_crc=False):
                    yield _record_item(record, header, options)
            except KafkaError as error:
                yield Problem(f"Unreadable batches in {path}", f"position: {at} {error.message}")
    if end < len(data):
        text = f"Found {len(data) - end} invalid bytes at the end of {name}"
        yield Item(text, {"kind": "torn", "bytes": len(data) - end})
        try:
            next(iter_batches(data[end:]), None)
        except CorruptRecord:
            yield Problem(f"Unreadable batches in {path}", f"position: {end} no header of a batch")
        else:
            yield Problem(f"Torn end of {path}")


def _batches(data: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """The batches up to one that is torn, or whose damaged header does not tell where the next begins."""
    with suppress(CorruptRecord):
        yield from iter_batches(data)


def _is_of_metadata(path: str) -> bool:
    folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
    return path.endswith(".checkpoint") or folder.startswith(METADATA_TOPIC)


def _title(name: str) -> Item:
    if name == BOOTSTRAP_CHECKPOINT:
        return Item("KRaft bootstrap snapshot", {"kind": "bootstrap snapshot"})
    stem = name.split(".")[0]
    offset, _, epoch = stem.partition("-")
    if name.endswith(".checkpoint"):
        text = f"Snapshot end offset: {int(offset)}, epoch: {int(epoch)}"
        return Item(text, {"kind": "snapshot", "end_offset": int(offset), "epoch": int(epoch)})
    return Item(f"Log starting offset: {int(stem)}", {"kind": "log", "starting_offset": int(stem)})


def _batch_item(header: BatchHeader, position: int, is_valid: bool) -> Item:
    horizon = header.delete_horizon_ms
    clock = "LogAppendTime" if header.timestamp_type else "CreateTime"
    codec = _codec(header)
    text = (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.records_count} "
        f"baseSequence: {header.base_sequence} lastSequence: {header.last_sequence} "
        f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.partition_leader_epoch} "
        f"isTransactional: {_java(header.is_transactional)} isControl: {_java(header.is_control)} "
        f"deleteHorizonMs: {_optional(horizon)} "
        f"position: {position} {clock}: {header.max_timestamp} size: {header.size_in_bytes} "
        f"magic: {header.magic} compresscodec: {codec} crc: {header.crc} isvalid: {_java(is_valid)}"
    )
    value = {
        "kind": BATCH,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.records_count,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "partition_leader_epoch": header.partition_leader_epoch,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "delete_horizon_ms": horizon,
        "position": position,
        "timestamp_type": clock,
        "max_timestamp": header.max_timestamp,
        "size": header.size_in_bytes,
        "magic": header.magic,
        "codec": codec,
        "crc": header.crc,
        "is_valid": is_valid,
    }
    return Item(text, value)


def _codec(header: BatchHeader) -> str:
    try:
        return header.codec.name.lower()
    except KafkaError:  # damaged, or of a later version
        return "unknown"


def _record_item(record: Record, header: BatchHeader, options: Options) -> Item:
    sequence = header.base_sequence
    if sequence >= 0:
        sequence = increment_sequence(sequence, record.offset - header.base_offset)
    clock = "LogAppendTime" if header.timestamp_type else "CreateTime"
    header_keys = [name for name, _ in record.headers]
    parts = []
    value: dict[str, Any] = {
        "kind": "record",
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key_size": _size(record.key),
        "value_size": _size(record.value),
        "sequence": sequence,
        "header_keys": header_keys,
    }
    if options.record_metadata:
        parts.append(
            f"offset: {record.offset} {clock}: {record.timestamp} keySize: {_size(record.key)} "
            f"valueSize: {_size(record.value)} sequence: {sequence} headerKeys: [{','.join(header_keys)}]"
        )
        if header.is_control:
            parts.append(_control_text(record))
    if header.is_control:
        value["control"] = _control_text(record)
    elif options.data:
        key, payload = _decoded(record, options.decoder)
        if key is not None:
            parts.append(f"key: {key}")
        if payload is not None:
            parts.append(f"payload: {payload}")
        value["key"], value["payload"] = key, payload
    return Item("| " + " ".join(parts) if parts else "", value)


def _control_text(record: Record) -> str:
    record_type = decode_key(record.key)
    if record_type is None:
        return "controlType: UNKNOWN"
    marker = decode_marker(record.key, record.value)
    if marker is not None:
        return f"endTxnMarker: {record_type.name} coordinatorEpoch: {marker.coordinator_epoch}"
    message = decode_raft_record(record.key, record.value)
    return f"{RAFT_RECORDS[record_type]} {compact_json(message_json(message, 0))}"


def _decoded(record: Record, decoder: Decoder | None) -> tuple[str | None, str | None]:
    if decoder is not None:
        return decoder(record.offset, record.key, record.value)
    return _text(record.key), _text(record.value)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _java(value: bool) -> str:
    return "true" if value else "false"


def _optional(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


# -- indexes
# ------------------------------------------------------------------------------------------------------


def dump_offset_index(path: str, options: Options) -> Dump:
    """The entries of an `.index`, each compared with the batch it points to."""
    base_offset = int(os.path.basename(path).split(".")[0])
    log = memoryview(_read_if_there(_log_of(path)))
    data = _read(path)
    if len(data) < 8:
        yield Item(f"{path} is empty.", {"kind": "empty index"})
    for at in range(0, len(data) - len(data) % 8, 8):
        offset = base_offset + int.from_bytes(data[at : at + 4], "big", signed=True)
        position = int.from_bytes(data[at + 4 : at + 8], "big", signed=True)
        # Zeros follow, if a preallocated file was not closed in good order.
        if offset == base_offset and at > 0:
            return
        if options.entries:
            entry = {"kind": "index entry", "offset": offset, "position": position}
            yield Item(f"offset: {offset} position: {position}", entry)
        found = next((header.last_offset for _, header in _batches(log[max(position, 0) :])), -1)
        if found != offset:
            yield Problem(f"Mismatches in :{path}", f"Index offset: {offset}, log offset: {found}")


def dump_time_index(path: str, options: Options) -> Dump:
    """The entries of a `.timeindex`, each compared with the batch that holds its offset."""
    base_offset = int(os.path.basename(path).split(".")[0])
    timestamps = {
        header.last_offset: header.max_timestamp
        for _, header in _batches(memoryview(_read_if_there(_log_of(path))))
    }
    data = _read(path)
    previous = NO_TIMESTAMP
    for at in range(0, len(data) - len(data) % 12, 12):
        timestamp = int.from_bytes(data[at : at + 8], "big", signed=True)
        offset = base_offset + int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
        if offset == base_offset and at > 0:
            return
        if options.entries:
            entry = {"kind": "time index entry", "timestamp": timestamp, "offset": offset}
            yield Item(f"timestamp: {timestamp} offset: {offset}", entry)
        if offset not in timestamps:
            found = min((last for last in timestamps if last >= offset), default=-1)
            yield Problem(
                f"The following indexed offsets are not found in :{path}",
                f"Indexed offset: {offset}, found log offset: {found}",
            )
        elif timestamps[offset] != timestamp:
            yield Problem(
                f"Found timestamp mismatch in :{path}",
                f"Index timestamp: {timestamp}, log timestamp: {timestamps[offset]}",
            )
        if previous >= timestamp:
            yield Problem(
                f"Found out of order timestamp in :{path}",
                f"Index timestamp: {timestamp}, Previously indexed timestamp: {previous}",
            )
        previous = timestamp


def dump_aborted(path: str) -> Dump:
    """The aborted transactions of a `.txnindex`."""
    data = _read(path)
    try:
        entries = read_aborted_txns(data)
    except InvalidIndexError as error:
        yield Problem(f"Unreadable transaction index {path}", str(error))
        return
    for entry in entries:
        text = (
            f"version: 0 producerId: {entry.producer_id} firstOffset: {entry.first_offset} "
            f"lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}"
        )
        yield Item(text, {"kind": "aborted transaction", **entry._asdict()})
    if len(data) % ABORTED_TXN_BYTES:
        yield Problem(f"Torn end of {path}")


def dump_producers(path: str) -> Dump:
    """The producers of a `.snapshot`."""
    try:
        states = read_snapshot(_read(path))
    except CorruptSnapshotError as error:
        yield Problem(f"Unreadable producer snapshot {path}", str(error))
        return
    for state in states:
        first = None if state.current_txn_first_offset == NO_OFFSET else state.current_txn_first_offset
        text = (
            f"producerId: {state.producer_id} producerEpoch: {state.producer_epoch} "
            f"coordinatorEpoch: {state.coordinator_epoch} currentTxnFirstOffset: {_optional(first)} "
            f"lastTimestamp: {state.last_timestamp}"
        )
        value: dict[str, Any] = {
            "kind": "producer",
            "producer_id": state.producer_id,
            "producer_epoch": state.producer_epoch,
            "coordinator_epoch": state.coordinator_epoch,
            "current_txn_first_offset": first,
            "last_timestamp": state.last_timestamp,
        }
        if state.window:
            batch = state.window[-1]
            text += (
                f" firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence} "
                f"lastOffset: {batch.last_offset} offsetDelta: {batch.offset_delta} "
                f"timestamp: {batch.timestamp}"
            )
            value["last_batch"] = {"first_sequence": batch.first_sequence, **batch._asdict()}
        yield Item(text, value)


def _log_of(path: str) -> str:
    return os.path.splitext(path)[0] + ".log"


def _read_if_there(path: str) -> bytes:
    try:
        return _read(path)
    except FileNotFoundError:
        return b""


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
