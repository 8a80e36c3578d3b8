"""How a producer writes: every request and every answer, without a broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pykafka_broker.client.core.conversation import Ask, Conversation, Reply, Result, Step, Wait, drive
from pykafka_broker.client.core.metadata import NO_LEADER, Brokers
from pykafka_broker.client.core.offset import CommittedOffset
from pykafka_broker.client.core.producer_state import ProducerFenced, ProducerState, TransactionLost
from pykafka_broker.client.core.producing import commit_offsets, end_transaction, initialise, produce, recover
from pykafka_broker.client.core.retries import Attempt, first_attempt
from pykafka_broker.client.core.stable_offsets import fetch_stable_offsets
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from pykafka_broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from pykafka_broker.protocol.messages.api_versions import ApiVersionsResponse, FinalizedFeatureKey
from pykafka_broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from pykafka_broker.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from pykafka_broker.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pykafka_broker.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from pykafka_broker.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from pykafka_broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from pykafka_broker.protocol.records.batch import build_batch, read_header

E = ErrorCode
ID = "copy"
ORDERS = ("orders", 0)
BATCH = build_batch([(5, b"k", b"v", []), (6, b"k", None, [])])
OTHER_BATCH = build_batch([(5, b"k", b"w", []), (6, b"k", b"w", [])])
TOPIC_ID, OTHER_TOPIC_ID = b"a" * 16, b"b" * 16
GONE = ConnectionError("the broker closed the connection")
#: What a client says of a broker that is connected no more, and that the last Metadata does not list.
UNLISTED = KafkaError(E.BROKER_NOT_AVAILABLE, "Broker 1 is not available.")

#: What a broker answers, or what becomes of the request instead.
Answer = object


def script(
    conversation: Callable[[Attempt], Conversation[Result]], *answers: Answer, timeout_ms: int = 100_000
) -> tuple[Result, list[Step]]:
    """Its result, and the steps that it took; each answer belongs to one request. Waiting takes as long as it
    takes, asking no time.
    """
    left, steps, now = list(answers), list[Step](), 0

    def carry_out(step: Step) -> Reply:
        nonlocal now
        steps.append(step)
        if isinstance(step, Wait):
            now = max(now, step.until_ms)
            return Reply(None, now)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer, now)

    result = drive(conversation(first_attempt(0, timeout_ms)), carry_out)
    assert not left
    return result, steps


def asked(steps: list[Step]) -> list[str]:
    """Which requests they were, and how often there was a pause."""
    return [
        f"wait {step.until_ms}" if isinstance(step, Wait) else type(step.request).__name__ for step in steps
    ]


def requests(steps: list[Step], kind: type[Any]) -> list[Any]:
    return [step.request for step in steps if isinstance(step, Ask) and isinstance(step.request, kind)]


def coordinator(node_id: int = 1) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=[Coordinator(key=ID, node_id=node_id, host="a", port=1, error_code=0)]
    )


def features(transaction_version: int) -> ApiVersionsResponse:
    feature = FinalizedFeatureKey(
        name="transaction.version", max_version_level=transaction_version, min_version_level=0
    )
    return ApiVersionsResponse(error_code=0, api_keys=[], finalized_features=[feature])


def began(producer_id: int = 7, epoch: int = 0, error_code: int = 0) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error_code, producer_id=producer_id, producer_epoch=epoch)


def metadata(leader: int = 1, *others: int, topic_id: bytes = TOPIC_ID) -> MetadataResponse:
    partitions = [
        MetadataResponsePartition(
            error_code=E.LEADER_NOT_AVAILABLE if leader == NO_LEADER else E.NONE,
            partition_index=number,
            leader_id=leader,
            replica_nodes=[1],
            isr_nodes=[1],
        )
        for number, leader in enumerate((leader, *others))
    ]
    topic = MetadataResponseTopic(error_code=0, name="orders", topic_id=topic_id, partitions=partitions)
    return MetadataResponse(brokers=[], topics=[topic])


def stored(base_offset: int = 0, error_code: int = 0, message: str | None = None) -> ProduceResponse:
    partition = PartitionProduceResponse(
        index=0, error_code=error_code, base_offset=base_offset, error_message=message
    )
    return ProduceResponse(responses=[TopicProduceResponse(name="orders", partition_responses=[partition])])


def added(error_code: int = 0) -> AddPartitionsToTxnResponse:
    result = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=error_code)
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnTopicResult(name="orders", results_by_partition=[result])
        ]
    )


def noted(error_code: int = 0) -> TxnOffsetCommitResponse:
    partition = TxnOffsetCommitResponsePartition(partition_index=0, error_code=error_code)
    return TxnOffsetCommitResponse(
        topics=[TxnOffsetCommitResponseTopic(name="orders", partitions=[partition])]
    )


def ended(error_code: int = 0, producer_id: int = -1, epoch: int = -1) -> EndTxnResponse:
    return EndTxnResponse(error_code=error_code, producer_id=producer_id, producer_epoch=epoch)


def init(
    transactional_id: str | None, producer_id: int = -1, producer_epoch: int = -1
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=60_000,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def end(*, committed: bool) -> EndTxnRequest:
    return EndTxnRequest(transactional_id=ID, producer_id=7, producer_epoch=0, committed=committed)


class Fixture:
    """A producer that is initialised, and its conversations."""

    def __init__(self, transaction_version: int = 2, transactional_id: str | None = ID) -> None:
        self.brokers = Brokers()
        self.state = ProducerState(transactional_id, 60_000)
        if transactional_id is None:
            script(self.initialise, began())
        else:
            script(self.initialise, coordinator(), features(transaction_version), began())

    def initialise(self, attempt: Attempt) -> Conversation[None]:
        return initialise(self.brokers, self.state, attempt)

    def recover(self, attempt: Attempt) -> Conversation[None]:
        return recover(self.brokers, self.state, attempt)

    def produce(self, attempt: Attempt, batch: bytes = BATCH) -> Conversation[int]:
        return produce(self.brokers, self.state, ORDERS, batch, attempt)

    def commit_offsets(self, attempt: Attempt) -> Conversation[None]:
        offsets = {ORDERS: CommittedOffset(9, "of a table")}
        return commit_offsets(self.brokers, self.state, "progress", offsets, attempt)

    def commit(self, attempt: Attempt) -> Conversation[None]:
        return end_transaction(self.brokers, self.state, attempt, committed=True)

    def abort(self, attempt: Attempt) -> Conversation[None]:
        return end_transaction(self.brokers, self.state, attempt, committed=False)


def sequences(steps: list[Step]) -> list[tuple[int, int, int]]:
    """Producer id, epoch and first sequence number of each batch that was sent."""
    batches = [request.topic_data[0].partition_data[0].records for request in requests(steps, ProduceRequest)]
    headers = [read_header(batch) for batch in batches]
    return [(header.producer_id, header.producer_epoch, header.base_sequence) for header in headers]


# -- who it is
# ------------


def test_a_producer_gets_its_id_from_the_coordinator_of_its_transactional_id() -> None:
    state = ProducerState(ID, 60_000)
    _, steps = script(
        lambda attempt: initialise(Brokers(), state, attempt), coordinator(3), features(2), began(7, 4)
    )
    assert asked(steps) == ["FindCoordinatorRequest", "ApiVersionsRequest", "InitProducerIdRequest"]
    assert steps[-1] == Ask(init(ID), 3, at_most=5)
    assert (state.producer_id, state.epoch, state.has_epoch_per_transaction) == (7, 4, True)


def test_what_the_producer_before_it_left_open_is_waited_for() -> None:
    state = ProducerState(ID, 60_000)
    _, steps = script(
        lambda attempt: initialise(Brokers(), state, attempt),
        *(coordinator(), features(2), began(error_code=E.CONCURRENT_TRANSACTIONS)),
        *(features(2), began(7, 5)),
    )
    assert asked(steps)[3:] == ["wait 5", "ApiVersionsRequest", "InitProducerIdRequest"]
    assert state.epoch == 5


def test_a_coordinator_that_moved_is_looked_up_again() -> None:
    state = ProducerState(ID, 60_000)
    _, steps = script(
        lambda attempt: initialise(Brokers(), state, attempt),
        *(coordinator(1), features(2), began(error_code=E.NOT_COORDINATOR)),
        *(coordinator(2), features(2), began()),
    )
    assert isinstance(steps[-1], Ask)
    assert steps[-1].node_id == 2


@pytest.mark.parametrize("lost", [GONE, UNLISTED], ids=["closed", "unlisted"])
@pytest.mark.parametrize("answered", [[], [features(2)]], ids=["features", "id"])
def test_a_coordinator_that_does_not_answer_is_looked_up_again(answered: list[Answer], lost: Answer) -> None:
    state = ProducerState(ID, 60_000)
    _, steps = script(
        lambda attempt: initialise(Brokers(), state, attempt),
        *(coordinator(1), *answered, lost),
        *(coordinator(2), features(2), began()),
    )
    assert isinstance(steps[-1], Ask)
    assert steps[-1].node_id == 2


def test_an_idempotent_producer_gets_its_id_from_any_broker() -> None:
    state = ProducerState(None, 60_000)
    _, steps = script(lambda attempt: initialise(Brokers(), state, attempt), began(7, 0))
    assert steps == [Ask(init(None), at_most=5)]


# -- records
# ----------


def test_batches_have_the_sequence_numbers_that_follow_and_their_leader_is_looked_up_once() -> None:
    producer = Fixture()
    base, first = script(producer.produce, metadata(4), stored(100))
    _, second = script(producer.produce, stored(102))
    assert base == 100
    assert asked(first) == ["MetadataRequest", "ProduceRequest"]
    assert [step.node_id for step in first[1:] + second if isinstance(step, Ask)] == [4, 4]
    assert sequences(first + second) == [(7, 0, 0), (7, 0, 2)]
    [request, _] = requests(first + second, ProduceRequest)
    assert (request.transactional_id, request.acks, request.topic_data[0].topic_id) == (ID, -1, TOPIC_ID)


def test_before_epochs_per_transaction_a_partition_is_announced_once() -> None:
    producer = Fixture(transaction_version=1)
    _, first = script(producer.produce, metadata(), added(), stored())
    _, second = script(producer.produce, stored())
    assert asked(first) == ["MetadataRequest", "AddPartitionsToTxnRequest", "ProduceRequest"]
    assert asked(second) == ["ProduceRequest"]
    assert [step.at_most for step in first[1:] if isinstance(step, Ask)] == [3, 11]


def test_a_batch_whose_answer_was_lost_is_sent_again_as_it_was() -> None:
    producer = Fixture()
    base, steps = script(
        producer.produce,
        metadata(1),
        GONE,
        metadata(2),
        stored(error_code=E.DUPLICATE_SEQUENCE_NUMBER, base_offset=-1),
    )
    assert base == -1
    assert asked(steps) == [
        "MetadataRequest",
        "ProduceRequest",
        "wait 100",
        "MetadataRequest",
        "ProduceRequest",
    ]
    assert sequences(steps) == [(7, 0, 0), (7, 0, 0)]
    assert producer.state.sequences == {ORDERS: 2}


def test_a_leader_that_moved_is_looked_up_again() -> None:
    producer = Fixture()
    _, steps = script(
        producer.produce, metadata(1), stored(error_code=E.NOT_LEADER_OR_FOLLOWER), metadata(2), stored()
    )
    assert [s.node_id for s in steps if isinstance(s, Ask) and isinstance(s.request, ProduceRequest)] == [
        1,
        2,
    ]


def test_a_leader_that_is_not_among_the_brokers_any_more_is_looked_up_again() -> None:
    producer = Fixture()
    _, steps = script(producer.produce, metadata(1), UNLISTED, metadata(2), stored())
    assert asked(steps)[2:] == ["wait 100", "MetadataRequest", "ProduceRequest"]
    assert isinstance(steps[-1], Ask)
    assert steps[-1].node_id == 2


def test_another_partition_without_a_leader_is_waited_for_only_when_it_is_written_to() -> None:
    producer = Fixture()
    _, first = script(producer.produce, metadata(4, NO_LEADER), stored())
    assert asked(first) == ["MetadataRequest", "ProduceRequest"]

    def other(attempt: Attempt) -> Conversation[int]:
        return produce(Brokers(), producer.state, ("orders", 1), BATCH, attempt)

    _, second = script(other, metadata(4, NO_LEADER), metadata(4, 5), stored())
    assert asked(second) == ["MetadataRequest", "wait 100", "MetadataRequest", "ProduceRequest"]
    assert [step.node_id for step in second if isinstance(step, Ask)][-1] == 5


def test_a_partition_that_brokers_do_not_know_yet_is_looked_up_again() -> None:
    producer, unknown = Fixture(), metadata()
    unknown.topics[0].partitions = []
    _, steps = script(producer.produce, unknown, metadata(), stored())
    assert asked(steps) == ["MetadataRequest", "wait 100", "MetadataRequest", "ProduceRequest"]


def test_a_topic_id_that_its_leader_does_not_know_yet_is_sent_again_after_a_look_up() -> None:
    producer = Fixture()
    _, steps = script(
        producer.produce, metadata(), stored(error_code=E.UNKNOWN_TOPIC_ID), metadata(), stored()
    )
    assert asked(steps) == [
        "MetadataRequest",
        "ProduceRequest",
        "wait 100",
        "MetadataRequest",
        "ProduceRequest",
    ]


def test_the_sequence_numbers_of_a_leader_that_was_deposed_do_not_count() -> None:
    producer = Fixture(transactional_id=None)
    refused = stored(error_code=E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    _, steps = script(producer.produce, metadata(1), refused, metadata(2), stored())
    assert asked(steps) == [
        "MetadataRequest",
        "ProduceRequest",
        "wait 100",
        "MetadataRequest",
        "ProduceRequest",
    ]


def test_a_cluster_that_stays_away_ends_in_the_last_error() -> None:
    producer = Fixture()
    with pytest.raises(ConnectionError, match="closed the connection"):
        script(producer.produce, metadata(), GONE, GONE, timeout_ms=150)


@pytest.mark.parametrize("lost", [GONE, stored(error_code=E.REQUEST_TIMED_OUT)], ids=["closed", "timed out"])
def test_a_batch_that_may_be_stored_keeps_its_sequence_numbers_and_another_batch_gets_others(
    lost: Answer,
) -> None:
    producer = Fixture(transactional_id=None)
    with pytest.raises((OSError, KafkaError)):
        script(producer.produce, metadata(), lost, timeout_ms=0)
    with pytest.raises((OSError, KafkaError)):
        script(producer.produce, metadata(), GONE, timeout_ms=0)
    _, steps = script(lambda attempt: producer.produce(attempt, OTHER_BATCH), began(8), metadata(), stored())
    assert sequences(steps) == [(8, 0, 0)]


def test_the_same_batch_is_sent_again_with_its_sequence_numbers() -> None:
    producer = Fixture(transactional_id=None)
    script(producer.produce, metadata(), stored())
    with pytest.raises(OSError, match="closed"):
        script(producer.produce, GONE, timeout_ms=0)
    _, steps = script(producer.produce, metadata(), stored())
    _, others = script(lambda attempt: producer.produce(attempt, OTHER_BATCH), stored())
    assert sequences(steps + others) == [(7, 0, 2), (7, 0, 4)]


def test_a_batch_that_was_refused_leaves_its_sequence_numbers_to_the_next_one() -> None:
    producer = Fixture(transactional_id=None)
    with pytest.raises(KafkaError):
        script(producer.produce, metadata(), stored(error_code=E.MESSAGE_TOO_LARGE))
    _, steps = script(lambda attempt: producer.produce(attempt, OTHER_BATCH), metadata(), stored())
    assert sequences(steps) == [(7, 0, 0)]


def test_a_transaction_with_a_batch_that_may_be_stored_takes_no_other_one() -> None:
    producer = Fixture(transaction_version=1)
    with pytest.raises(OSError, match="closed"):
        script(producer.produce, metadata(), added(), GONE, timeout_ms=0)
    with pytest.raises(TransactionLost, match="may be stored, or not"):
        script(lambda attempt: producer.produce(attempt, OTHER_BATCH))
    script(producer.abort, ended())
    _, steps = script(
        lambda attempt: producer.produce(attempt, OTHER_BATCH),
        *(features(1), began(7, 1), metadata(), added(), stored()),
    )
    assert sequences(steps) == [(7, 1, 0)]


def test_a_broker_that_refused_and_then_closed_the_connection_is_said_to_have_refused() -> None:
    producer = Fixture()
    closed = ConnectionError("the broker closed the connection")
    with pytest.raises(ConnectionError) as ended:
        script(
            producer.produce, metadata(), stored(error_code=E.NOT_LEADER_OR_FOLLOWER), closed, timeout_ms=150
        )
    assert ended.value.__notes__ == ["the answer before was NOT_LEADER_OR_FOLLOWER"]


def test_a_topic_that_is_created_anew_is_not_written_to() -> None:
    producer = Fixture()
    script(producer.produce, metadata(), stored())
    with pytest.raises(KafkaError, match="Topic 'orders' was deleted and created anew"):
        script(
            producer.produce, stored(error_code=E.NOT_LEADER_OR_FOLLOWER), metadata(topic_id=OTHER_TOPIC_ID)
        )


def test_what_a_broker_refuses_is_said_in_its_words_and_the_transaction_stays_open() -> None:
    producer = Fixture()
    with pytest.raises(KafkaError, match="too old") as error:
        script(producer.produce, metadata(), stored(error_code=E.INVALID_TIMESTAMP, message="too old"))
    assert not isinstance(error.value, TransactionLost)
    assert producer.state.is_open


def test_a_code_of_a_newer_broker_is_an_error_of_the_server() -> None:
    producer = Fixture()
    with pytest.raises(KafkaError) as error:
        script(producer.produce, metadata(), stored(error_code=9_999))
    assert error.value.code is E.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    "code", [E.OUT_OF_ORDER_SEQUENCE_NUMBER, E.INVALID_PRODUCER_EPOCH, E.TRANSACTION_ABORTABLE]
)
def test_a_lost_transaction_is_aborted_and_the_producer_goes_on_in_the_next_epoch(code: ErrorCode) -> None:
    producer = Fixture()
    with pytest.raises(TransactionLost):
        script(producer.produce, metadata(), stored(error_code=code))
    _, steps = script(producer.recover, ended(producer_id=7, epoch=1), features(2), began(7, 2))
    assert requests(steps, EndTxnRequest) == [end(committed=False)]
    assert requests(steps, InitProducerIdRequest) == [init(ID, 7, 1)]
    _, again = script(producer.produce, metadata(), stored())
    assert sequences(again) == [(7, 2, 0)]


def test_a_producer_that_another_one_has_fenced_does_not_recover() -> None:
    producer = Fixture()
    with pytest.raises(TransactionLost):
        script(producer.produce, metadata(), stored(error_code=E.INVALID_PRODUCER_EPOCH))
    with pytest.raises(ProducerFenced, match="Another producer has begun with the transactional id 'copy'"):
        script(producer.recover, ended(error_code=E.PRODUCER_FENCED))


def test_nothing_to_abort_is_no_obstacle() -> None:
    producer = Fixture()
    with pytest.raises(TransactionLost):
        script(producer.produce, metadata(), stored(error_code=E.UNKNOWN_PRODUCER_ID))
    script(producer.recover, ended(error_code=E.INVALID_TXN_STATE), features(2), began(7, 1))
    assert (producer.state.epoch, producer.state.is_open) == (1, False)


# -- offsets and the end
# ----------------------


def test_offsets_go_to_the_coordinator_of_their_group_with_the_text_beside_them() -> None:
    producer = Fixture()
    _, steps = script(producer.commit_offsets, coordinator(5), noted())
    [request] = requests(steps, TxnOffsetCommitRequest)
    [topic] = request.topics
    [partition] = topic.partitions
    assert (partition.committed_offset, partition.committed_metadata) == (9, "of a table")
    assert steps[-1] == Ask(request, 5)
    assert producer.state.is_open


def test_before_epochs_per_transaction_a_group_is_announced_once() -> None:
    producer = Fixture(transaction_version=1)
    _, first = script(producer.commit_offsets, AddOffsetsToTxnResponse(error_code=0), coordinator(), noted())
    _, second = script(producer.commit_offsets, coordinator(), noted())
    assert asked(first) == ["AddOffsetsToTxnRequest", "FindCoordinatorRequest", "TxnOffsetCommitRequest"]
    assert asked(second) == ["FindCoordinatorRequest", "TxnOffsetCommitRequest"]
    assert isinstance(first[-1], Ask)
    assert first[-1].at_most == 4


def test_a_group_whose_coordinator_loads_is_waited_for() -> None:
    producer = Fixture()
    _, steps = script(
        producer.commit_offsets,
        *(coordinator(1), noted(E.COORDINATOR_LOAD_IN_PROGRESS), coordinator(2), noted()),
    )
    assert asked(steps)[2:] == ["wait 100", "FindCoordinatorRequest", "TxnOffsetCommitRequest"]


def test_the_end_of_a_transaction_begins_an_epoch_with_sequence_0() -> None:
    producer = Fixture()
    script(producer.produce, metadata(), stored())
    _, steps = script(producer.commit, ended(producer_id=7, epoch=1))
    assert requests(steps, EndTxnRequest) == [end(committed=True)]
    _, next_steps = script(producer.produce, stored())
    assert sequences(next_steps) == [(7, 1, 0)]


def test_before_epochs_per_transaction_the_sequence_numbers_go_on() -> None:
    producer = Fixture(transaction_version=1)
    script(producer.produce, metadata(), added(), stored())
    _, steps = script(producer.commit, ended())
    assert isinstance(steps[-1], Ask)
    assert steps[-1].at_most == 4
    _, next_steps = script(producer.produce, added(), stored())
    assert sequences(next_steps) == [(7, 0, 2)]


@pytest.mark.parametrize("lost", [GONE, UNLISTED], ids=["closed", "unlisted"])
def test_a_commit_whose_answer_was_lost_is_asked_again(lost: Exception) -> None:
    producer = Fixture()
    script(producer.produce, metadata(), stored())
    _, steps = script(producer.commit, lost, coordinator(2), ended(producer_id=7, epoch=1))
    assert asked(steps) == ["EndTxnRequest", "wait 100", "FindCoordinatorRequest", "EndTxnRequest"]
    assert (producer.state.epoch, producer.state.is_open) == (1, False)


def test_without_anything_written_there_is_nothing_to_end() -> None:
    assert script(Fixture().commit) == (None, [])


def test_a_fenced_producer_cannot_commit() -> None:
    producer = Fixture()
    script(producer.produce, metadata(), stored())
    with pytest.raises(ProducerFenced):
        script(producer.commit, ended(error_code=E.INVALID_PRODUCER_EPOCH))


def test_an_idempotent_producer_writes_without_a_transaction() -> None:
    producer = Fixture(transactional_id=None)
    _, steps = script(producer.produce, metadata(), stored())
    [request] = requests(steps, ProduceRequest)
    assert request.transactional_id is None
    assert sequences(steps) == [(7, 0, 0)]
    assert not producer.state.is_open


# -- offsets that are stable
# --------------------------


def test_offsets_are_told_once_no_transaction_is_open_on_them() -> None:
    def answer(*partitions: OffsetFetchResponsePartitions) -> OffsetFetchResponse:
        topic = OffsetFetchResponseTopics(name="orders", partitions=list(partitions))
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="progress", topics=[topic])])

    def partition(index: int, offset: int, metadata: str = "", error_code: int = 0) -> Any:
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=offset, metadata=metadata, error_code=error_code
        )

    found, steps = script(
        lambda attempt: fetch_stable_offsets(Brokers(), "progress", [("orders", 0), ("orders", 1)], attempt),
        *(coordinator(), answer(partition(0, -1, error_code=E.UNSTABLE_OFFSET_COMMIT))),
        coordinator(),
        answer(partition(0, 9, "of a table"), partition(1, -1)),
    )
    assert found == {ORDERS: CommittedOffset(9, "of a table")}
    assert asked(steps)[2] == "wait 100"
