"""The ports of handlers for transactions: the transaction coordinator, its verification of a first write,
markers in partitions led here, and producer ids.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from pykafka_broker.coordinator.markers import Marker
    from pykafka_broker.coordinator.transactions.add_or_verify import FirstWrite, Participation
    from pykafka_broker.coordinator.transactions.core.events import Event, ProducerIdResult
    from pykafka_broker.machine.shard import Prompt
    from pykafka_broker.protocol.errors import ErrorCode, KafkaError
    from pykafka_broker.protocol.topic_partition import TopicPartition

Answer = TypeVar("Answer")


class TransactionCoordinator(Protocol):
    """The transactional ids coordinated here."""

    def now_ms(self) -> int:
        """The time for an event."""
        ...

    def partition_for(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` that a transactional id belongs to.

        Raises:
            KafkaError: NOT_COORDINATOR while there is no topic.
        """
        ...

    def answer(
        self,
        transactional_id: str,
        event_with: Callable[[int], Event],
        *,
        refused: Callable[[KafkaError], Answer],
    ) -> Prompt[Answer] | Awaitable[Answer]:
        """Let the id answer the event that `event_with(token)` builds, or `refused` if it is not here."""
        ...

    def answer_with_producer_id(
        self, transactional_id: str, event_with: Callable[[int, int], Event]
    ) -> Awaitable[ProducerIdResult]:
        """The same for the event that `event_with(fresh_producer_id, token)` builds.

        A producer id is fetched only if the decision needs one; then the event is built again.
        """
        ...

    def list_all(self, event_with: Callable[[int], Event]) -> Awaitable[tuple[ErrorCode, list[Any]]]:
        """List the transactional ids of all partitions led here."""
        ...


class TransactionParticipation(Protocol):
    """A partition leader's request to the coordinator of a transaction (KIP-890)."""

    def ask(
        self, write: FirstWrite, how: Participation, *, retries: bool
    ) -> Awaitable[Mapping[TopicPartition, ErrorCode]]:
        """Verify that partitions are part of the transaction, or add them; return the errors of those that
        must not be written to.

        With `retries`, it waits briefly for an earlier transaction that is being completed.
        """
        ...

    def ask_here(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[TopicPartition],
        *,
        adds: bool,
    ) -> Awaitable[Mapping[TopicPartition, ErrorCode]]:
        """Ask this node's coordinator for a leader on another broker; return its error for each partition."""
        ...


class TransactionMarkers(Protocol):
    """Writes the outcome of transactions."""

    def write_all_here(
        self, markers: Iterable[tuple[Marker, Iterable[TopicPartition]]]
    ) -> Awaitable[Sequence[Mapping[TopicPartition, ErrorCode]]]:
        """Write transaction markers into partitions led here; return the outcomes of each once committed."""
        ...


class ProducerIds(Protocol):
    """Gives out each producer id once."""

    def next_id(self) -> Awaitable[int]:
        """The next producer id of this broker's block.

        Raises:
            KafkaError: the controller could not allocate another block.
        """
        ...
