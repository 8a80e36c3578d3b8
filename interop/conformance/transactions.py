"""A transactional producer for conversations: each of its steps is set-up, unless it is asked for an answer.

`transaction.version` 2 is what both brokers run: clients of Produce v12 and EndTxn v5 need not add
partitions, and every end of a transaction raises their epoch. Older versions of these requests are those of
older clients, whose epoch stays.
"""

from __future__ import annotations

from typing import Any

from interop.conformance.batches import batch
from interop.conformance.talk import Talk, Topic
from interop.conformance.versions import latest_version
from pykafka_broker.protocol.fields import api_key_of
from pykafka_broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from pykafka_broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from pykafka_broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from pykafka_broker.protocol.messages.end_txn import EndTxnRequest
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TRANSACTION = 1
#: Brokers that forget within seconds who writes no more.
EXPIRING = {
    "transactional.id.expiration.ms": "4000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
    "producer.id.expiration.ms": "1500",
    "producer.id.expiration.check.interval.ms": "100",
}
#: With it a producer id is used up: a coordinator gives out another one instead of a higher epoch.
LAST_EPOCH = 32766
#: The newest versions of clients that add partitions themselves.
LAST_PRODUCE_VERSION_OF_OLD_CLIENTS = 11
LAST_END_VERSION_OF_OLD_CLIENTS = 4
LAST_ADD_VERSION_OF_CLIENTS = 3


def init(transactional_id: str, timeout_ms: int = 60_000, **more: Any) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms, **more)


def with_coordinator(talk: Talk, transactional_id: str) -> None:
    """Wait until the coordinator of a transactional id is there."""
    talk.do(FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[transactional_id]))
    talk.do(init(talk.name("warm-up")))


def adding(
    transactional_id: str,
    producer_id: int,
    epoch: int,
    *topics: tuple[str, list[int]],
    verify_only: bool = False,
) -> AddPartitionsToTxnRequest:
    """The request as it is in all versions."""
    named = [AddPartitionsToTxnTopic(name=name, partitions=partitions) for name, partitions in topics]
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        verify_only=verify_only,
        topics=named,
    )
    return AddPartitionsToTxnRequest(
        transactions=[transaction],
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=named,
    )


class Producer:
    """A producer with a transactional id, which it has just initialised."""

    def __init__(self, talk: Talk, label: str = "transaction", timeout_ms: int = 60_000) -> None:
        self.talk = talk
        self.id = talk.name(label)
        self.sequence: dict[tuple[str, int], int] = {}
        talk.do(FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[self.id]))
        answer = talk.do(init(self.id, timeout_ms))
        self.producer_id: int = answer.producer_id
        self.epoch: int = answer.producer_epoch

    def batch(self, topic: Topic, *values: bytes, partition: int = 0, **more: Any) -> bytes:
        """The next batch of this producer for a partition."""
        sequence = self.sequence.get((topic.name, partition), 0)
        self.sequence[topic.name, partition] = sequence + len(values)
        fields: dict[str, Any] = {
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "base_sequence": sequence,
            "transactional": True,
        }
        return batch(*values, **{**fields, **more})

    def producing(self, topic: Topic, data: bytes, partition: int = 0) -> ProduceRequest:
        partitions = [PartitionProduceData(index=partition, records=data)]
        return ProduceRequest(
            transactional_id=self.id,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=topic.name, topic_id=topic.id, partition_data=partitions)],
        )

    def adds(self, topic: Topic, *partitions: int) -> None:
        request = adding(self.id, self.producer_id, self.epoch, (topic.name, list(partitions or (0,))))
        self.talk.do(request, version=LAST_ADD_VERSION_OF_CLIENTS)

    def adds_offsets(self, group: str) -> None:
        self.talk.do(
            AddOffsetsToTxnRequest(
                transactional_id=self.id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=group,
            )
        )

    def writes(self, topic: Topic, *values: bytes, partition: int = 0) -> None:
        """Write as new clients do, which adds the partition to the transaction."""
        self.talk.do(self.producing(topic, self.batch(topic, *values, partition=partition), partition))

    def ending(self, commit: bool = True, **more: Any) -> EndTxnRequest:
        fields = {"producer_id": self.producer_id, "producer_epoch": self.epoch, **more}
        return EndTxnRequest(transactional_id=self.id, committed=commit, **fields)

    def ends(self, commit: bool = True, *, version: int | None = None) -> None:
        """End the transaction, and see that its markers are written."""
        answer = self.talk.do(self.ending(commit), version=version)
        self.settles()
        if version is None or version > LAST_END_VERSION_OF_OLD_CLIENTS:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequence.clear()

    def settles(self) -> None:
        """Wait until the coordinator has nothing left to do for this producer; its state is compared."""
        self.talk.ask(
            DescribeTransactionsRequest(transactional_ids=[self.id]),
            until=lambda answer: (
                answer.transaction_states[0].transaction_state
                in ("Empty", "CompleteCommit", "CompleteAbort", "Dead")
            ),
        )


def near_its_last_epoch(talk: Talk, label: str = "transaction", *, left: int) -> Producer:
    """A producer whose id has so many epochs left: it was initialised again and again."""
    producer = Producer(talk, label)
    request, version = init(producer.id), latest_version(api_key_of(InitProducerIdRequest))
    epochs = LAST_EPOCH - left
    while producer.epoch < epochs:
        many = min(epochs - producer.epoch, 500)
        for _ in range(many - 1):
            talk.wire.send(request, version)
        for _ in range(many - 1):
            talk.wire.receive()
        producer.epoch = talk.do(request).producer_epoch
    return producer
