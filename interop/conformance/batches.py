"""Record batches for conversations: good ones, and ones that no producer sends.

`changed` overwrites fields of the header and, unless told otherwise, makes the checksum right again, so that
it is the field that is refused and not the checksum.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

from pykafka_broker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    CRC_OFFSET,
    HEADER,
    HEADER_BYTES,
    BatchFields,
    build_batch,
    read_header,
)
from pykafka_broker.protocol.records.crc import crc32c

#: When the records of conversations were made: long ago, and the same in every run.
MADE_MS = 1_700_000_000_000


def batch(
    *values: bytes | None,
    key: bytes | None = None,
    timestamp_ms: int = MADE_MS,
    step_ms: int = 1,
    **more: Any,
) -> bytes:
    """One batch of these values, one millisecond after the other; `more` goes to `build_batch`."""
    records = [(timestamp_ms + index * step_ms, key, value, ()) for index, value in enumerate(values)]
    return build_batch(records, BatchFields(**more))


def changed(data: bytes, *, right_checksum: bool = True, body: bytes | None = None, **fields: int) -> bytes:
    """A batch with other fields in its header, or another body (whose length is set too)."""
    header = read_header(data)
    if body is None:
        body = data[HEADER_BYTES:]
    else:
        header = header._replace(batch_length=HEADER_BYTES - 12 + len(body))
    spoilt = HEADER.pack(*header._replace(**fields)) + body
    return sealed(spoilt) if right_checksum and "crc" not in fields else spoilt


def sealed(data: bytes) -> bytes:
    """The batch with the right checksum."""
    crc = crc32c(data[ATTRIBUTES_OFFSET:])
    return data[:CRC_OFFSET] + struct.pack(">I", crc) + data[ATTRIBUTES_OFFSET:]


def old_message(magic: int, value: bytes, timestamp_ms: int = MADE_MS) -> bytes:
    """A message set of one message in format v0 or v1, as clients before Kafka 0.11 send it."""
    after_crc = struct.pack(">bb", magic, 0)
    if magic:
        after_crc += struct.pack(">q", timestamp_ms)
    after_crc += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    message = struct.pack(">I", zlib.crc32(after_crc)) + after_crc
    return struct.pack(">qi", 0, len(message)) + message
