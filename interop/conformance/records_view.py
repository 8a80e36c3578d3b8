"""The content of a `records` field as plain values: each batch's header and its records.

Timestamps and producer ids that a broker wrote are volatile, and with them the checksum, of which only is
compared whether it is right; where none of them is, the checksum itself is compared. Compressed batches are
compared by what is in them, and by their codec; by their bytes too where those are known to be a producer's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    HEADER_BYTES,
    BatchHeader,
    CorruptRecord,
    iter_batches,
    read_records,
)
from pykafka_broker.protocol.records.crc import crc32c

Stable = Callable[[int], Any]


def view_of_records(data: Any, time: Stable, producer_id: Stable, *, bodies: bool = False) -> list[Any]:
    """The batches of `data`, and how many bytes of a torn one stand behind them."""
    if isinstance(data, (list, tuple)):
        data = b"".join(data)
    data = bytes(data)
    view: list[Any] = []
    end = 0
    try:
        for position, header in iter_batches(data):
            end = position + header.size_in_bytes
            view.append(view_of_batch(data[position:end], header, time, producer_id, bodies=bodies))
    except CorruptRecord:
        view.append(f"not a batch: 0x{data[end:].hex()}")
        return view
    if end < len(data):
        view.append(f"{len(data) - end} bytes of a torn batch")
    return view


def view_of_batch(
    batch: bytes, header: BatchHeader, time: Stable, producer_id: Stable, *, bodies: bool
) -> dict[str, Any]:
    shown: dict[str, Any] = header._asdict()
    del shown["magic"]
    for name in ("base_timestamp", "max_timestamp"):
        shown[name] = time(shown[name])
    shown["producer_id"] = producer_id(shown["producer_id"])
    written_by_the_broker = (shown["base_timestamp"], shown["max_timestamp"], shown["producer_id"]) != (
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
    )
    compressed_anew = header.attributes & 7 and not bodies
    if written_by_the_broker or compressed_anew:
        shown["crc"] = "right" if crc32c(batch[ATTRIBUTES_OFFSET:]) == header.crc else "wrong"
    if compressed_anew:
        del shown["batch_length"]
    elif header.attributes & 7:
        shown["compressed"] = f"0x{batch[HEADER_BYTES:].hex()}"
    try:
        shown["records"] = [
            {
                "offset": record.offset,
                "timestamp": time(record.timestamp),
                "key": text(record.key),
                "value": text(record.value),
                "headers": [f"{name}={text(value)}" for name, value in record.headers],
            }
            for record in read_records(batch)
        ]
    except KafkaError as error:
        shown["records"] = f"unreadable: {error}"
    return shown


def text(data: bytes | None) -> str | None:
    return None if data is None else repr(bytes(data))
