"""From stored batches to RecordBatches within the limits of a reader. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from pykafka_broker.arrow.core.decoding import Section, decode
from pykafka_broker.arrow.core.limits import Limits
from pykafka_broker.arrow.core.record_batches import Source, record_batch, row_bytes
from pykafka_broker.arrow.core.sections import sections_of
from pykafka_broker.arrow.core.stored_batches import StoredBatch
from pykafka_broker.arrow.core.values import DecodedColumn, decode_columns, decoded_schema
from pykafka_broker.system.named_tuple import NamedTuple


class Assembly(NamedTuple):
    """Makes RecordBatches of the batches of a topic."""

    topic: str
    #: The schema of the columns as they are stored.
    schema: pa.Schema
    limits: Limits
    #: The columns that are decoded.
    decoded: Sequence[DecodedColumn] = ()

    @property
    def result_schema(self) -> pa.Schema:
        """The schema of the RecordBatches."""
        return decoded_schema(self.schema, self.decoded)

    def record_batches(self, batches: Iterable[StoredBatch]) -> Iterator[pa.RecordBatch]:
        """The records of these batches; each RecordBatch joins as many batches as `limits` allow.

        Raises:
            KafkaError: a batch is damaged, or a record cannot be decoded.
        """
        for sections in sections_of(batches, self.topic, self.limits):
            yield from self._made(sections)

    def _made(self, sections: Sequence[Section]) -> Iterator[pa.RecordBatch]:
        decoded = decode(sections, self.topic, headers="headers" in self.schema.names)
        batch = record_batch(self.schema, Source(self.topic, sections, decoded))
        if self.decoded:

            def place(row: int) -> tuple[int, int]:
                at = row if decoded.wanted is None else decoded.wanted[row]
                return sections[decoded.sections[at]].partition, int(decoded.offsets[at])

            batch = decode_columns(batch, self.topic, self.decoded, self.result_schema, place)
        rows = row_bytes(decoded)
        begin = 0
        while begin < batch.num_rows:
            before = int(rows[begin - 1]) if begin else 0
            end = int(np.searchsorted(rows, before + self.limits.batch_bytes, side="right"))
            end = min(max(end, begin + 1), begin + self.limits.batch_rows, batch.num_rows)
            yield batch.slice(begin, end - begin)
            begin = end
