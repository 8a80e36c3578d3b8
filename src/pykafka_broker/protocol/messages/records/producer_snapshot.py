"""The `.snapshot` file of a partition's folder: the log's state of each producer.

The message is preceded by its version (int16). `crc` is the CRC-32C of everything after it. The log writes
and reads these bytes with layouts of its own (`log/FORMAT.md`); tests compare them with the declaration.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, i64, message, u32


@message()
class ProducerEntry:
    producer_id: int = i64()
    epoch: int = i16()
    #: The last sequence number of the producer's last batch; -1 when it wrote none.
    last_sequence: int = i32()
    last_offset: int = i64()
    #: The last batch's last sequence number less its first one.
    offset_delta: int = i32()
    timestamp: int = i64()
    coordinator_epoch: int = i32()
    #: -1 when no transaction is open.
    current_txn_first_offset: int = i64()


@message(versions="1")
class ProducerSnapshot:
    crc: int = u32()
    producer_entries: list[ProducerEntry] = array(ProducerEntry)
