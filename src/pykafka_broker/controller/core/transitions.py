"""The controller core: one event in, the metadata records to append and the answer out.

`transition` is pure. It decides on the newest state, committed or not. Its `Step` has the state after the new
records; a shell that fails to append them keeps the old state. Each concern has its rules in a file: topics,
elections, requested_elections, reassignments, alter_partition, configs, client_quotas, scram_credentials,
acls, delegation_tokens, brokers, directories, producer_id_blocks, feature_control.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pykafka_broker.cluster.image import replay
from pykafka_broker.controller.core import (
    acls,
    alter_partition,
    brokers,
    client_quotas,
    configs,
    delegation_tokens,
    directories,
    early_fencing,
    events,
    feature_control,
    producer_id_blocks,
    reassignments,
    requested_elections,
    scram_credentials,
    topics,
)
from pykafka_broker.controller.core.state import ControllerState, Decision
from pykafka_broker.machine.step import Effect, Reply, Step
from pykafka_broker.protocol.errors import KafkaError


def _activate(state: ControllerState, _: events.Activate, moment: events.Moment) -> Decision:
    """Start a full session for each broker, and the timers of elections and of delegation tokens."""
    sessions = brokers.activate(state, moment.now_ms).sessions
    timers = (
        *requested_elections.first_timers(state.rules, moment.now_ms),
        *delegation_tokens.first_token_timers(state.rules, moment.now_ms),
    )
    return Decision(sessions=sessions, timers=timers)


#: The rules that decide on events at a moment.
TIMED_RULES: dict[type, Callable[[ControllerState, Any, events.Moment], Decision]] = {
    events.CreateTopics: topics.create_topics,
    events.CreatePartitions: topics.create_partitions,
    events.BalanceLeaders: requested_elections.balance_leaders,
    events.ElectUncleanLeaders: requested_elections.elect_unclean_leaders,
    events.CreateAcls: acls.create_acls,
    events.CreateToken: delegation_tokens.create_token,
    events.RenewToken: delegation_tokens.renew_token,
    events.ExpireToken: delegation_tokens.expire_token,
    events.RemoveExpiredTokens: delegation_tokens.remove_expired_tokens,
    events.RegisterBroker: brokers.register_broker,
    events.BrokerHeartbeat: brokers.heartbeat,
    events.ExpireSessions: brokers.expire_sessions,
    events.BrokerConnected: early_fencing.broker_connected,
    events.BrokerProbed: brokers.broker_probed,
    events.Activate: _activate,
}
#: The rules that need only the event.
RULES: dict[type, Callable[[ControllerState, Any], Decision]] = {
    events.DeleteTopics: topics.delete_topics,
    events.ElectLeaders: requested_elections.elect_leaders,
    events.AlterPartitionReassignments: reassignments.alter_partition_reassignments,
    events.AlterPartition: alter_partition.alter_partition,
    events.IncrementalAlterConfigs: configs.incremental_alter_configs,
    events.AlterConfigs: configs.alter_configs,
    events.AlterClientQuotas: client_quotas.alter_client_quotas,
    events.DeleteAcls: acls.delete_acls,
    events.AlterScramCredentials: scram_credentials.alter_scram_credentials,
    events.HeartbeatsEnded: early_fencing.heartbeats_ended,
    events.UnregisterBroker: brokers.unregister_broker,
    events.AssignReplicasToDirs: directories.assign_replicas_to_dirs,
    events.RegisterController: brokers.register_controller,
    events.AllocateProducerIds: producer_id_blocks.allocate_producer_ids,
    events.UpdateFeatures: feature_control.update_features,
}


def transition(state: ControllerState, asked: events.Asked) -> Step[ControllerState]:
    """Decide on an event. An event refused as a whole is answered with an `EventError`, without records."""
    (event, moment, token), before = asked, state
    try:
        timed = TIMED_RULES.get(type(event))
        decision = RULES[type(event)](state, event) if timed is None else timed(state, event, moment)
        records, result, sessions, timers = decision
    except KafkaError as error:
        records, result, sessions, timers = (), events.EventError(error.code, error.message), None, ()
    if records:
        image = replay(state.image, records, offset=state.next_offset, epoch=state.image.epoch)
        state = state._replace(image=image)
    if sessions is not None:
        state = state._replace(sessions=sessions)
    effects: tuple[Effect, ...] = timers if token is None else (Reply(token, result), *timers)
    if state.sessions is not before.sessions or isinstance(event, events.ExpireSessions):
        effects += brokers.watch_sessions(before, state)
    return Step(state, records, effects)
