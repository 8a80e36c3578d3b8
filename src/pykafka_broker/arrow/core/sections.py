"""Stored batches, unpacked and put together as far as limits allow. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pykafka_broker.arrow.core.decoding import Section
from pykafka_broker.arrow.core.limits import Limits
from pykafka_broker.arrow.core.stored_batches import StoredBatch, unpack


def sections_of(batches: Iterable[StoredBatch], topic: str, limits: Limits) -> Iterator[list[Section]]:
    """The batches of this topic, as many together as `limits` allow for a RecordBatch; a larger one alone.
    Markers, and batches without records, are left out.

    Raises:
        KafkaError: a batch is damaged.
    """
    most_rows, most_bytes = limits.batch_rows, limits.batch_bytes
    sections: list[Section] = []
    size = rows = 0
    for batch in batches:
        if batch.is_marker:
            continue
        section = unpack(batch, topic, limits.decompressed_bytes)
        if not section.data and not section.header.records_count:
            continue
        added, count = len(section.data), section.header.records_count
        if sections and (size + added > most_bytes or rows + count > most_rows):
            yield sections
            sections, size, rows = [], 0, 0
        sections.append(section)
        size += added
        rows += count
    if sections:
        yield sections
