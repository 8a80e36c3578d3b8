"""Leaders say who is in sync: replicas fall behind and catch up, and old news changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.cluster.image import LeaderRecoveryState, PartitionRegistration, replay
from pykafka_broker.controller.core.events import (
    AlterPartition,
    AlterPartitionReassignments,
    CreateTopics,
    EventError,
    InSyncReplicas,
    IsrChangeResult,
    IsrMember,
    NewReplicas,
    NewTopic,
    TopicReassignment,
)
from pykafka_broker.controller.core.state import ControllerState
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records import metadata as m
from tests.controller.deciding import (
    NOW_MS,
    a_cluster,
    alter_partition,
    decide,
    fence,
    heartbeat,
    isr_change,
    register,
    stepped,
    unfence,
    uuid,
)

ORDERS = uuid(100)
RECOVERING = LeaderRecoveryState.RECOVERING


def orders(
    *replicas: int, configs: tuple[tuple[str, str], ...] = (), state: ControllerState | None = None
) -> ControllerState:
    topic = NewTopic("orders", ORDERS, assignments=((0, replicas),), configs=configs)
    state, _, [result] = decide(state or a_cluster(1, 2, 3), CreateTopics((topic,)))
    assert result.error is ErrorCode.NONE, result
    return state


def partition(state: ControllerState) -> PartitionRegistration:
    return state.image.topics["orders"].partitions[0]


def ask(
    state: ControllerState, broker_id: int | None = None, **fields: Any
) -> tuple[ControllerState, tuple[Any, ...], IsrChangeResult]:
    """The leader, or another broker, asks for a change of partition 0."""
    broker_id = broker_id or partition(state).leader
    change = isr_change(state, "orders", 0, **fields)
    event = AlterPartition(broker_id, state.image.brokers[broker_id].epoch, (change,))
    state, records, [result] = decide(state, event)
    return state, records, result


def in_sync(state: ControllerState) -> InSyncReplicas:
    now = partition(state)
    return InSyncReplicas(now.leader, now.leader_epoch, now.isr, now.partition_epoch)


def test_a_replica_that_fell_behind_leaves_and_comes_back() -> None:
    state, [record], result = ask(orders(1, 2, 3), isr=(1, 3))
    assert record == m.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, isr=[1, 3])
    assert result == IsrChangeResult(ErrorCode.NONE, in_sync(state))
    assert (partition(state).leader_epoch, partition(state).partition_epoch) == (0, 1)

    state, [record], _ = ask(state, isr=(1, 3, 2))
    assert (partition(state).isr, partition(state).partition_epoch) == ((1, 3, 2), 2)


def test_the_set_that_there_is_changes_nothing_and_is_answered() -> None:
    state = orders(1, 2)
    assert ask(state, isr=(1, 2)) == (state, (), IsrChangeResult(ErrorCode.NONE, in_sync(state)))


def test_before_3_6_a_replica_that_leaves_costs_a_leader_epoch() -> None:
    state = a_cluster(1, 2, 3)
    level = m.FeatureLevelRecord(name="metadata.version", feature_level=11)
    no_elr = m.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0)
    state = orders(1, 2, 3, state=state)
    state = state._replace(image=replay(state.image, [level, no_elr], offset=state.next_offset, epoch=1))
    shrunk = AlterPartition(1, state.image.brokers[1].epoch, (isr_change(state, "orders", 0, isr=(1, 2)),))
    step = stepped(state, shrunk)
    [record] = step.records
    assert isinstance(record, m.PartitionChangeRecord)
    assert (record.isr, record.leader) == ([1, 2], 1)
    grown = isr_change(step.state, "orders", 0, isr=(1, 2, 3))
    step = stepped(step.state, shrunk._replace(changes=(grown,)))
    [record] = step.records
    assert isinstance(record, m.PartitionChangeRecord)
    assert (record.isr, record.leader) == ([1, 2, 3], -2)


@pytest.mark.parametrize(
    "change, error",
    [
        ({"partition": 7}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"topic_id": uuid(9)}, "UNKNOWN_TOPIC_ID"),
        ({"topic_id": bytes(16)}, "UNKNOWN_TOPIC_ID"),
        ({"leader_epoch": 9, "partition_epoch": 0}, "NOT_CONTROLLER"),
        ({"leader_epoch": 0, "partition_epoch": 9}, "NOT_CONTROLLER"),
        ({"leader_epoch": 0}, "FENCED_LEADER_EPOCH"),
        ({"partition_epoch": 0}, "INVALID_UPDATE_VERSION"),
        ({"isr": (2, 3, 9)}, "INVALID_REQUEST"),
        ({"isr": (2, 3, 3)}, "INVALID_REQUEST"),
        ({"isr": (3,)}, "INVALID_REQUEST"),
        ({"isr": ()}, "INVALID_REQUEST"),
        ({"isr": (2, 3), "leader_recovery_state": RECOVERING}, "INVALID_REQUEST"),
        ({"isr": (2,), "leader_recovery_state": RECOVERING}, "INVALID_REQUEST"),
        ({"isr": (2, 1)}, "INELIGIBLE_REPLICA"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], error: str) -> None:
    state = fence(orders(1, 2, 3), 1)
    assert (partition(state).leader, partition(state).leader_epoch, partition(state).partition_epoch) == (
        2,
        1,
        1,
    )
    fields = {key: value for key, value in change.items() if key != "isr"}
    asked = isr_change(state, "orders", 0, isr=change.get("isr", (2, 3)))._replace(**fields)
    event = AlterPartition(2, state.image.brokers[2].epoch, (asked,))
    assert decide(state, event) == (state, (), (IsrChangeResult(ErrorCode[error]),))


def test_only_the_leader_may_ask_and_only_in_its_present_life() -> None:
    state = orders(1, 2, 3)
    assert ask(state, 2, isr=(1, 2)) == (state, (), IsrChangeResult(ErrorCode.INVALID_REQUEST))
    event = AlterPartition(1, 0, (isr_change(state, "orders", 0, isr=(1, 2)),))
    _, records, answer = decide(state, event)
    assert (records, type(answer), answer.error) == ((), EventError, ErrorCode.STALE_BROKER_EPOCH)


def test_a_broker_that_was_restarted_since_is_not_taken_for_in_sync() -> None:
    state = alter_partition(orders(1, 2), "orders", 0, isr=(1,))
    before = isr_change(state, "orders", 0, isr=(1, 2))
    epoch = before.isr[1].broker_epoch
    later = {"incarnation_id": uuid(7), "previous_broker_epoch": epoch}
    state = unfence(register(state, 2, NOW_MS + 60_000, **later), 2)
    assert state.image.brokers[2].epoch > epoch
    event = AlterPartition(1, state.image.brokers[1].epoch, (before,))
    assert decide(state, event)[2] == (IsrChangeResult(ErrorCode.INELIGIBLE_REPLICA),)

    unnamed = before._replace(isr=(IsrMember(1), IsrMember(2)))
    state, _, [result] = decide(state, event._replace(changes=(unnamed,)))
    assert (result.error, partition(state).isr) == (ErrorCode.NONE, (1, 2)), "version 2 tells no epochs"


def test_a_broker_that_is_about_to_stop_is_not_taken_for_in_sync() -> None:
    state = orders(1, 2, state=a_cluster(1, 2, 3))
    state, _, _ = decide(state, CreateTopics((NewTopic("led", uuid(101), assignments=((0, (2, 1)),)),)))
    state, _, _ = decide(state, heartbeat(state, 2, want_shutdown=True))
    assert state.image.brokers[2].in_controlled_shutdown and not state.image.brokers[2].fenced
    assert ask(state, isr=(1, 2))[2] == IsrChangeResult(ErrorCode.INELIGIBLE_REPLICA)


def test_the_change_that_ends_a_reassignment_may_end_the_leadership_of_who_asks() -> None:
    wish = TopicReassignment("orders", (NewReplicas(0, (2, 3)),))
    state, _, _ = decide(orders(1, 2), AlterPartitionReassignments((wish,)))
    state, [record], result = ask(state, isr=(1, 2, 3))
    assert result == IsrChangeResult(ErrorCode.NEW_LEADER_ELECTED)
    assert (record.leader, record.isr, record.replicas) == (2, [2, 3], [2, 3])
    assert partition(state).replicas == (2, 3)


def test_a_leader_that_has_recovered_says_so_before_others_are_in_sync() -> None:
    state = orders(1, 2, configs=(("unclean.leader.election.enable", "true"),))
    state = unfence(fence(fence(state, 2), 1), 2)
    assert (partition(state).leader, partition(state).leader_recovery_state) == (2, RECOVERING)

    state = unfence(state, 1)
    both = ask(state, isr=(2, 1), leader_recovery_state=RECOVERING)
    assert both[2] == IsrChangeResult(ErrorCode.INVALID_REQUEST)
    state, [record], _ = ask(state, isr=(2,))
    assert record.leader_recovery_state == partition(state).leader_recovery_state == 0
    state, _, result = ask(state, isr=(2, 1))
    assert (result.error, partition(state).isr) == (ErrorCode.NONE, (2, 1))


# -- eligible leader replicas ------------------------------------------------------------------------------


def test_below_min_isr_who_leaves_stays_eligible_and_is_not_once_enough_are_in_sync() -> None:
    state = orders(1, 2, 3, configs=(("min.insync.replicas", "2"),))
    state, [record], _ = ask(state, isr=(1, 2))
    assert record.eligible_leader_replicas is None, "two are enough"
    state, [record], _ = ask(state, isr=(1,))
    assert (record.isr, record.eligible_leader_replicas) == ([1], [2])
    state, [record], _ = ask(state, isr=(1, 3))
    assert (record.isr, record.eligible_leader_replicas) == ([1, 3], [])


def test_a_partition_named_twice_changes_twice_only_if_the_second_knows_of_the_first() -> None:
    state = orders(1, 2, 3)
    first = isr_change(state, "orders", 0, isr=(1, 2))
    second = first._replace(isr=first.isr[:1])
    event = AlterPartition(1, state.image.brokers[1].epoch, (first, second))
    _, records, results = decide(state, event)
    assert [result.error for result in results] == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]
    assert len(records) == 1
    _, records, results = decide(state, event._replace(changes=(first, second._replace(partition_epoch=1))))
    assert [record.isr for record in records] == [[1, 2], [1]]
