"""A broker says in which log directories its replicas are, so that a failing one takes only its own along."""

from __future__ import annotations

from typing import Any

from pykafka_broker.cluster.image import PartitionRegistration, replay
from pykafka_broker.cluster.replica_directories import DIRECTORY_UNASSIGNED
from pykafka_broker.controller.core.events import (
    AssignReplicasToDirs,
    CreateTopics,
    DirectoryAssignment,
    EventError,
    NewTopic,
)
from pykafka_broker.controller.core.state import ControllerState
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records import metadata as m
from tests.controller.deciding import a_cluster, decide, directory, heartbeat, register, uuid

A, B = directory(1), uuid(500)
ORDERS = uuid(100)


def two_dirs() -> ControllerState:
    """One broker with two directories, a topic of two partitions whose places are not known yet."""
    state = register(a_cluster(1, 2), 1, directories=(A, B))
    topic = NewTopic("orders", ORDERS, assignments=((0, (1,)), (1, (1,))))
    return decide(state, CreateTopics((topic,)))[0]


def partition(state: ControllerState, index: int) -> PartitionRegistration:
    return state.image.topics["orders"].partitions[index]


def assign(
    state: ControllerState, *assignments: tuple[bytes, int, bytes], broker_id: int = 1, **fields: Any
) -> tuple[ControllerState, tuple[Any, ...], Any]:
    epoch = state.image.brokers[broker_id].epoch
    event = AssignReplicasToDirs(
        broker_id, epoch, tuple(DirectoryAssignment(*assignment) for assignment in assignments)
    )
    return decide(state, event._replace(**fields))


def test_the_places_of_replicas_are_noted_and_nothing_else_changes() -> None:
    state = two_dirs()
    before = partition(state, 0)
    assert before.directories == (DIRECTORY_UNASSIGNED,)

    state, records, outcomes = assign(state, (ORDERS, 0, A), (ORDERS, 1, B))

    assert outcomes == (ErrorCode.NONE, ErrorCode.NONE)
    assert records == (
        m.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, directories=[A]),
        m.PartitionChangeRecord(partition_id=1, topic_id=ORDERS, directories=[B]),
    )
    after = partition(state, 0)
    assert after == before._replace(directories=(A,), partition_epoch=before.partition_epoch + 1)
    assert assign(state, (ORDERS, 0, A))[1] == (), "said once is enough"


def test_what_is_not_there_or_not_the_brokers_is_refused_one_by_one() -> None:
    outcomes = assign(two_dirs(), (uuid(9), 0, A), (ORDERS, 7, A), (ORDERS, 0, A))[2]
    assert outcomes == (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE)
    assert assign(two_dirs(), (ORDERS, 0, directory(2)), broker_id=2)[1:] == (
        (),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER,),
    )


def test_an_earlier_life_of_the_broker_may_not_say_anything() -> None:
    _, records, answer = assign(two_dirs(), (ORDERS, 0, A), broker_epoch=0)
    assert (records, answer.error) == ((), ErrorCode.STALE_BROKER_EPOCH)


def test_a_failing_directory_takes_along_what_is_in_it() -> None:
    state = assign(two_dirs(), (ORDERS, 0, A), (ORDERS, 1, B))[0]
    state = decide(state, heartbeat(state, 1, offline_directories=(B,)))[0]
    assert [partition(state, index).leader for index in (0, 1)] == [1, -1]


def test_a_replica_said_to_be_in_a_failed_directory_leads_no_longer() -> None:
    state = assign(two_dirs(), (ORDERS, 0, A))[0]
    state = decide(state, heartbeat(state, 1, offline_directories=(B,)))[0]
    state, _, outcomes = assign(state, (ORDERS, 0, B))
    assert outcomes == (ErrorCode.NONE,)
    assert (partition(state, 0).leader, partition(state, 0).directories) == (-1, (B,))

    state, _, _ = assign(state, (ORDERS, 0, A))
    assert (partition(state, 0).leader, partition(state, 0).directories) == (1, (A,)), "and leads again"


def test_before_3_7_nothing_can_be_said_of_directories() -> None:
    state = two_dirs()
    level = m.FeatureLevelRecord(name="metadata.version", feature_level=16)
    state = state._replace(image=replay(state.image, [level], offset=state.next_offset, epoch=1))
    _, records, answer = assign(state, (ORDERS, 0, A))
    text = "Directory assignment is not supported yet."
    assert (records, answer) == ((), EventError(ErrorCode.UNSUPPORTED_VERSION, text))
