"""Looking topics and brokers up: what is asked, what is waited for, and what comes out."""

from __future__ import annotations

import pytest

from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.core.conversation import Ask, Conversation, Reply, Result, Step, Wait, drive
from pykafka_broker.client.core.metadata import (
    NO_LEADER,
    Brokers,
    fetch_metadata,
    find_broker,
    find_topic,
    leaders_of,
    partition_error,
    topic_error,
)
from pykafka_broker.client.core.retries import first_attempt
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

E = ErrorCode
BROKERS = [MetadataResponseBroker(node_id=1, host="a", port=9092)]


def topic(error: int = 0, *partitions: tuple[int, int, int]) -> MetadataResponseTopic:
    """Of each partition its number, its leader and its error."""
    return MetadataResponseTopic(
        error_code=error,
        name="orders",
        partitions=[
            MetadataResponsePartition(
                error_code=code, partition_index=number, leader_id=leader, replica_nodes=[1], isr_nodes=[1]
            )
            for number, leader, code in partitions
        ],
    )


def answered(*topics: MetadataResponseTopic) -> MetadataResponse:
    return MetadataResponse(brokers=BROKERS, topics=list(topics))


def asking(*names: str, auto_create: bool = False) -> Ask:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return Ask(MetadataRequest(topics=topics, allow_auto_topic_creation=auto_create))


class Cluster:
    """Answers with these responses, one after the other; a request takes a millisecond."""

    def __init__(self, *responses: MetadataResponse) -> None:
        self.responses = list(responses)
        self.steps: list[Step] = []
        self.now_ms = 0

    def carry_out(self, step: Step) -> Reply:
        self.steps.append(step)
        if isinstance(step, Wait):
            self.now_ms = step.until_ms
            return Reply(None, self.now_ms)
        self.now_ms += 1
        return Reply(self.responses.pop(0), self.now_ms)

    def run(self, conversation: Conversation[Result]) -> Result:
        return drive(conversation, self.carry_out)


def test_metadata_is_asked_of_any_broker_and_tells_where_the_brokers_are() -> None:
    cluster, brokers = Cluster(answered(topic())), Brokers()
    assert cluster.run(fetch_metadata(brokers, None)) == answered(topic())
    assert cluster.steps == [Ask(MetadataRequest(topics=None, allow_auto_topic_creation=False))]
    assert brokers.addresses == {1: Address("a", 9092)}


def test_a_topic_is_found_when_all_its_partitions_have_leaders() -> None:
    electing = topic(0, (0, 1, 0), (1, -1, E.LEADER_NOT_AVAILABLE))
    led = topic(0, (1, 2, 0), (0, 1, 0))
    cluster = Cluster(answered(electing), answered(led))
    assert cluster.run(find_topic(Brokers(), "orders", first_attempt(0, 1_000))) == led
    assert cluster.steps == [asking("orders"), Wait(100), asking("orders")]
    assert leaders_of(led) == {0: 1, 1: 2}


def test_a_partition_without_a_leader_holds_up_only_those_who_need_it() -> None:
    half = topic(0, (0, 1, 0), (1, NO_LEADER, E.LEADER_NOT_AVAILABLE))
    for led in ((), (0,)):
        cluster = Cluster(answered(half))
        assert cluster.run(find_topic(Brokers(), "orders", first_attempt(0, 1_000), led=led)) == half
        assert cluster.steps == [asking("orders")]
    cluster = Cluster(*[answered(half)] * 3)
    with pytest.raises(KafkaError) as error:
        cluster.run(find_topic(Brokers(), "orders", first_attempt(0, 300), led=(1,)))
    assert error.value.code is E.LEADER_NOT_AVAILABLE


def test_a_topic_that_does_not_exist_is_an_error_at_once() -> None:
    cluster = Cluster(answered(topic(E.UNKNOWN_TOPIC_OR_PARTITION)))
    with pytest.raises(KafkaError) as error:
        cluster.run(find_topic(Brokers(), "orders", first_attempt(0, 1_000)))
    assert (error.value.code, error.value.message) == (
        E.UNKNOWN_TOPIC_OR_PARTITION,
        "Topic 'orders' does not exist.",
    )


def test_a_topic_that_is_being_created_is_waited_for() -> None:
    cluster = Cluster(answered(topic(E.UNKNOWN_TOPIC_OR_PARTITION)), answered(topic(0, (0, 1, 0))))
    found = cluster.run(find_topic(Brokers(), "orders", first_attempt(0, 1_000), auto_create=True))
    assert found == topic(0, (0, 1, 0))
    creating = asking("orders", auto_create=True)
    assert cluster.steps == [creating, Wait(100), creating]


def test_a_topic_without_leader_is_an_error_when_the_time_is_over() -> None:
    electing = answered(topic(E.LEADER_NOT_AVAILABLE))
    cluster = Cluster(*[electing] * 3)
    with pytest.raises(KafkaError) as error:
        cluster.run(find_topic(Brokers(), "orders", first_attempt(0, 300)))
    assert error.value.message == f"Topic 'orders': {E.LEADER_NOT_AVAILABLE.message}"
    assert cluster.now_ms == 201


def test_a_broker_is_looked_up_once() -> None:
    cluster, brokers = Cluster(answered()), Brokers()
    assert [cluster.run(find_broker(brokers, 1)) for _ in range(2)] == [Address("a", 9092)] * 2
    assert cluster.steps == [asking()]


def test_a_broker_that_the_cluster_does_not_know_is_not_available() -> None:
    with pytest.raises(KafkaError, match="Broker 7 is not available") as error:
        Cluster(answered()).run(find_broker(Brokers(), 7))
    assert error.value.code is E.BROKER_NOT_AVAILABLE


@pytest.mark.parametrize("error", [topic_error(9_999, "orders"), partition_error(9_999, "orders", 0)])
def test_a_code_of_a_newer_broker_is_an_error_of_the_server(error: KafkaError) -> None:
    assert error.code is E.UNKNOWN_SERVER_ERROR
