"""The traces of transactions in `__consumer_offsets`: records in a producer's batch, and markers."""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.offset_record import OffsetRecord
from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.system.named_tuple import NamedTuple


class TransactionalRecord(NamedTuple):
    """A record that counts when its producer's transaction commits."""

    producer_id: int
    producer_epoch: int
    #: Proves that the coordinator has confirmed that the partition is in the transaction.
    guard: int
    record: OffsetRecord


class TransactionEnd(NamedTuple):
    """The marker that ends a producer's transaction."""

    marker: Marker
