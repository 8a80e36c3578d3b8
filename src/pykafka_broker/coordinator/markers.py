"""Transaction markers: a transaction coordinator has one written into each partition of a transaction."""

from __future__ import annotations

from pykafka_broker.protocol.records.control import EndTransactionMarker, build_marker_batch
from pykafka_broker.system.named_tuple import NamedTuple


class Marker(NamedTuple):
    """The outcome of one producer's transaction."""

    producer_id: int
    producer_epoch: int
    commit: bool
    #: The leader epoch of the coordinator's partition: it fences coordinators that have been replaced.
    coordinator_epoch: int
    #: The transaction version: from 2 on, the partition's leader checks the epoch more strictly (KIP-1228).
    transaction_version: int = 0

    def batch(self, now_ms: int) -> bytes:
        """The batch that is written into a partition."""
        return build_marker_batch(
            EndTransactionMarker(self.commit, self.coordinator_epoch),
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            timestamp_ms=now_ms,
        )
