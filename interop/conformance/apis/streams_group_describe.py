"""StreamsGroupDescribe: state, topology and tasks of Kafka Streams applications (KIP-1071)."""

from __future__ import annotations

from interop.conformance.consumer_groups import joined as joined_consumer
from interop.conformance.conversation import conversation
from interop.conformance.groups import a_group, a_member, committing
from interop.conformance.streams import (
    LEAVE,
    a_streams_group,
    beating,
    internal,
    joined,
    joining,
    known,
    owning,
    part,
    topology,
)
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from pykafka_broker.protocol.messages.streams_group_heartbeat import Endpoint, KeyValue

#: Apache keeps the members of a group in a hash map.
BY_ID = {"members": "member_id"}


def describing(*groups: str, operations: bool = False) -> StreamsGroupDescribeRequest:
    return StreamsGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=operations)


@conversation
def a_group_with_one_member(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    group = a_streams_group(talk, topic)
    joined(
        talk,
        group,
        "m",
        topic,
        rack_id="r",
        user_endpoint=Endpoint(host="here", port=65_535),
        client_tags=[KeyValue(key=key, value=key) for key in ("zone", "cluster", "rack", "a", "b")],
    )
    talk.ask(describing(group), in_any_order=BY_ID)


@conversation
def a_group_that_moves_tasks_from_one_member_to_the_other(talk: Talk) -> None:
    topic = talk.topic(partitions=4)
    group = a_streams_group(talk, topic)
    epoch = joined(talk, group, "m", topic)
    talk.ask(joining(group, "n", topic))
    talk.ask(beating(group, "m", epoch, **owning(0, 1, 2, 3)))
    talk.ask(describing(group), in_any_order=BY_ID)
    talk.ask(beating(group, "m", epoch, **owning(0, 1)))
    talk.ask(describing(group), in_any_order=BY_ID)


@conversation
def a_group_with_internal_topics(talk: Talk) -> None:
    topic = talk.topic(partitions=3)
    store, repartition = talk.topic("store", partitions=2), talk.topic("repartition", partitions=2)
    group = a_streams_group(talk, topic, store, repartition)
    configs = {
        "retention.ms": "-1",
        "cleanup.policy": "compact",
        "segment.bytes": "1048576",
        "min.insync.replicas": "1",
        "message.timestamp.type": "CreateTime",
    }
    counting = topology(
        part(
            "1",
            repartition_source_topics=[internal(repartition.name, 2, 1, configs)],
            state_changelog_topics=[internal(store.name, configs=configs)],
        ),
        part("0", topic, repartition_sink_topics=[repartition.name]),
    )
    epoch = joined(talk, group, "m", counting)
    # Apache looks at the topics with the second heartbeat, and shows what it has found with the next record.
    talk.ask(beating(group, "m", epoch))
    talk.do(joining(group, "n", counting))
    talk.ask(describing(group), in_any_order=BY_ID)


@conversation
def a_group_whose_topics_are_missing(talk: Talk) -> None:
    group = a_streams_group(talk)
    missing = topology(
        part(
            "1",
            talk.name("b"),
            talk.name("a"),
            state_changelog_topics=[
                internal(talk.name("z"), 0, 1, {"b": "1", "a": "2"}),
                internal(talk.name("y")),
            ],
        ),
        part("0", talk.name("c"), repartition_sink_topics=[talk.name("f"), talk.name("e")]),
    )
    talk.ask(joining(group, "m", missing))
    talk.ask(describing(group), in_any_order=BY_ID)


@conversation
def a_group_that_waits_for_its_first_assignment(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    known(talk, topic)
    talk.ask(joining(group, "m", topic))
    talk.ask(describing(group), in_any_order=BY_ID)


@conversation
def a_group_whose_members_are_gone(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    joined(talk, group, "m", topic)
    talk.do(beating(group, "m", LEAVE))
    talk.ask(describing(group), in_any_order=BY_ID)


@conversation
def an_unknown_group_is_not_found(talk: Talk) -> None:
    talk.ask(describing(a_group(talk)), E.GROUP_ID_NOT_FOUND)


@conversation
def a_group_of_another_kind_is_not_found_here(talk: Talk) -> None:
    topic = talk.topic()
    classic, simple, consumers = (a_group(talk, label) for label in ("classic", "simple", "consumers"))
    a_member(talk, classic)
    talk.do(committing(simple, topic, {0: 5}))
    joined_consumer(talk, consumers, "m", topic)
    talk.ask(describing(classic, simple, consumers), *[E.GROUP_ID_NOT_FOUND] * 3)


@conversation
def an_empty_group_id_is_invalid(talk: Talk) -> None:
    a_group(talk)
    talk.ask(describing(""), E.INVALID_GROUP_ID)


@conversation
def no_groups_are_asked_for(talk: Talk) -> None:
    a_group(talk)
    talk.ask(describing(), in_any_order=BY_ID)


@conversation
def a_group_is_asked_for_twice(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    joined(talk, group, "m", topic)
    talk.ask(describing(group, group), in_any_order=BY_ID)


@conversation
def what_may_be_done_with_a_group_is_told_when_asked(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    joined(talk, group, "m", topic)
    talk.ask(describing(group, operations=True), in_any_order=BY_ID)
