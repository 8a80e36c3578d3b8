"""The first records of a transaction in a partition, and the question that they bring to the transaction
coordinator (KIP-890; AddPartitionsToTxnManager in Apache Kafka).
"""

from __future__ import annotations

import enum

from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.system.named_tuple import NamedTuple


class Participation(enum.Enum):
    """The question of a first write to the coordinator, which depends on the client's age."""

    #: Is the partition in the transaction? The client does not know TRANSACTION_ABORTABLE.
    VERIFY_FOR_OLD_CLIENT = "verify for an old client"
    VERIFY = "verify"
    #: Take the partition into the transaction (transaction.version 2).
    ADD = "add"


class FirstWrite(NamedTuple):
    """A producer is about to write the first records of its transaction to these partitions."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
