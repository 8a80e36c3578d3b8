"""The writes of a producer: InitProducerId, Produce, TxnOffsetCommit and EndTxn, each with retries.

Conversations over one `ProducerState`, one at a time. Each retries until its attempts end, while brokers
restart, leaders and coordinators move, and markers are written. A request that is sent again takes effect
once: batches by their sequence numbers, all others because they are idempotent.

Three errors tell what the producer can do next:

    TransactionLost    the open transaction is void, or it is not known whether it was committed:
                       `recover`, then check, then write it again
    ProducerFenced     another producer has taken over
    KafkaError         the broker refuses the batch or the offsets; abort, and change them

Works with brokers of Kafka 2.5 and later. Left out: topics without a name, and several requests in flight.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykafka_broker.client.core.connection import API_VERSIONS_VERSION, SOFTWARE_NAME, check
from pykafka_broker.client.core.conversation import CANNOT, Ask, Conversation
from pykafka_broker.client.core.coordinators import TRANSACTION, find_coordinator
from pykafka_broker.client.core.metadata import NO_LEADER, Brokers, find_topic, leaders_of
from pykafka_broker.client.core.offset import CommittedOffset
from pykafka_broker.client.core.patience import TEMPORARY, patiently
from pykafka_broker.client.core.producer_state import (
    TRANSACTION_VERSION,
    ProducerFenced,
    ProducerState,
    TransactionLost,
)
from pykafka_broker.client.core.retries import Attempt
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, error_of
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from pykafka_broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykafka_broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from pykafka_broker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from pykafka_broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from pykafka_broker.protocol.records.batch import read_header, with_producer
from pykafka_broker.protocol.topic_partition import PartitionKey

#: The newest versions without two-phase commit, and those of the older protocol of transactions.
_INIT_PRODUCER_ID = 5
_ADD_PARTITIONS = 3
_PRODUCE_ANNOUNCED = 11
_PRODUCE_WITH_NAMES = 12
_TXN_OFFSET_COMMIT_ANNOUNCED = 4
_END_TXN_WITH_ONE_EPOCH = 4

#: The longest time that a broker may wait for its replicas.
_REPLICATION_TIMEOUT_MS = 30_000
_ALL_REPLICAS = -1

_FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
#: Errors that end a transaction, but not the producer.
_LOST = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)
#: Errors after which the batch may be stored all the same.
_MAY_BE_STORED = TEMPORARY | {ErrorCode.UNKNOWN_SERVER_ERROR}
#: Errors of a coordinator that has moved or is not available.
_ELSEWHERE = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


# -- who the producer is
# ----------------------


def initialise(brokers: Brokers, state: ProducerState, attempt: Attempt) -> Conversation[None]:
    """Get an id and an epoch. The first call of a transactional producer fences earlier producers, and ends
    the transaction that they left open; later calls get the next epoch.

    Raises:
        ProducerFenced: a newer producer has fenced this one.
        KafkaError, OSError: the error of the last attempt, or one that is not temporary.
    """
    request = InitProducerIdRequest(
        transactional_id=state.transactional_id,
        transaction_timeout_ms=state.transaction_timeout_ms,
        producer_id=state.producer_id,
        producer_epoch=state.epoch,
    )

    def once(attempt: Attempt) -> Conversation[None]:
        node_id = None
        if state.transactional_id is not None:
            node_id = yield from _coordinator(brokers, state, attempt)
            yield from _look_at_features(state, node_id)
        response: InitProducerIdResponse = yield from _asked(
            state, Ask(request, node_id, at_most=_INIT_PRODUCER_ID)
        )
        _check(state, response.error_code)
        state.become(response.producer_id, response.producer_epoch)
        state.ended()

    yield from patiently(once, attempt)


def recover(brokers: Brokers, state: ProducerState, attempt: Attempt) -> Conversation[None]:
    """Abort a transaction that may be open, and get the next epoch.

    Raises:
        ProducerFenced: a newer producer has fenced this one.
        KafkaError, OSError: the error of the last attempt, or one that is not temporary.
    """
    try:
        yield from end_transaction(brokers, state, attempt, committed=False)
    except TransactionLost:
        state.ended()
    yield from initialise(brokers, state, attempt)


def _look_at_features(state: ProducerState, node_id: int) -> Conversation[None]:
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version="unknown")
    response: ApiVersionsResponse = yield from _asked(state, Ask(request, node_id, API_VERSIONS_VERSION))
    check(response.error_code)
    levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
    state.transaction_version = levels.get(TRANSACTION_VERSION, 0)


# -- records
# ----------


def produce(
    brokers: Brokers, state: ProducerState, partition: PartitionKey, batch: bytes, attempt: Attempt
) -> Conversation[int]:
    """Write a batch, stamped as this producer's, to a partition; return its base offset, or -1 if the batch
    was sent twice and the broker has forgotten its offset.

    After an error that leaves open whether the batch is stored, the same batch can be written again, and is
    stored once. Another batch begins with a new id or epoch; within the transaction it is refused.

    Raises:
        TransactionLost, ProducerFenced: see the module.
        KafkaError, OSError: the broker refuses the batch; or the error of the last attempt.
    """
    topic, index = partition
    if state.in_doubt.get(partition, batch) != batch:
        # A broker that has stored the one before would take this one, of the same sequence numbers, for it.
        if state.is_open:
            text = f"The batch before it in {topic}-{index} may be stored, or not."
            raise TransactionLost(ErrorCode.TRANSACTION_ABORTABLE, text)
        yield from initialise(brokers, state, attempt)
    sequence = state.sequences.get(partition, 0)
    is_transactional = state.transactional_id is not None
    stamped = with_producer(batch, state.producer_id, state.epoch, sequence, transactional=is_transactional)
    data = PartitionProduceData(index=index, records=stamped)

    def once(attempt: Attempt) -> Conversation[int]:
        leader = yield from _leader(brokers, state, partition, attempt)
        if is_transactional:
            yield from _join(brokers, state, partition, attempt)
        topic_id = state.topic_ids[topic]
        request = ProduceRequest(
            transactional_id=state.transactional_id,
            acks=_ALL_REPLICAS,
            timeout_ms=_REPLICATION_TIMEOUT_MS,
            topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])],
        )
        at_most = None
        if is_transactional and not state.has_epoch_per_transaction:
            at_most = _PRODUCE_ANNOUNCED
        elif topic_id == ZERO_UUID:
            at_most = _PRODUCE_WITH_NAMES
        was_in_doubt = partition in state.in_doubt
        state.in_doubt[partition] = batch
        try:
            response: ProduceResponse = (yield Ask(request, leader, at_most=at_most)).response
        except CANNOT:
            state.leaders.pop(topic, None)
            raise
        answer = response.responses[0].partition_responses[0]
        if not was_in_doubt and error_of(answer.error_code) not in _MAY_BE_STORED:
            del state.in_doubt[partition]
        return _stored(state, topic, answer)

    base_offset = yield from patiently(once, attempt)
    state.sent(partition, read_header(batch).records_count)
    return base_offset


def _stored(state: ProducerState, topic: str, answer: PartitionProduceResponse) -> int:
    """The base offset of the written batch; raises the error of its partition."""
    code = answer.error_code
    if not code or code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        return answer.base_offset
    state.leaders.pop(topic, None)
    if code == ErrorCode.UNKNOWN_TOPIC_ID:
        # The broker may not know a new topic yet; the look-up before the next attempt shows whether the topic
        # was created anew.
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if state.transactional_id is not None and code == ErrorCode.INVALID_PRODUCER_EPOCH:
        # Whether this producer is fenced shows when it aborts at the coordinator.
        raise TransactionLost(ErrorCode(code), answer.error_message)
    details = "; ".join(str(each.batch_index_error_message) for each in answer.record_errors)
    _check(state, code, answer.error_message or details)
    raise AssertionError("a code that is not 0 is raised")


def _leader(
    brokers: Brokers, state: ProducerState, partition: PartitionKey, attempt: Attempt
) -> Conversation[int]:
    name, index = partition
    if name not in state.leaders or state.leaders[name].get(index) == NO_LEADER:
        topic = yield from find_topic(brokers, name, attempt, led=(index,))
        if state.topic_ids.setdefault(name, topic.topic_id) != topic.topic_id:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_ID,
                f"Topic '{name}' was deleted and created anew while it was written to.",
            )
        state.leaders[name] = leaders_of(topic)
    if index not in state.leaders[name]:
        del state.leaders[name]
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not have a partition {index}."
        )
    return state.leaders[name][index]


def _join(
    brokers: Brokers, state: ProducerState, partition: PartitionKey, attempt: Attempt
) -> Conversation[None]:
    """Add a partition to the open transaction."""
    if partition in state.partitions:
        return
    if not state.has_epoch_per_transaction:
        assert state.transactional_id is not None
        topic, index = partition
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=state.transactional_id,
            v3_and_below_producer_id=state.producer_id,
            v3_and_below_producer_epoch=state.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[index])],
        )
        node_id = yield from _coordinator(brokers, state, attempt)
        response: AddPartitionsToTxnResponse = yield from _asked(
            state, Ask(request, node_id, at_most=_ADD_PARTITIONS)
        )
        [result] = response.results_by_topic_v3_and_below[0].results_by_partition
        _check(state, result.partition_error_code)
    state.partitions.add(partition)


# -- offsets of groups
# --------------------


def commit_offsets(
    brokers: Brokers,
    state: ProducerState,
    group: str,
    offsets: Mapping[PartitionKey, CommittedOffset],
    attempt: Attempt,
) -> Conversation[None]:
    """Add offsets of a group without members to the open transaction, which commits them at its end.

    Raises:
        TransactionLost, ProducerFenced: see the module.
        KafkaError, OSError: the group's coordinator refuses them; or the error of the last attempt.
    """
    assert state.transactional_id is not None
    by_topic: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for (topic, index), committed in offsets.items():
        by_topic.setdefault(topic, []).append(
            TxnOffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=committed.offset,
                committed_metadata=committed.metadata,
            )
        )
    request = TxnOffsetCommitRequest(
        transactional_id=state.transactional_id,
        group_id=group,
        producer_id=state.producer_id,
        producer_epoch=state.epoch,
        topics=[TxnOffsetCommitRequestTopic(name=name, partitions=ps) for name, ps in by_topic.items()],
    )

    def once(attempt: Attempt) -> Conversation[None]:
        yield from _join_group(brokers, state, group, attempt)
        at_most = None if state.has_epoch_per_transaction else _TXN_OFFSET_COMMIT_ANNOUNCED
        node_id = yield from find_coordinator(brokers, group, attempt)
        response: TxnOffsetCommitResponse = (yield Ask(request, node_id, at_most=at_most)).response
        for topic in response.topics:
            for partition in topic.partitions:
                _check(state, partition.error_code)

    yield from patiently(once, attempt)


def _join_group(brokers: Brokers, state: ProducerState, group: str, attempt: Attempt) -> Conversation[None]:
    """Add a group to the open transaction."""
    if group in state.groups:
        return
    if not state.has_epoch_per_transaction:
        assert state.transactional_id is not None
        request = AddOffsetsToTxnRequest(
            transactional_id=state.transactional_id,
            producer_id=state.producer_id,
            producer_epoch=state.epoch,
            group_id=group,
        )
        node_id = yield from _coordinator(brokers, state, attempt)
        _check(state, (yield from _asked(state, Ask(request, node_id))).error_code)
    state.groups.add(group)


# -- the end
# ----------


def end_transaction(
    brokers: Brokers, state: ProducerState, attempt: Attempt, *, committed: bool
) -> Conversation[None]:
    """Commit or abort the open transaction, if there is one.

    Raises:
        TransactionLost, ProducerFenced: see the module.
        KafkaError, OSError: the error of the last attempt, or one that is not temporary; the transaction may
            be committed or not.
    """
    if not state.is_open:
        return
    assert state.transactional_id is not None
    request = EndTxnRequest(
        transactional_id=state.transactional_id,
        producer_id=state.producer_id,
        producer_epoch=state.epoch,
        committed=committed,
    )

    def once(attempt: Attempt) -> Conversation[None]:
        node_id = yield from _coordinator(brokers, state, attempt)
        at_most = None if state.has_epoch_per_transaction else _END_TXN_WITH_ONE_EPOCH
        response: EndTxnResponse = yield from _asked(state, Ask(request, node_id, at_most=at_most))
        _check(state, response.error_code)
        if response.producer_id >= 0:
            state.become(response.producer_id, response.producer_epoch)

    yield from patiently(once, attempt)
    state.ended()


# -- the coordinator of transactions
# ----------------------------------


def _coordinator(brokers: Brokers, state: ProducerState, attempt: Attempt) -> Conversation[int]:
    if state.coordinator is None:
        assert state.transactional_id is not None
        state.coordinator = yield from find_coordinator(
            brokers, state.transactional_id, attempt, key_type=TRANSACTION
        )
    return state.coordinator


def _asked(state: ProducerState, ask: Ask) -> Conversation[Any]:
    """The response; if the coordinator does not answer, or is no broker any more, it will be looked up
    again.
    """
    try:
        return (yield ask).response
    except CANNOT:
        state.coordinator = None
        raise


def _check(state: ProducerState, code: int, message: str | None = None) -> None:
    """Raise the error that a broker's code means for this producer."""
    if not code:
        return
    if code in _ELSEWHERE:
        state.coordinator = None
    if state.transactional_id is not None:
        if code in _FENCED:
            raise ProducerFenced(state.transactional_id)
        if code in _LOST:
            raise TransactionLost(ErrorCode(code), message)
    check(code, message)
