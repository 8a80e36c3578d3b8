"""Clients over their quotas: the throttle time to the millisecond, empty answers, and connections that wait.

A quota of one byte a second has room for ten bytes in its window, and every byte more costs a second: the
throttle time of a client's first request says how many bytes the broker has counted.
"""

from __future__ import annotations

from typing import Any

from interop.conformance.apis.alter_client_quotas import (
    DESCRIBED,
    altering,
    describing,
    entry,
    of_user,
    shows,
)
from interop.conformance.conversation import LATEST, conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.protocol.messages.describe_client_quotas import ComponentData
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
from pykafka_broker.protocol.messages.metadata import MetadataRequest
from pykafka_broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from pykafka_broker.protocol.records.batch import BatchFields, build_batch

#: Kafka has no user but this one on a listener without authentication.
ANONYMOUS = "ANONYMOUS"
ZERO_UUID = bytes(16)
DESCRIBE_VERSION = 1


def throttled(answer: Any) -> bool:
    return bool(answer.throttle_time_ms > 0)


def within(talk: Talk, entity: dict[str, str | None], **quotas: float) -> None:
    """Set quotas, and wait until they are in force: Apache Kafka shows them a moment before."""
    talk.do(altering(entry(entity, **quotas)))
    components = [
        ComponentData(entity_type=kind.replace("_", "-"), match_type=1 if name is None else 0, match=name)
        for kind, name in entity.items()
    ]
    talk.ask(describing(*components, strict=True), until=shows(), in_any_order=DESCRIBED)


def without(talk: Talk, entity: dict[str, str | None], *quotas: str) -> None:
    talk.do(altering(entry(entity, **dict.fromkeys(quotas))))


def producing(topic: Any, size: int, *, acks: int = 1) -> ProduceRequest:
    """A batch whose offset does not depend on how often it is sent until the quota is in force."""
    fields = BatchFields(producer_id=7, producer_epoch=0, base_sequence=0)
    batch = build_batch([(1_700_000_000_000, None, b"x" * size, ())], fields)
    data = [PartitionProduceData(index=0, records=batch)]
    return ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic.name, topic_id=topic.id, partition_data=data)],
    )


def fetching(topic: Any, *, session_id: int = 0, epoch: int = -1, offset: int = 0) -> FetchRequest:
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1_000_000)
    topics = [FetchTopic(topic=topic.name, topic_id=topic.id, partitions=[asked])]
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1_000_000,
        session_id=session_id,
        session_epoch=epoch,
        topics=topics if epoch <= 0 else [],
    )


@conversation(LATEST)
def a_producer_is_told_how_long_to_wait(talk: Talk) -> None:
    topic = talk.topic()
    for version in (3, 8, 9, 12, 13):
        client_id = talk.name(f"producer-{version}")
        within(talk, {"client_id": client_id}, producer_byte_rate=1.0)
        client = talk.another(client_id)
        client.ask(producing(topic, 100), version=version, until=throttled)
        client.send(ApiVersionsRequest(client_software_name="t", client_software_version="1")).is_waiting()
        without(talk, {"client_id": client_id}, "producer_byte_rate")


@conversation(LATEST)
def a_producer_without_answers_waits_too(talk: Talk) -> None:
    topic = talk.topic()
    client_id = talk.name("client")
    within(talk, {"client_id": client_id}, producer_byte_rate=1.0)
    client = talk.another(client_id)
    client.ask(producing(topic, 100), until=throttled)
    client = talk.another(client_id)
    client.send(producing(topic, 100, acks=0))
    client.send(ListGroupsRequest()).is_waiting()
    without(talk, {"client_id": client_id}, "producer_byte_rate")


@conversation(LATEST)
def a_consumer_is_given_nothing_and_told_how_long_to_wait(talk: Talk) -> None:
    topic = talk.topic()
    talk.produce(topic, b"x" * 200, b"y")
    for version in (4, 7, 11, 12, 13, 18):
        client_id = talk.name(f"consumer-{version}")
        within(talk, {"client_id": client_id}, consumer_byte_rate=1.0)
        client = talk.another(client_id)
        client.ask(fetching(topic), version=version, until=throttled)
        client = talk.another(client_id)
        client.ask(fetching(topic, epoch=0), version=version)
        client.send(ListGroupsRequest()).is_waiting()
        without(talk, {"client_id": client_id}, "consumer_byte_rate")


@conversation(LATEST)
def an_empty_answer_counts_too(talk: Talk) -> None:
    topic = talk.topic()
    for version in (4, 12, 18):
        client_id = talk.name(f"consumer-{version}")
        within(talk, {"client_id": client_id}, consumer_byte_rate=1.0)
        talk.another(client_id).ask(fetching(topic), version=version, until=throttled)
        without(talk, {"client_id": client_id}, "consumer_byte_rate")


# Fetches count as soon as anybody has a quota.
@conversation(LATEST, alone=True)
def a_session_goes_on_after_an_empty_answer(talk: Talk) -> None:
    topic = talk.topic()
    client_id = talk.name("consumer")
    client = talk.another(client_id)
    session = client.ask(fetching(topic, epoch=0)).session_id
    talk.produce(topic, b"x" * 200)
    within(talk, {"client_id": client_id}, consumer_byte_rate=1.0)
    client.ask(fetching(topic, session_id=session, epoch=1))
    without(talk, {"client_id": client_id}, "consumer_byte_rate")
    other = talk.another(talk.name("other"))
    other.ask(fetching(topic, session_id=session, epoch=2))
    other.ask(fetching(topic, session_id=session, epoch=2), E.INVALID_FETCH_SESSION_EPOCH)


@conversation(LATEST)
def the_time_of_every_request_counts(talk: Talk) -> None:
    client_id = talk.name("client")
    within(talk, {"client_id": client_id}, request_percentage=1e-9)
    requests: list[tuple[Any, int]] = [
        (ListGroupsRequest(), 5),
        (ListGroupsRequest(), 0),
        (ApiVersionsRequest(client_software_name="t", client_software_version="1"), 0),
        (MetadataRequest(topics=[]), 12),
        (MetadataRequest(topics=[]), 2),
        (FindCoordinatorRequest(key=talk.name("group"), key_type=0), 3),
        (of_user(talk.name("nobody")), 1),
    ]
    for request, version in requests:
        client = talk.another(client_id)
        if version >= 1 and not (request.api_key == 3 and version < 3):
            client.ask(request, version=version, until=throttled)
        else:
            client.send(request, version=version).receive()
        client.send(ListGroupsRequest()).is_waiting()
    without(talk, {"client_id": client_id}, "request_percentage")


@conversation(LATEST, alone=True)
def the_most_specific_quota_applies(talk: Talk) -> None:
    topic = talk.topic()
    client_id = talk.name("client")
    entities: list[dict[str, str | None]] = [
        {"client_id": None},
        {"client_id": client_id},
        {"user": None},
        {"user": None, "client_id": None},
        {"user": None, "client_id": client_id},
        {"user": ANONYMOUS},
        {"user": ANONYMOUS, "client_id": None},
        {"user": ANONYMOUS, "client_id": client_id},
    ]
    for rate, entity in enumerate(entities, 1):
        within(talk, entity, producer_byte_rate=float(rate))
        for name in (client_id, talk.name(f"other-{rate}"), None, ""):
            talk.another(name).ask(producing(topic, 800_000), version=9)
    for entity in entities:
        without(talk, entity, "producer_byte_rate")
    talk.ask(of_user(ANONYMOUS), until=shows(present=False))


def new(name: str, partitions: int = 1) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


@conversation(LATEST)
def partitions_are_created_and_deleted_within_a_quota(talk: Talk) -> None:
    client_id = talk.name("client")
    within(talk, {"client_id": client_id}, controller_mutation_rate=1e-6)
    a, b = talk.name("a"), talk.name("b")
    talk.created += [a, b]
    talk.another(client_id).ask(new(a), version=7)
    talk.another(client_id).ask(new(b), E.THROTTLING_QUOTA_EXCEEDED, version=7)
    talk.another(client_id).ask(new(a), E.TOPIC_ALREADY_EXISTS, version=7)
    more = CreatePartitionsTopic(name=a, count=2, assignments=None)
    growing = CreatePartitionsRequest(topics=[more], timeout_ms=10_000, validate_only=False)
    talk.another(client_id).ask(growing, E.THROTTLING_QUOTA_EXCEEDED, version=3)
    gone = [DeleteTopicState(name=a, topic_id=ZERO_UUID)]
    deleting = DeleteTopicsRequest(topics=gone, topic_names=[a], timeout_ms=10_000)
    talk.another(client_id).ask(deleting, E.THROTTLING_QUOTA_EXCEEDED, version=6)
    talk.another(client_id).ask(deleting, version=4)
    without(talk, {"client_id": client_id}, "controller_mutation_rate")


@conversation(LATEST)
def versions_that_know_no_refusal_go_over_the_quota(talk: Talk) -> None:
    client_id = talk.name("client")
    within(talk, {"client_id": client_id}, controller_mutation_rate=1e-6)
    name = talk.name("a")
    talk.created.append(name)
    client = talk.another(client_id)
    client.ask(new(name), version=5)
    client.send(ListGroupsRequest()).is_waiting()
    without(talk, {"client_id": client_id}, "controller_mutation_rate")
