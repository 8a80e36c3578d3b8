"""What transactions need beside their coordinator: markers in partitions led here, and producer ids."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pykafka_broker.coordinator.markers import Marker
    from pykafka_broker.coordinator.txn.state import TopicPartition
    from pykafka_broker.protocol.errors import ErrorCode


class TransactionMarkers(Protocol):
    """Writes the outcome of transactions."""

    def write_here(
        self, marker: Marker, partitions: Iterable[TopicPartition]
    ) -> Awaitable[Mapping[TopicPartition, ErrorCode]]:
        """Write a transaction marker into partitions led here; the outcome of each, once it is committed."""
        ...


class ProducerIds(Protocol):
    """Gives out each producer id once."""

    def next_id(self) -> Awaitable[int]:
        """The next producer id of this broker's block.

        Raises:
            KafkaError: the controller could not allocate another block.
        """
        ...
