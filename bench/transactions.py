"""Transactions of version 2 from the wire: one record and its commit, again and again, by many producers."""

from __future__ import annotations

import time

from bench import wire
from pykafka_broker.protocol.messages.end_txn import EndTxnRequest
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.records.batch import BatchFields, build_batch

PRODUCE, END, INIT = 12, 5, 5
CONCURRENT_TRANSACTIONS = 51
TRANSACTION = 1
VALUE = b"x" * 100


class Producer:
    """Its epoch goes up with every transaction, so that every one begins with sequence 0."""

    def __init__(self, address: str, transactional_id: str, topic: str, partition: int) -> None:
        self.transactional_id, self.topic, self.partition = transactional_id, topic, partition
        self.ending = False
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        with wire.connect(address) as connection:
            # The first who asks makes the coordinator's topic.
            find = FindCoordinatorRequest(key=transactional_id, key_type=TRANSACTION)
            wire.call_until_ready(connection, find, 2)
            begun = wire.call_until_ready(connection, request, INIT)
        assert begun.error_code == 0, begun
        self.producer_id, self.epoch = begun.producer_id, begun.producer_epoch

    def begin(self) -> bytes:
        self.ending = False
        batch = build_batch(
            [(int(time.time() * 1000), None, VALUE, [])],
            BatchFields(
                producer_id=self.producer_id, producer_epoch=self.epoch, base_sequence=0, transactional=True
            ),
        )
        data = PartitionProduceData(index=self.partition, records=batch)
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=self.topic, partition_data=[data])],
        )
        return wire.frame(request, PRODUCE)

    def answered(self, received: memoryview) -> bytes | float | None:
        if self.ending:
            ended = wire.answer(EndTxnRequest, END, received)
            if ended.error_code == CONCURRENT_TRANSACTIONS:
                return wire.RETRY_S
            assert ended.error_code == 0, ended
            self.producer_id, self.epoch = ended.producer_id, ended.producer_epoch
            return None
        (stored,) = wire.answer(ProduceRequest, PRODUCE, received).responses[0].partition_responses
        # The markers of the last transaction are still being written.
        if stored.error_code == CONCURRENT_TRANSACTIONS:
            return wire.RETRY_S
        assert stored.error_code == 0, stored
        self.ending = True
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=True,
        )
        return wire.frame(request, END)


def run(address: str, topic: str, count: int, producers: int = 16, partitions: int = 4) -> dict[str, float]:
    """Transactions a second over all producers, p50 and p99 from the record sent to the commit answered."""
    speakers = [
        Producer(address, f"bench-{topic}-{number}", topic, number % partitions)
        for number in range(producers)
    ]
    return wire.many_connections(address, speakers, count)
