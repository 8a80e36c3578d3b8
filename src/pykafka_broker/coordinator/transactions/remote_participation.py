"""Asks transaction coordinators on other brokers about first writes, with AddPartitionsToTxn v4 and later.

Each broker gets one request at a time, with the questions of all transactions that came meanwhile; a
transactional id is in a request once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from pykafka_broker.coordinator.broker_queues import BrokerQueues, Brokers
from pykafka_broker.coordinator.transactions.add_or_verify import FirstWrite, Participation
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError, error_of
from pykafka_broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.repeated_lines import RepeatedLines

logger = logging.getLogger("kafka.server.AddPartitionsToTxnManager")

#: The first version that asks about several transactions, and only verifies.
BATCHED_VERSION = 4

Answer = Mapping[TopicPartition, ErrorCode]


class _Question(NamedTuple):
    write: FirstWrite
    verify_only: bool

    def all_with(self, error: ErrorCode) -> Answer:
        """The same error for each partition."""
        return dict.fromkeys(self.write.partitions, error)


class RemoteParticipation:
    """Event loop only."""

    def __init__(self, brokers: Brokers, now_ms: Callable[[], int]) -> None:
        self._brokers = brokers
        self._lines = RepeatedLines(logger, now_ms)
        self._queues: BrokerQueues[_Question, Answer] = BrokerQueues(
            self._exchange, lambda question: question.write.transactional_id
        )

    async def ask(self, coordinator_id: int, write: FirstWrite, how: Participation) -> Answer:
        """The coordinator's error for each partition, NONE for those that may be written to.

        COORDINATOR_NOT_AVAILABLE if the coordinator's broker is not alive, NETWORK_EXCEPTION if it does not
        answer.
        """
        question = _Question(write, how is not Participation.ADD)
        if not self._brokers.is_reachable(coordinator_id):
            return question.all_with(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        try:
            return await self._queues.ask(coordinator_id, question)
        except KafkaError as error:
            return question.all_with(error.code)

    async def _exchange(self, coordinator_id: int, questions: Sequence[_Question]) -> Sequence[Answer]:
        try:
            response: AddPartitionsToTxnResponse = await self._brokers.ask(
                coordinator_id, _request(questions), lowest_version=BATCHED_VERSION
            )
        except KafkaError as error:
            self._warn("cannot be asked", coordinator_id, error)
            # As in Kafka: if a coordinator cannot verify, records are accepted without verification.
            is_older = error.code is ErrorCode.UNSUPPORTED_VERSION
            told = ErrorCode.NONE if is_older else error.code
            return [question.all_with(told) for question in questions]
        except (OSError, ProtocolError) as error:
            self._warn("does not answer", coordinator_id, error)
            return [question.all_with(ErrorCode.NETWORK_EXCEPTION) for question in questions]
        if response.error_code:
            refusal = error_of(response.error_code)
            self._warn("refuses to answer", coordinator_id, refusal.name)
            # Clients get no error about the authorization of brokers.
            is_ours = refusal is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            told = ErrorCode.INVALID_TXN_STATE if is_ours else refusal
            return [question.all_with(told) for question in questions]
        results = {result.transactional_id: result for result in response.results_by_transaction}
        return [_answer(question, results.get(question.write.transactional_id)) for question in questions]

    def _warn(self, what: str, coordinator_id: int, why: object) -> None:
        text = f"Broker {coordinator_id} {what} whether records belong to a transaction: {why}"
        self._lines.log(logging.WARNING, what, str(coordinator_id), text)


def _answer(question: _Question, result: AddPartitionsToTxnResult | None) -> Answer:
    """The answer about each partition; one that the coordinator leaves out counts as failed."""
    codes = (
        {}
        if result is None
        else {
            TopicPartition(topic.name, partition.partition_index): error_of(partition.partition_error_code)
            for topic in result.topic_results
            for partition in topic.results_by_partition
        }
    )
    return {place: codes.get(place, ErrorCode.UNKNOWN_SERVER_ERROR) for place in question.write.partitions}


def _request(questions: Iterable[_Question]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=write.transactional_id,
                producer_id=write.producer_id,
                producer_epoch=write.producer_epoch,
                verify_only=verify_only,
                topics=_topics(write.partitions),
            )
            for write, verify_only in questions
        ]
    )


def _topics(partitions: Iterable[TopicPartition]) -> list[AddPartitionsToTxnTopic]:
    topics: dict[str, AddPartitionsToTxnTopic] = {}
    for topic, partition in sorted(partitions):
        if topic not in topics:
            topics[topic] = AddPartitionsToTxnTopic(name=topic, partitions=[])
        topics[topic].partitions.append(partition)
    return list(topics.values())
