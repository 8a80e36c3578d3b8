"""TxnOffsetCommit: offsets that count when their transaction is committed."""

from __future__ import annotations

import time
from typing import Any

from interop.conformance.consumer_groups import beating, joined
from interop.conformance.conversation import conversation
from interop.conformance.talk import PAUSE_S, SET_UP_TIMEOUT_S, E, Talk
from interop.conformance.transactions import Producer
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pykafka_broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)


def of(
    producer: Producer, group: str, *topics: tuple[str, list[tuple[int, int]]], **more: Any
) -> TxnOffsetCommitRequest:
    named = [
        TxnOffsetCommitRequestTopic(
            name=name,
            partitions=[
                TxnOffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata="about it"
                )
                for partition, offset in partitions
            ],
        )
        for name, partitions in topics
    ]
    fields = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch, **more}
    return TxnOffsetCommitRequest(transactional_id=producer.id, group_id=group, topics=named, **fields)


def offsets(talk: Talk, group: str, topic: str, *, stable: bool = False, errors: tuple[E, ...] = ()) -> None:
    """Compare what the group has committed."""
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0, 1])]
    groups = [OffsetFetchRequestGroup(group_id=group, topics=topics)]
    talk.ask(OffsetFetchRequest(groups=groups, require_stable=stable), *errors, version=9)


def group_of(talk: Talk) -> str:
    """A group whose coordinator is there."""
    group = talk.name("group")
    talk.do(FindCoordinatorRequest(key_type=0, coordinator_keys=[group]))
    talk.do(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[])]), version=9)
    return group


@conversation
def offsets_count_when_their_transaction_is_committed(talk: Talk) -> None:
    topic, producer, group = talk.topic(partitions=2), Producer(talk), group_of(talk)
    producer.adds_offsets(group)
    talk.ask(of(producer, group, (topic.name, [(0, 5), (1, 7)])))
    offsets(talk, group, topic.name)
    producer.ends()
    talk.ask(
        OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=group, topics=[OffsetFetchRequestTopics(name=topic.name, partition_indexes=[0])]
                )
            ],
            require_stable=True,
        ),
        version=9,
        until=lambda answer: answer.groups[0].topics[0].partitions[0].error_code == 0,
    )
    offsets(talk, group, topic.name)


@conversation
def offsets_of_an_open_transaction_are_not_stable(talk: Talk) -> None:
    topic, producer, group = talk.topic(partitions=2), Producer(talk), group_of(talk)
    producer.adds_offsets(group)
    talk.ask(of(producer, group, (topic.name, [(0, 5)])))
    offsets(talk, group, topic.name, stable=True, errors=(E.UNSTABLE_OFFSET_COMMIT,))


@conversation
def aborted_offsets_never_were(talk: Talk) -> None:
    topic, producer, group = talk.topic(partitions=2), Producer(talk), group_of(talk)
    producer.adds_offsets(group)
    talk.ask(of(producer, group, (topic.name, [(0, 5)])))
    producer.ends(commit=False)
    offsets(talk, group, topic.name)


@conversation
def unknown_topics_and_partitions(talk: Talk) -> None:
    topic, producer, group = talk.topic(), Producer(talk), group_of(talk)
    producer.adds_offsets(group)
    talk.ask(
        of(producer, group, (talk.name("missing"), [(0, 1)]), (topic.name, [(7, 1), (0, 3)])),
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    )


@conversation
def nothing_to_commit(talk: Talk) -> None:
    producer, group = Producer(talk), group_of(talk)
    producer.adds_offsets(group)
    talk.ask(of(producer, group))


@conversation
def metadata_that_is_too_long(talk: Talk) -> None:
    topic, producer, group = talk.topic(), Producer(talk), group_of(talk)
    producer.adds_offsets(group)
    request = of(producer, group, (topic.name, [(0, 1)]))
    request.topics[0].partitions[0].committed_metadata = "x" * 5000
    talk.ask(request, E.OFFSET_METADATA_TOO_LARGE)


@conversation
def metadata_that_is_null(talk: Talk) -> None:
    topic, producer, group = talk.topic(), Producer(talk), group_of(talk)
    producer.adds_offsets(group)
    request = of(producer, group, (topic.name, [(0, 1)]))
    request.topics[0].partitions[0].committed_metadata = None
    talk.ask(request)


@conversation
def an_older_epoch_than_the_present_one(talk: Talk) -> None:
    topic, producer, group = talk.topic(), Producer(talk), group_of(talk)
    producer.adds_offsets(group)
    talk.ask(of(producer, group, (topic.name, [(0, 1)])))
    fenced = of(producer, group, (topic.name, [(0, 1)]), producer_epoch=producer.epoch - 1)
    talk.ask(fenced, E.INVALID_PRODUCER_EPOCH)


@conversation("0-4", alone=True)  # Apache takes the words of another request that the coordinator has
def offsets_that_were_not_added_to_the_transaction(talk: Talk) -> None:
    topic, producer, group = talk.topic(), Producer(talk), group_of(talk)
    error = E.TRANSACTION_ABORTABLE if talk.version >= 4 else E.INVALID_TXN_STATE
    talk.ask(of(producer, group, (topic.name, [(0, 1)])), error)


@conversation("5+")
def offsets_join_the_transaction_by_themselves(talk: Talk) -> None:
    topic, producer, group = talk.topic(partitions=2), Producer(talk), group_of(talk)
    talk.ask(of(producer, group, (topic.name, [(0, 1)])))
    producer.ends()
    offsets(talk, group, topic.name)


@conversation("3+")
def unknown_members_and_generations(talk: Talk) -> None:
    topic, producer, group = talk.topic(), Producer(talk), group_of(talk)
    producer.adds_offsets(group)
    asked = (topic.name, [(0, 1)])
    talk.ask(of(producer, group, asked, generation_id=5), E.ILLEGAL_GENERATION)
    talk.ask(of(producer, group, asked, generation_id=5, member_id="unknown"), E.ILLEGAL_GENERATION)
    talk.ask(of(producer, group, asked, member_id="unknown"))
    talk.ask(of(producer, group, asked, group_instance_id="unknown"))


@conversation("3+")
def a_consumer_commits_in_an_older_epoch_what_it_has_had_since_then(talk: Talk) -> None:
    topic, producer, group = talk.topic(partitions=2), Producer(talk), group_of(talk)
    other = talk.topic("other")
    epoch = joined(talk, group, "member", topic)
    producer.adds_offsets(group)
    says = beating(group, "member", epoch, names=[topic.name, other.name], owned={topic: [0, 1]})
    deadline = time.monotonic() + SET_UP_TIMEOUT_S
    newer = talk.do(says).member_epoch
    while newer == epoch and time.monotonic() < deadline:
        time.sleep(PAUSE_S)
        newer = talk.do(beating(group, "member", newer)).member_epoch
    member = {"member_id": "member"}
    talk.ask(of(producer, group, (topic.name, [(0, 5)]), generation_id=newer, **member))
    talk.ask(of(producer, group, (topic.name, [(1, 6)]), generation_id=epoch, **member))
    talk.ask(of(producer, group, (other.name, [(0, 7)]), generation_id=epoch, **member), E.ILLEGAL_GENERATION)
    talk.ask(
        of(producer, group, (topic.name, [(0, 8)]), generation_id=newer + 1, **member), E.ILLEGAL_GENERATION
    )
    producer.ends()
    offsets(talk, group, topic.name)
