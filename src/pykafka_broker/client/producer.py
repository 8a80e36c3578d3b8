"""A producer for programs that wait: idempotent, or transactional with offsets of groups in its transactions.

    with Client("127.0.0.1:9092") as client:
        producer = Producer(client, "orders-copy")
        producer.initialise()                                   # fences the one before it
        producer.write(("orders", 0), build_batch(records))
        producer.commit_offsets("copies", {("source", 0): CommittedOffset(17)})
        producer.commit()

It sends one request at a time, and writes batches, not records: the caller gathers records, chooses their
partitions and sets the pace. `producing.py` explains each error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafka_broker.client.blocking import Client, now_ms
from pykafka_broker.client.core.offset import CommittedOffset
from pykafka_broker.client.core.producer_state import ProducerState
from pykafka_broker.client.core.producing import (
    commit_offsets,
    end_transaction,
    initialise,
    produce,
    recover,
)
from pykafka_broker.client.core.retries import Attempt, first_attempt
from pykafka_broker.client.core.stable_offsets import fetch_stable_offsets
from pykafka_broker.protocol.topic_partition import PartitionKey

TRANSACTION_TIMEOUT_MS = 60_000
#: The default time-out of each call.
DELIVERY_TIMEOUT_S = 120.0


class Producer:
    """One producer over the connections of a client."""

    def __init__(
        self,
        client: Client,
        transactional_id: str | None = None,
        *,
        transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
        delivery_timeout_s: float = DELIVERY_TIMEOUT_S,
    ) -> None:
        """Without a transactional id, the producer is idempotent only.

        Args:
            client: The client whose connections it uses, one request at a time.
            transactional_id: The name of this producer, over restarts.
            transaction_timeout_ms: The coordinator aborts a transaction after this time.
            delivery_timeout_s: The time-out of each call.
        """
        self.state = ProducerState(transactional_id, transaction_timeout_ms)
        self._client = client
        self._delivery_timeout_ms = round(delivery_timeout_s * 1000)

    def initialise(self) -> None:
        """Get an id and an epoch; a transactional producer fences earlier ones with its id."""
        self._client.run(initialise(self._client.brokers, self.state, self._attempt()))

    def write(self, partition: PartitionKey, batch: bytes) -> int:
        """Write a batch of `build_batch` to a partition; return its base offset, or -1 (see `produce`)."""
        return self._client.run(produce(self._client.brokers, self.state, partition, batch, self._attempt()))

    def commit_offsets(self, group: str, offsets: Mapping[PartitionKey, CommittedOffset]) -> None:
        """Add offsets of a group to the open transaction, which commits them at its end."""
        self._client.run(commit_offsets(self._client.brokers, self.state, group, offsets, self._attempt()))

    def committed_offsets(
        self, group: str, partitions: Iterable[PartitionKey]
    ) -> dict[PartitionKey, CommittedOffset]:
        """The committed offsets of a group, once no transaction is open on it."""
        return self._client.run(
            fetch_stable_offsets(self._client.brokers, group, partitions, self._attempt())
        )

    def commit(self) -> None:
        """Commit the open transaction."""
        self._end(committed=True)

    def abort(self) -> None:
        """Abort the open transaction."""
        self._end(committed=False)

    def recover(self) -> None:
        """After `TransactionLost`: abort a transaction that may be open, and get the next epoch."""
        self._client.run(recover(self._client.brokers, self.state, self._attempt()))

    def _end(self, *, committed: bool) -> None:
        self._client.run(
            end_transaction(self._client.brokers, self.state, self._attempt(), committed=committed)
        )

    def _attempt(self) -> Attempt:
        return first_attempt(now_ms(), self._delivery_timeout_ms)
