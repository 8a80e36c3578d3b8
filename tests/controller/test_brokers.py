"""Brokers come, live and go. Restarts, clean or not, leave the records that Apache Kafka 4.3.1 leaves."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.cluster.features import NODE_FEATURES
from pykafka_broker.cluster.image import (
    FeatureRange,
    LeaderRecoveryState,
    PartitionRegistration,
    RegisteredEndpoint,
    replay,
)
from pykafka_broker.controller.core.brokers import activate
from pykafka_broker.controller.core.events import (
    AllocateProducerIds,
    CreateTopics,
    EventError,
    ExpireSessions,
    HeartbeatResult,
    HeartbeatsEnded,
    NewTopic,
    ProducerIdBlock,
    RegisterController,
    UnregisterBroker,
)
from pykafka_broker.controller.core.state import ControllerState
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records import metadata as m
from tests.controller.deciding import (
    NOW_MS,
    a_cluster,
    an_empty_cluster,
    decide,
    directory,
    fence,
    heartbeat,
    register,
    registration,
    stepped,
    unfence,
    uuid,
)

SESSION_MS = 9_000
DUPLICATE = ErrorCode.DUPLICATE_BROKER_REGISTRATION


def with_orders(state: ControllerState, *replicas: int) -> ControllerState:
    topic = NewTopic("orders", uuid(100), assignments=((0, replicas),))
    state, _, [result] = decide(state, CreateTopics((topic,)))
    assert result.error is ErrorCode.NONE, result
    return state


def orders(state: ControllerState) -> PartitionRegistration:
    return state.image.topics["orders"].partitions[0]


# -- registration ------------------------------------------------------------------------------------------


def test_a_brokers_epoch_is_the_offset_of_its_registration_and_it_starts_fenced() -> None:
    state = an_empty_cluster()
    after, [record], epoch = decide(state, registration(1, rack="a"))
    broker = after.image.brokers[1]
    assert epoch == broker.epoch == broker.record_offset == state.next_offset
    assert (broker.fenced, broker.rack, broker.directories) == (True, "a", (directory(1),))
    assert broker.listeners == {"PLAINTEXT": RegisteredEndpoint("broker1", 9092)}
    assert record.features == [
        m.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in NODE_FEATURES.items()
    ]


def test_the_same_incarnation_amends_its_registration_and_keeps_its_epoch() -> None:
    state = a_cluster(1)
    epoch = state.image.brokers[1].epoch
    moved = {"PLAINTEXT": RegisteredEndpoint("elsewhere", 9092)}
    state, _, answer = decide(state, registration(1, listeners=moved))
    broker = state.image.brokers[1]
    assert (answer, broker.epoch, broker.fenced, broker.listeners) == (epoch, epoch, False, moved)


@pytest.mark.parametrize(
    "level, told", [(16, []), (29, ["log_dirs"]), (30, ["log_dirs", "cordoned_log_dirs"])]
)
def test_a_heartbeat_changes_the_registration_only_as_the_metadata_version_can_say(
    level: int, told: list[str]
) -> None:
    """At 3.9 every start noted that no directory was cordoned, and Apache Kafka did not start on that log."""
    level_record = m.FeatureLevelRecord(name="metadata.version", feature_level=level)
    empty = an_empty_cluster()
    image = replay(empty.image, [level_record], offset=empty.next_offset, epoch=1)
    state = register(empty._replace(image=image), 1, directories=(directory(1), directory(2)))
    state = unfence(state, 1)

    step = stepped(
        state,
        heartbeat(state, 1, offline_directories=(directory(1),), cordoned_directories=(directory(2),)),
    )

    names = ("log_dirs", "cordoned_log_dirs")
    changes = [record for record in step.records if isinstance(record, m.BrokerRegistrationChangeRecord)]
    assert [name for record in changes for name in names if getattr(record, name)] == told


@pytest.mark.parametrize(
    "fields, error, message",
    [
        (
            {"cluster_id": "other"},
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            "Expected cluster ID 4L6g3nShT-eMCtK--X86sw, but got cluster ID other",
        ),
        ({"directories": ()}, ErrorCode.INVALID_REGISTRATION, "No directories specified in request"),
        ({"directories": (uuid(2),)}, ErrorCode.INVALID_REGISTRATION, "Reserved directory ID in request"),
        (
            {"directories": (uuid(500), uuid(500))},
            ErrorCode.INVALID_REGISTRATION,
            "Duplicate directory ID in request",
        ),
        (
            {"directories": (directory(1),)},
            ErrorCode.INVALID_REGISTRATION,
            "Broker 1 is already registered with directory AAAAAAAAAAAAAAAAAAAD6Q",
        ),
        (
            {"features": {}},
            ErrorCode.INVALID_REGISTRATION,
            "Request features do not contain 'metadata.version'",
        ),
        (
            {"features": {**NODE_FEATURES, "metadata.version": FeatureRange(7, 25)}},
            ErrorCode.UNSUPPORTED_VERSION,
            "Unable to register because the broker does not support finalized version 30 of "
            "metadata.version. The broker wants a version between 7 and 25, inclusive.",
        ),
    ],
)
def test_a_registration_that_does_not_fit_is_refused(
    fields: dict[str, Any], error: ErrorCode, message: str
) -> None:
    state = a_cluster(1)
    after, records, answer = decide(state, registration(2, **fields))
    assert (after, records, answer) == (state, (), EventError(error, message))


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"directories": (uuid(500),)},
        {"directories": (directory(2), uuid(500))},
        {"listeners": {"PLAINTEXT": RegisteredEndpoint("elsewhere", 9092)}},
    ],
)
def test_a_second_broker_with_the_same_id_waits_until_the_first_has_fallen_silent(
    elsewhere: dict[str, Any],
) -> None:
    state = activate(a_cluster(2), NOW_MS)
    twin = registration(2, incarnation_id=uuid(7), **elsewhere)
    assert decide(state, twin)[2].error is DUPLICATE
    after, _, epoch = decide(state, twin, NOW_MS + SESSION_MS)
    assert after.image.brokers[2].epoch == epoch


def test_a_broker_at_the_same_place_has_started_again_when_no_other_sends_heartbeats() -> None:
    state = a_cluster(2)
    before = state.image.brokers[2]
    assert decide(state, registration(2, incarnation_id=uuid(7)))[2].error is DUPLICATE
    state, _, _ = decide(state, HeartbeatsEnded(2))
    after, _, epoch = decide(state, registration(2, incarnation_id=uuid(7)))
    assert after.image.brokers[2].epoch == epoch > before.epoch
    assert (before.fenced, after.image.brokers[2].fenced) == (False, True)
    late = heartbeat(state, 2)
    assert decide(after, late)[2].error is ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_that_was_stopped_in_good_order_comes_back_at_once() -> None:
    state = a_cluster(2)
    state, _, answer = decide(state, heartbeat(state, 2, want_shutdown=True))
    assert answer.should_shut_down is True
    after, _, epoch = decide(state, registration(2, incarnation_id=uuid(7)))
    assert after.image.brokers[2].epoch == epoch


def test_the_controllers_own_broker_comes_back_at_once_for_its_directory_is_locked() -> None:
    state = a_cluster(1, node_id=1)
    after, _, _ = decide(state, registration(1, incarnation_id=uuid(7)))
    assert after.image.brokers[1].incarnation_id == uuid(7)


def test_a_broker_is_unfenced_once_it_has_seen_its_own_registration() -> None:
    state = register(an_empty_cluster(), 1)
    offset = state.image.brokers[1].record_offset
    behind, _, answer = decide(state, heartbeat(state, 1, metadata_offset=offset - 1))
    assert answer == HeartbeatResult(is_caught_up=False, is_fenced=True, should_shut_down=False)
    assert behind.image == state.image
    state, [record], answer = decide(state, heartbeat(state, 1))
    assert answer == HeartbeatResult(is_caught_up=True, is_fenced=False, should_shut_down=False)
    epoch = state.image.brokers[1].epoch
    assert record == m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=-1)


@pytest.mark.parametrize(
    "broker_id, epoch_change, message",
    [
        (1, 5, "Expected broker epoch {known}, but got broker epoch {given}"),
        (9, 0, "No broker registration found for broker id 9"),
    ],
)
def test_an_earlier_life_of_a_broker_may_not_ask_for_anything(
    broker_id: int, epoch_change: int, message: str
) -> None:
    state = a_cluster(1)
    known = state.image.brokers[1].epoch
    epoch = known + epoch_change
    stale = EventError(ErrorCode.STALE_BROKER_EPOCH, message.format(known=known, given=epoch))
    beat = heartbeat(state, 1)._replace(broker_id=broker_id, broker_epoch=epoch)
    assert decide(state, beat)[1:] == ((), stale)
    assert decide(state, AllocateProducerIds(broker_id, epoch))[1:] == ((), stale)


# -- leaving and coming back ---------------------------------------------------------------------------------


def test_a_single_node_stops_in_order_and_leads_again_in_a_new_epoch() -> None:
    state = with_orders(a_cluster(1), 1)
    epoch = state.image.brokers[1].epoch

    state, records, answer = decide(state, heartbeat(state, 1, want_shutdown=True))
    assert answer.should_shut_down is False
    assert records == (
        m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, in_controlled_shutdown=1),
        m.PartitionChangeRecord(
            partition_id=0,
            topic_id=uuid(100),
            isr=[],
            leader=-1,
            eligible_leader_replicas=[1],
            last_known_elr=[1],
        ),
    )
    state, records, answer = decide(state, heartbeat(state, 1, want_shutdown=True))
    assert answer == HeartbeatResult(is_caught_up=True, is_fenced=True, should_shut_down=True)
    assert records == (m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=1),)

    state, [_registration], _ = decide(
        state, registration(1, incarnation_id=uuid(7), previous_broker_epoch=epoch)
    )
    state, records, _ = decide(state, heartbeat(state, 1))
    assert records[1:] == (
        m.PartitionChangeRecord(
            partition_id=0,
            topic_id=uuid(100),
            isr=[1],
            leader=1,
            eligible_leader_replicas=[],
            last_known_elr=[],
        ),
    )
    assert (orders(state).leader_epoch, orders(state).leader_recovery_state) == (
        2,
        LeaderRecoveryState.RECOVERED,
    )


def test_a_single_node_that_crashed_leads_again_and_is_marked_as_recovering() -> None:
    state = with_orders(a_cluster(1), 1)

    state, records, _ = decide(state, registration(1, incarnation_id=uuid(7)))
    assert records[0] == m.PartitionChangeRecord(
        partition_id=0, topic_id=uuid(100), isr=[], leader=-1, last_known_elr=[1]
    )
    state, records, _ = decide(state, heartbeat(state, 1))
    assert records[1:] == (
        m.PartitionChangeRecord(
            partition_id=0,
            topic_id=uuid(100),
            isr=[1],
            leader=1,
            leader_recovery_state=LeaderRecoveryState.RECOVERING,
            last_known_elr=[],
        ),
    )


def test_when_a_leader_is_fenced_the_next_in_sync_replica_leads() -> None:
    state = with_orders(a_cluster(1, 2, 3), 2, 3, 1)
    state, [change, fenced], _ = decide(state, heartbeat(state, 2, want_fence=True))
    assert change == m.PartitionChangeRecord(partition_id=0, topic_id=uuid(100), isr=[3, 1], leader=3)
    assert (fenced.broker_id, fenced.fenced) == (2, 1)
    assert orders(state).leader_epoch == 1


def test_a_follower_that_leaves_costs_no_leader_epoch() -> None:
    state = fence(with_orders(a_cluster(1, 2), 1, 2), 2)
    partition = orders(state)
    assert (partition.isr, partition.leader, partition.leader_epoch, partition.partition_epoch) == (
        (1,),
        1,
        0,
        1,
    )


def test_the_last_one_in_sync_stays_eligible_and_the_others_do_not_take_over() -> None:
    state = with_orders(a_cluster(1, 2), 1, 2)
    state = fence(fence(state, 2), 1)
    assert (orders(state).isr, orders(state).elr, orders(state).leader) == ((), (1,), -1)

    assert orders(unfence(state, 2)).leader == -1
    state = unfence(state, 1)
    assert (orders(state).isr, orders(state).elr, orders(state).leader) == ((1,), (), 1)


def test_unclean_election_takes_any_live_replica_where_it_is_allowed() -> None:
    topic = NewTopic(
        "orders",
        uuid(100),
        assignments=((0, (1, 2)),),
        configs=(("unclean.leader.election.enable", "true"),),
    )
    state, _, _ = decide(a_cluster(1, 2), CreateTopics((topic,)))
    state = fence(fence(state, 2), 1)
    partition = orders(unfence(state, 2))
    assert (partition.isr, partition.elr, partition.leader) == ((2,), (), 2)
    assert partition.leader_recovery_state == LeaderRecoveryState.RECOVERING


def test_without_elr_the_last_one_in_sync_keeps_its_place_in_the_set() -> None:
    state = with_orders(a_cluster(1), 1)
    features = {"metadata.version": 30}
    state = fence(type(state)(state.image._replace(features=features), state.rules, state.sessions), 1)
    assert (orders(state).isr, orders(state).elr, orders(state).leader) == ((1,), (), -1)


def test_a_directory_that_fails_takes_its_partitions_along() -> None:
    state = with_orders(a_cluster(1, 2), 2, 1)
    state = register(state, 2, directories=(directory(2), uuid(500)))
    beat = heartbeat(state, 2, offline_directories=(directory(2),))

    state, _, _ = decide(state, beat)

    assert state.image.brokers[2].directories == (uuid(500),)
    assert (orders(state).isr, orders(state).leader) == ((1,), 1)
    assert decide(state, beat._replace(metadata_offset=state.image.offset))[1] == (), "said once is enough"


def test_controlled_shutdown_waits_until_the_other_brokers_know() -> None:
    state = with_orders(a_cluster(1, 2), 1, 2)
    behind = state.image.offset
    state, _, answer = decide(state, heartbeat(state, 1, want_shutdown=True))
    assert (answer.should_shut_down, orders(state).leader) == (False, 2)

    state, _, _ = decide(state, heartbeat(state, 2, metadata_offset=behind))
    state, _, answer = decide(state, heartbeat(state, 1, want_shutdown=True))
    assert answer.should_shut_down is False

    state, _, _ = decide(state, heartbeat(state, 2))
    _, _, answer = decide(state, heartbeat(state, 1, want_shutdown=True))
    assert answer.should_shut_down is True


def test_silent_brokers_are_fenced_one_at_a_time_the_longest_silent_first() -> None:
    state = activate(a_cluster(1, 2, 3, node_id=1), NOW_MS)
    assert sorted(state.sessions) == [2, 3], "the controller's own broker is not watched"
    state, _, _ = decide(state, heartbeat(state, 3), NOW_MS + 1)

    assert decide(state, ExpireSessions(), NOW_MS + SESSION_MS - 1)[1] == ()
    state, _, _ = decide(state, ExpireSessions(), NOW_MS + SESSION_MS + 1)
    assert [b.fenced for b in state.image.brokers.values()] == [False, True, False]
    state, _, _ = decide(state, ExpireSessions(), NOW_MS + SESSION_MS + 1)
    assert [b.fenced for b in state.image.brokers.values()] == [False, True, True]


def test_an_unregistered_broker_leaves_every_set() -> None:
    state, records, answer = decide(with_orders(a_cluster(1, 2), 1, 2), UnregisterBroker(1))
    assert (answer, list(state.image.brokers), orders(state).isr, orders(state).leader) == (
        None,
        [2],
        (2,),
        2,
    )
    assert isinstance(records[-1], m.UnregisterBrokerRecord)
    unknown = EventError(ErrorCode.BROKER_ID_NOT_REGISTERED, "Broker ID 1 is not currently registered")
    assert decide(state, UnregisterBroker(1))[2] == unknown


def test_a_controller_says_where_it_is_and_what_it_can_do() -> None:
    listeners = {"CONTROLLER": RegisteredEndpoint("here", 9093)}
    state, _, _ = decide(an_empty_cluster(), RegisterController(1, uuid(9), listeners, NODE_FEATURES))
    assert state.image.controllers[1].listeners == listeners
    assert state.image.controllers[1].features == NODE_FEATURES


def test_producer_ids_are_handed_out_by_the_thousand_and_never_twice() -> None:
    state = a_cluster(1, 2)
    ask = [AllocateProducerIds(broker_id, state.image.brokers[broker_id].epoch) for broker_id in (1, 2)]
    state, [record], first = decide(state, ask[0])
    assert record.next_producer_id == 1_000
    state, _, second = decide(state, ask[1])
    assert (first, second) == (ProducerIdBlock(0, 1_000), ProducerIdBlock(1_000, 1_000))
    assert state.image.next_producer_id == 2_000


# -- several at once ---------------------------------------------------------------------------------------


def test_brokers_that_stop_together_do_not_wait_for_one_another() -> None:
    state = with_orders(a_cluster(1, 2, 3, node_id=9), 1, 2, 3)
    topic = NewTopic("payments", uuid(101), assignments=((0, (2, 1, 3)),))
    state, _, _ = decide(state, CreateTopics((topic,)))
    for broker_id in (1, 2):
        state, _, answer = decide(state, heartbeat(state, broker_id, want_shutdown=True))
        assert answer.should_shut_down is False
    assert orders(state).leader == 3

    waiting, _, answer = decide(state, heartbeat(state, 1, want_shutdown=True))
    assert answer.should_shut_down is False, "broker 3 does not know yet that it leads"
    state, _, _ = decide(waiting, heartbeat(waiting, 3))
    for broker_id in (1, 2):
        state, _, answer = decide(state, heartbeat(state, broker_id, want_shutdown=True, metadata_offset=0))
        assert answer == HeartbeatResult(is_caught_up=False, is_fenced=True, should_shut_down=True)


def test_a_broker_that_stopped_in_order_may_get_new_replicas_again_before_it_is_back() -> None:
    state = a_cluster(1, 2, 3)
    for _ in range(2):
        state, _, answer = decide(state, heartbeat(state, 3, want_shutdown=True))
    assert answer.should_shut_down is True
    topic = NewTopic("orders", uuid(100), num_partitions=1, replication_factor=3)
    state, _, [result] = decide(state, CreateTopics((topic,)))
    assert result.error is ErrorCode.NONE
    assert sorted(orders(state).replicas) == [1, 2, 3]
    assert sorted(orders(state).isr) == [1, 2]


def test_a_broker_that_is_about_to_stop_gets_no_new_replicas() -> None:
    state = with_orders(a_cluster(1, 2, 3), 3, 1)
    state, _, answer = decide(state, heartbeat(state, 3, want_shutdown=True))
    assert answer.should_shut_down is False
    topic = NewTopic("more", uuid(101), num_partitions=1, replication_factor=3)
    _, _, [result] = decide(state, CreateTopics((topic,)))
    assert result.error is ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_broker_that_comes_back_without_a_directory_does_not_lead_what_is_in_it() -> None:
    state = with_orders(a_cluster(1, 2), 1)
    state = register(state, 1, directories=(directory(1), uuid(500)))
    state = fence(state, 1)
    state, _, _ = decide(state, heartbeat(state, 1, offline_directories=(directory(1),)))
    assert (state.image.brokers[1].fenced, orders(state).leader, orders(state).elr) == (False, -1, (1,))


def test_before_3_7_the_log_says_nothing_of_directories() -> None:
    level_record = m.FeatureLevelRecord(name="metadata.version", feature_level=16)
    empty = an_empty_cluster()
    image = replay(empty.image, [level_record], offset=empty.next_offset, epoch=1)
    state = register(empty._replace(image=image), 1)
    state = unfence(state, 1)
    state = with_orders(state, 1)
    assert (state.image.brokers[1].directories, orders(state).directories) == ((), ())
