"""A partition moves to other brokers: it has both for a while, and then the new ones."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.cluster.image import PartitionRegistration
from pykafka_broker.cluster.replica_directories import DIRECTORY_UNASSIGNED
from pykafka_broker.controller.core.events import (
    AlterPartition,
    AlterPartitionReassignments,
    CreateTopics,
    DeleteTopics,
    NewReplicas,
    NewTopic,
    PartitionResult,
    TopicPartitions,
    TopicReassignment,
)
from pykafka_broker.controller.core.reassignments import TopicReassignments, ongoing_reassignments
from pykafka_broker.controller.core.state import ControllerState
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records import metadata as m
from tests.controller.deciding import (
    a_cluster,
    alter_partition,
    decide,
    directory,
    fence,
    isr_change,
    register,
    uuid,
)

ORDERS = uuid(100)


def orders(
    *assignments: tuple[int, ...],
    configs: tuple[tuple[str, str], ...] = (),
    state: ControllerState | None = None,
) -> ControllerState:
    """A topic whose partitions have these replicas, on five brokers that live."""
    topic = NewTopic("orders", ORDERS, assignments=tuple(enumerate(assignments)), configs=configs)
    state, _, [result] = decide(state or a_cluster(1, 2, 3, 4, 5), CreateTopics((topic,)))
    assert result.error is ErrorCode.NONE, result
    return state


def partition(state: ControllerState, index: int = 0) -> PartitionRegistration:
    return state.image.topics["orders"].partitions[index]


def replicas(
    state: ControllerState, index: int = 0
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    found = partition(state, index)
    return found.replicas, found.adding, found.removing


def reassign(
    state: ControllerState, *replicas: tuple[int, ...] | None, topic: str = "orders", **fields: Any
) -> tuple[ControllerState, tuple[Any, ...], tuple[PartitionResult, ...]]:
    """New replicas for partition 0, 1, ..."""
    wishes = tuple(NewReplicas(index, each) for index, each in enumerate(replicas))
    event = AlterPartitionReassignments((TopicReassignment(topic, wishes),))
    state, records, [result] = decide(state, event._replace(**fields))
    assert result.topic == topic
    return state, records, result.partitions


def begun(state: ControllerState, *wanted: tuple[int, ...] | None) -> ControllerState:
    state, _, results = reassign(state, *wanted)
    assert {result.error for result in results} == {ErrorCode.NONE}
    return state


def test_a_partition_first_has_the_old_and_the_new_replicas() -> None:
    state, [record], results = reassign(orders((1, 2, 3)), (3, 4, 5))
    assert results == (PartitionResult(0),)
    assert record == m.PartitionChangeRecord(
        partition_id=0,
        topic_id=ORDERS,
        replicas=[3, 4, 5, 1, 2],
        adding_replicas=[4, 5],
        removing_replicas=[1, 2],
        directories=[directory(3), directory(4), directory(5), directory(1), directory(2)],
    )
    assert (partition(state).leader, partition(state).isr, partition(state).leader_epoch) == (1, (1, 2, 3), 0)


def test_when_the_new_ones_are_in_sync_the_old_ones_go_and_the_leader_with_them() -> None:
    state = begun(orders((1, 2, 3)), (3, 4, 5))
    state = alter_partition(state, "orders", 0, isr=(1, 2, 3, 4))
    assert replicas(state) == ((3, 4, 5, 1, 2), (4, 5), (1, 2)), "not all are there"

    state = alter_partition(state, "orders", 0, isr=(1, 2, 3, 4, 5))

    assert replicas(state) == ((3, 4, 5), (), ())
    after = partition(state)
    assert (after.leader, after.isr, after.leader_epoch) == (3, (3, 4, 5), 1)
    assert after.directories == (directory(3), directory(4), directory(5))


def test_a_leader_that_stays_gets_a_new_epoch_when_replicas_go() -> None:
    state = begun(orders((1, 2)), (1, 3))
    state = alter_partition(state, "orders", 0, isr=(1, 2, 3))
    assert (replicas(state), partition(state).leader) == (((1, 3), (), ()), 1)
    assert partition(state).leader_epoch == 1


def test_a_replica_that_stays_need_not_be_in_sync_if_as_many_come_as_go() -> None:
    state = begun(fence(orders((1, 2, 3)), 2), (2, 3, 4))
    state = alter_partition(state, "orders", 0, isr=(1, 3, 4))
    assert (replicas(state), partition(state).isr, partition(state).leader) == (
        ((2, 3, 4), (), ()),
        (3, 4),
        3,
    )


def test_another_order_of_the_same_replicas_is_there_at_once_and_moves_no_leader() -> None:
    state, [record], _ = reassign(orders((1, 2, 3)), (3, 2, 1))
    assert record.replicas == [3, 2, 1]
    assert (replicas(state), partition(state).leader) == (((3, 2, 1), (), ()), 1)


def test_replicas_that_only_go_go_at_once_if_the_others_are_in_sync() -> None:
    state = begun(orders((1, 2, 3)), (2,))
    assert (replicas(state), partition(state).isr, partition(state).leader) == (((2,), (), ()), (2,), 2)


def test_replicas_stay_while_those_that_are_to_stay_are_not_in_sync() -> None:
    state = begun(fence(orders((1, 2)), 2), (2,))
    assert replicas(state) == ((2, 1), (), (1,))
    assert (partition(state).leader, partition(state).isr) == (1, (1,))


def test_the_replicas_a_partition_has_change_nothing() -> None:
    state = orders((1, 2))
    assert reassign(state, (1, 2)) == (state, (), (PartitionResult(0),))


def test_a_new_replica_may_be_on_a_broker_that_is_away() -> None:
    state = begun(fence(orders((1,)), 2), (1, 2))
    assert replicas(state) == ((1, 2), (2,), ())


def test_the_directory_of_a_new_replica_is_the_brokers_choice_if_it_has_several() -> None:
    state = register(orders((1,)), 2, directories=(directory(2), uuid(500)))
    state = begun(state, (1, 2))
    assert partition(state).directories == (directory(1), DIRECTORY_UNASSIGNED)


# -- called off, replaced ----------------------------------------------------------------------------------


def test_called_off_a_partition_has_the_replicas_it_had() -> None:
    before = orders((1, 2))
    state, [record], results = reassign(begun(before, (3, 4)), None)
    assert results == (PartitionResult(0),)
    assert replicas(state) == ((1, 2), (), ())
    assert partition(state).directories == partition(before).directories
    assert record.leader == 1, "the leader learns by a new epoch that it has fewer followers"


def test_called_off_new_replicas_leave_the_in_sync_set_and_a_new_leader_steps_down() -> None:
    state = begun(orders((1, 2)), (3, 4))
    state = alter_partition(state, "orders", 0, isr=(1, 2, 3))
    state = fence(fence(state, 1), 2)
    assert partition(state).leader == 3
    refusal = (
        "Unable to revert partition assignment for orders:0 because it would require an unclean "
        "leader election."
    )
    after, records, [result] = reassign(state, None)
    assert (after, records) == (state, ())
    assert result == PartitionResult(0, ErrorCode.INVALID_REPLICA_ASSIGNMENT, refusal)


def test_where_unclean_elections_are_allowed_calling_off_may_lose_records() -> None:
    state = begun(orders((1, 2), configs=(("unclean.leader.election.enable", "true"),)), (3, 4))
    state = alter_partition(state, "orders", 0, isr=(1, 2, 3))
    state = fence(fence(state, 1), 2)
    state = begun(state, None)
    assert (replicas(state), partition(state).isr, partition(state).leader) == (((1, 2), (), ()), (1,), -1)


def test_nothing_can_be_called_off_twice() -> None:
    state = begun(begun(orders((1,)), (2,)), None)
    result = PartitionResult(0, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    assert reassign(state, None) == (state, (), (result,))


def test_a_reassignment_may_be_replaced_by_another() -> None:
    state = begun(begun(orders((1,)), (2,)), (3,))
    assert replicas(state) == ((3, 1, 2), (3,), (1, 2))
    state = alter_partition(state, "orders", 0, isr=(1, 3))
    assert (replicas(state), partition(state).leader) == (((3,), (), ()), 3)


def test_a_replica_that_is_taken_back_does_not_go() -> None:
    state = begun(begun(orders((1,)), (2,)), (1, 2))
    assert replicas(state) == ((1, 2), (2,), ())
    state = alter_partition(state, "orders", 0, isr=(1, 2))
    assert (replicas(state), partition(state).isr) == (((1, 2), (), ()), (1, 2))


def test_a_replica_that_was_coming_and_is_not_wanted_any_more_holds_nothing_up() -> None:
    state = begun(begun(orders((1,)), (1, 2)), (1,))
    assert (replicas(state), partition(state).isr, partition(state).leader) == (((1,), (), ()), (1,), 1)


def test_a_replica_that_was_coming_is_awaited_by_the_next_reassignment_too() -> None:
    state = begun(begun(orders((1,)), (1, 2)), (1, 2, 3))
    assert replicas(state) == ((1, 2, 3), (2, 3), ())
    assert replicas(begun(state, None)) == ((1,), (), ())


def test_a_topic_that_is_created_again_has_no_reassignment_and_followers_of_the_one_before_end_none() -> None:
    state = begun(orders((1, 2, 3)), (3, 4, 5))
    gone = state
    state, _, _ = decide(state, DeleteTopics((("orders", bytes(16)),)))
    again = NewTopic("orders", uuid(101), assignments=((0, (1, 2, 3)),))
    state, _, _ = decide(state, CreateTopics((again,)))
    assert replicas(state) == ((1, 2, 3), (), ())
    assert list(ongoing_reassignments(state.image, None)) == []
    _, _, [result] = reassign(state, None)
    assert result.error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS

    state = begun(state, (3, 4, 5))
    change = isr_change(gone, "orders", 0, isr=(1, 2, 3, 4, 5))
    _, records, [refused] = decide(state, AlterPartition(1, state.image.brokers[1].epoch, (change,)))
    assert (records, refused.error) == ((), ErrorCode.UNKNOWN_TOPIC_ID)


def test_of_a_partition_named_twice_the_last_wish_counts() -> None:
    wishes = (NewReplicas(0, (2, 3)), NewReplicas(0, None))
    event = AlterPartitionReassignments((TopicReassignment("orders", wishes),))
    state, _, [result] = decide(orders((1,)), event)
    assert result.partitions == (PartitionResult(0), PartitionResult(0))
    assert replicas(state) == ((1,), (), ())


# -- refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wanted, error, message",
    [
        ((), "INVALID_REPLICA_ASSIGNMENT", "The manual partition assignment includes an empty replica list."),
        (
            (1, 9),
            "INVALID_REPLICA_ASSIGNMENT",
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            (1, 2, 1),
            "INVALID_REPLICA_ASSIGNMENT",
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (None, "NO_REASSIGNMENT_IN_PROGRESS", None),
    ],
)
def test_what_cannot_be_is_refused_and_the_others_go_ahead(
    wanted: tuple[int, ...] | None, error: str, message: str | None
) -> None:
    state, records, results = reassign(orders((1,), (1,)), wanted, (2,), (3,))
    assert results == (
        PartitionResult(0, ErrorCode[error], message),
        PartitionResult(1),
        PartitionResult(2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition orders:2."),
    )
    assert [record.partition_id for record in records] == [1]
    assert replicas(state) == ((1,), (), ())


def test_an_unknown_topic_is_refused() -> None:
    _, records, results = reassign(orders((1,)), (2,), topic="none")
    text = "Unable to find a topic named none."
    assert (records, results) == ((), (PartitionResult(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text),))


@pytest.mark.parametrize("wanted, factor", [((2,), 2), ((2, 3, 4), 2)])
def test_the_replication_factor_stays_where_the_client_says_so(wanted: tuple[int, ...], factor: int) -> None:
    state = orders((1, 2))
    text = f"The replication factor is changed from {factor} to {len(wanted)}"
    refused = PartitionResult(0, ErrorCode.INVALID_REPLICATION_FACTOR, text)
    assert reassign(state, wanted, allow_replication_factor_change=False) == (state, (), (refused,))

    moving = begun(state, (3, 4))
    assert reassign(moving, wanted, allow_replication_factor_change=False)[2] == (refused,)
    assert reassign(moving, (4, 5), allow_replication_factor_change=False)[2] == (PartitionResult(0),)


# -- what is under way -------------------------------------------------------------------------------------


def test_what_is_under_way_is_listed_and_nothing_else() -> None:
    state = begun(orders((1,), (2,)), (3,))
    moving = TopicReassignments("orders", (partition(state),))
    assert list(ongoing_reassignments(state.image, None)) == [moving]
    asked = [TopicPartitions("none", (0,)), TopicPartitions("orders", (7, 1, 0))]
    assert list(ongoing_reassignments(state.image, asked)) == [moving]
    assert list(ongoing_reassignments(state.image, [TopicPartitions("orders", (1,))])) == []
