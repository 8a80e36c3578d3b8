"""The state of a producer: its id and epoch, its sequence numbers, and its open transaction. Pure.

A broker recognises a producer by its id and epoch, and each of its batches by the sequence number of its
first record, so that a batch that is sent again is stored once. A transactional id outlives restarts: the
last producer that initialises with it fences the earlier ones.

With transaction.version 2 (Kafka 4.0) every transaction has an epoch of its own, and partitions and groups
join a transaction with their first batch or offset. In older versions the producer adds them by requests.
"""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, increment_sequence
from pykafka_broker.protocol.topic_partition import PartitionKey

#: The feature whose level selects the protocol of transactions.
TRANSACTION_VERSION = "transaction.version"
#: From this level on, each transaction has its own epoch.
EPOCH_PER_TRANSACTION = 2


class TransactionLost(KafkaError):
    """The open transaction cannot be committed. The producer recovers, then repeats the transaction unless it
    finds that it was committed.
    """


class ProducerFenced(KafkaError):
    """The producer must stop: another one uses its transactional id, or its transaction exceeded the time-out
    and was aborted.
    """

    def __init__(self, transactional_id: str) -> None:
        super().__init__(
            ErrorCode.PRODUCER_FENCED,
            f"Another producer has begun with the transactional id '{transactional_id}', or a transaction "
            "took longer than its time-out.",
        )


class ProducerState:
    """One producer; without a `transactional_id` it is idempotent only."""

    __slots__ = (
        "coordinator",
        "epoch",
        "groups",
        "in_doubt",
        "leaders",
        "partitions",
        "producer_id",
        "sequences",
        "topic_ids",
        "transaction_timeout_ms",
        "transaction_version",
        "transactional_id",
    )

    def __init__(self, transactional_id: str | None, transaction_timeout_ms: int) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        #: The level of `TRANSACTION_VERSION` in the cluster.
        self.transaction_version = 0
        self.producer_id = NO_PRODUCER_ID
        self.epoch = NO_PRODUCER_EPOCH
        #: The sequence number of the next record; 0 if missing: none was sent in this epoch.
        self.sequences: dict[PartitionKey, int] = {}
        #: Partition -> the batch that may be stored with the next sequence number, as no broker has said;
        #: None: one of a transaction that has ended.
        self.in_doubt: dict[PartitionKey, bytes | None] = {}
        #: The partitions, and the groups, that may be part of the open transaction.
        self.partitions: set[PartitionKey] = set()
        self.groups: set[str] = set()
        #: The node id of the transaction coordinator; None if it must be looked up.
        self.coordinator: int | None = None
        #: Topic -> partition -> leader; a missing topic must be looked up.
        self.leaders: dict[str, dict[int, int]] = {}
        #: The ids of the topics that were written to; a topic that is created anew has another id.
        self.topic_ids: dict[str, bytes] = {}

    @property
    def has_epoch_per_transaction(self) -> bool:
        """Whether partitions and groups join a transaction implicitly, and its end begins a new epoch."""
        return self.transaction_version >= EPOCH_PER_TRANSACTION

    @property
    def is_open(self) -> bool:
        """Whether a transaction may be open."""
        return bool(self.partitions or self.groups)

    def become(self, producer_id: int, epoch: int) -> None:
        """Use this id and epoch, with no records sent yet."""
        self.producer_id, self.epoch = producer_id, epoch
        self.sequences.clear()
        self.in_doubt.clear()

    def sent(self, partition: PartitionKey, records: int) -> None:
        """Count records that were stored."""
        self.in_doubt.pop(partition, None)
        self.sequences[partition] = increment_sequence(self.sequences.get(partition, 0), records)

    def ended(self) -> None:
        """Note that no transaction is open."""
        self.partitions.clear()
        self.groups.clear()
        self.in_doubt = dict.fromkeys(self.in_doubt)
