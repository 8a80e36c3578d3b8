"""A client asks for elections: preferred leaders come back, and unclean ones take whoever lives."""

from __future__ import annotations

from typing import Any

from pykafka_broker.cluster.image import LeaderRecoveryState, PartitionRegistration, ResourceType
from pykafka_broker.controller.core.events import (
    BalanceLeaders,
    ConfigChange,
    CreateTopics,
    ElectionType,
    ElectLeaders,
    ElectUncleanLeaders,
    EventError,
    IncrementalAlterConfigs,
    NewTopic,
    PartitionResult,
    TopicPartitions,
    TopicResult,
)
from pykafka_broker.controller.core.requested_elections import (
    MAX_ELECTIONS_PER_ROUND,
    ElectionTimer,
    election_event,
    first_timers,
)
from pykafka_broker.controller.core.state import ControllerState
from pykafka_broker.machine.step import SetTimer
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records import metadata as m
from tests.controller.deciding import (
    NOW_MS,
    a_cluster,
    alter_partition,
    decide,
    fence,
    stepped,
    unfence,
    uuid,
)

ORDERS = uuid(100)
PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN
NOT_NEEDED = ErrorCode.ELECTION_NOT_NEEDED
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def orders(
    *assignments: tuple[int, ...],
    brokers: tuple[int, ...] = (1, 2, 3),
    configs: tuple[tuple[str, str], ...] = (),
) -> ControllerState:
    """A topic whose partitions have these replicas, on brokers that live."""
    topic = NewTopic("orders", ORDERS, assignments=tuple(enumerate(assignments)), configs=configs)
    state, _, [result] = decide(a_cluster(*brokers), CreateTopics((topic,)))
    assert result.error is ErrorCode.NONE, result
    return state


def partition(state: ControllerState, index: int = 0) -> PartitionRegistration:
    return state.image.topics["orders"].partitions[index]


def elect(
    state: ControllerState, election_type: ElectionType, *partitions: int, topic: str = "orders"
) -> tuple[ControllerState, tuple[Any, ...], Any]:
    return decide(state, ElectLeaders(election_type, (TopicPartitions(topic, partitions),)))


def led_by_another() -> ControllerState:
    """Broker 1 is preferred, was away, and is in sync again."""
    state = unfence(fence(orders((1, 2, 3)), 1), 1)
    assert partition(state).leader == 2
    return alter_partition(state, "orders", 0, isr=(2, 3, 1))


def test_the_preferred_leader_comes_back_when_it_is_asked_for() -> None:
    state, [record], [result] = elect(led_by_another(), PREFERRED, 0)
    assert result == TopicResult("orders", (PartitionResult(0),))
    assert record == m.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=1)
    assert (partition(state).leader, partition(state).isr) == (1, (2, 3, 1))


def test_a_preferred_leader_that_is_not_in_sync_does_not_lead() -> None:
    state = unfence(fence(orders((1, 2, 3)), 1), 1)
    after, records, [result] = elect(state, PREFERRED, 0)
    error = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert result.partitions == (PartitionResult(0, error, error.message),)
    assert (after, records) == (state, ())


def test_a_partition_with_the_right_leader_needs_no_election() -> None:
    state = orders((1, 2))
    for election_type in (PREFERRED, UNCLEAN):
        _, records, [result] = elect(state, election_type, 0)
        assert (records, result.partitions) == ((), (PartitionResult(0, NOT_NEEDED, NOT_NEEDED.message),))
    assert elect(led_by_another(), UNCLEAN, 0)[2][0].partitions[0].error is NOT_NEEDED


def test_an_unclean_election_takes_a_replica_that_lives_and_marks_it_as_recovering() -> None:
    state = unfence(fence(fence(orders((1, 2)), 2), 1), 2)
    assert (partition(state).leader, partition(state).elr) == (-1, (1,))

    state, [record], [result] = elect(state, UNCLEAN, 0)

    assert result.partitions == (PartitionResult(0),)
    assert record == m.PartitionChangeRecord(
        partition_id=0,
        topic_id=ORDERS,
        leader=2,
        isr=[2],
        eligible_leader_replicas=[],
        last_known_elr=[],
        leader_recovery_state=LeaderRecoveryState.RECOVERING,
    )


def test_no_unclean_election_brings_back_who_is_not_there() -> None:
    state = fence(fence(orders((1, 2)), 2), 1)
    after, records, [result] = elect(state, UNCLEAN, 0)
    error = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert (after, records, result.partitions) == (state, (), (PartitionResult(0, error, error.message),))


def test_what_is_not_there_is_refused_one_by_one() -> None:
    state = orders((1,))
    assert elect(state, PREFERRED, 7, 0)[2][0].partitions == (
        PartitionResult(7, UNKNOWN, "No such partition as orders-7"),
        PartitionResult(0, NOT_NEEDED, NOT_NEEDED.message),
    )
    assert elect(state, PREFERRED, 0, topic="none")[2] == (
        TopicResult("none", (PartitionResult(0, UNKNOWN, "No such topic as none"),)),
    )


def test_of_all_partitions_only_those_that_need_an_election_are_answered() -> None:
    state = orders((1, 2), (2, 1), (1, 2))
    state = unfence(fence(state, 1), 1)
    state = alter_partition(state, "orders", 0, isr=(2, 1))
    _, records, results = decide(state, ElectLeaders(PREFERRED, None))
    error = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert results == (TopicResult("orders", (PartitionResult(0), PartitionResult(2, error, error.message))),)
    assert [(record.partition_id, record.leader) for record in records] == [(0, 1)]


def test_an_election_type_that_there_is_not_is_refused_as_a_whole() -> None:
    answer = decide(orders((1,)), ElectLeaders(7, None))[2]
    assert answer == EventError(ErrorCode.INVALID_REQUEST, "Unknown election type 7")


# -- from time to time -------------------------------------------------------------------------------------


def test_the_controller_brings_preferred_leaders_back_by_itself() -> None:
    state = led_by_another()
    step = stepped(state, BalanceLeaders())
    [record] = step.records
    assert isinstance(record, m.PartitionChangeRecord)
    assert (record.partition_id, record.leader) == (0, 1)
    assert step.effects == (SetTimer(ElectionTimer.BALANCE_LEADERS, NOW_MS + 300_000),)

    idle = stepped(step.state, BalanceLeaders())
    assert (idle.records, idle.state) == ((), step.state)


def test_where_balancing_is_off_no_leader_moves() -> None:
    state = led_by_another()
    state = state._replace(rules=state.rules._replace(leader_balance_interval_ms=None))
    step = stepped(state, BalanceLeaders())
    assert (step.records, step.effects) == ((), ())
    assert [timer.key for timer in first_timers(state.rules, NOW_MS)] == [ElectionTimer.ELECT_UNCLEAN_LEADERS]


def test_an_unclean_election_that_becomes_allowed_is_held_at_the_next_look() -> None:
    state = unfence(fence(fence(orders((1, 2)), 2), 1), 2)
    assert stepped(state, ElectUncleanLeaders()).records == ()

    allowed = ConfigChange(ResourceType.TOPIC, "orders", (("unclean.leader.election.enable", 0, "true"),))
    state, _, _ = decide(state, IncrementalAlterConfigs((allowed,)))
    step = stepped(state, ElectUncleanLeaders())

    [record] = step.records
    assert isinstance(record, m.PartitionChangeRecord)
    assert (record.leader, record.isr) == (2, [2])
    assert step.effects == (SetTimer(ElectionTimer.ELECT_UNCLEAN_LEADERS, NOW_MS + 300_000),)


def test_a_round_is_limited_and_the_next_one_follows_at_once() -> None:
    partitions = MAX_ELECTIONS_PER_ROUND + 1
    state = orders(*[(1, 2)] * partitions)
    state = unfence(fence(state, 1), 1)
    registered = state.image.topics["orders"].partitions
    assert isinstance(registered, dict)
    for index in range(partitions):
        registered[index] = partition(state, index)._replace(isr=(2, 1))

    step = stepped(state, BalanceLeaders())
    assert len(step.records) == MAX_ELECTIONS_PER_ROUND
    assert step.effects == (SetTimer(ElectionTimer.BALANCE_LEADERS, NOW_MS),)
    step = stepped(step.state, election_event(ElectionTimer.BALANCE_LEADERS))
    assert len(step.records) == 1


def test_a_new_controller_looks_for_the_first_time_after_an_interval() -> None:
    assert first_timers(orders((1,)).rules, NOW_MS) == (
        SetTimer(ElectionTimer.BALANCE_LEADERS, NOW_MS + 300_000),
        SetTimer(ElectionTimer.ELECT_UNCLEAN_LEADERS, NOW_MS + 300_000),
    )
    unclean = election_event(ElectionTimer.ELECT_UNCLEAN_LEADERS)
    assert unclean == ElectUncleanLeaders()
