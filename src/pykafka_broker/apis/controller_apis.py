"""Everything that a listener of controllers serves (Kafka's ControllerApis), in the order of API keys.

A node without such a listener does not import this file, nor the handlers that only it lists.
"""

from __future__ import annotations

from pykafka_broker.apis.add_raft_voter import add_raft_voter
from pykafka_broker.apis.allocate_producer_ids import allocate_producer_ids
from pykafka_broker.apis.alter_client_quotas import alter_client_quotas
from pykafka_broker.apis.alter_configs import alter_configs_on_controller
from pykafka_broker.apis.alter_partition import alter_partition
from pykafka_broker.apis.alter_partition_reassignments import alter_partition_reassignments
from pykafka_broker.apis.alter_user_scram_credentials import alter_user_scram_credentials
from pykafka_broker.apis.api import Api
from pykafka_broker.apis.api_versions import api_versions
from pykafka_broker.apis.assign_replicas_to_dirs import assign_replicas_to_dirs
from pykafka_broker.apis.begin_quorum_epoch import begin_quorum_epoch
from pykafka_broker.apis.broker_heartbeat import broker_heartbeat
from pykafka_broker.apis.broker_registration import broker_registration
from pykafka_broker.apis.controller_registration import controller_registration
from pykafka_broker.apis.create_acls import create_acls
from pykafka_broker.apis.create_delegation_token import create_delegation_token_on_controller
from pykafka_broker.apis.create_partitions import create_partitions
from pykafka_broker.apis.create_topics import create_topics
from pykafka_broker.apis.delete_acls import delete_acls
from pykafka_broker.apis.delete_topics import delete_topics
from pykafka_broker.apis.describe_acls import describe_acls
from pykafka_broker.apis.describe_cluster import describe_controllers
from pykafka_broker.apis.describe_configs import describe_configs
from pykafka_broker.apis.describe_quorum import describe_quorum
from pykafka_broker.apis.elect_leaders import elect_leaders
from pykafka_broker.apis.end_quorum_epoch import end_quorum_epoch
from pykafka_broker.apis.envelope import envelope
from pykafka_broker.apis.expire_delegation_token import expire_delegation_token_on_controller
from pykafka_broker.apis.fetch_from_controller import fetch_from_controller
from pykafka_broker.apis.fetch_snapshot import fetch_snapshot
from pykafka_broker.apis.incremental_alter_configs import incremental_alter_configs_on_controller
from pykafka_broker.apis.list_partition_reassignments import list_partition_reassignments
from pykafka_broker.apis.ports.controller import ControllerPorts
from pykafka_broker.apis.remove_raft_voter import remove_raft_voter
from pykafka_broker.apis.renew_delegation_token import renew_delegation_token_on_controller
from pykafka_broker.apis.sasl_authenticate import sasl_authenticate
from pykafka_broker.apis.sasl_handshake import sasl_handshake
from pykafka_broker.apis.unregister_broker import unregister_broker
from pykafka_broker.apis.update_features import update_features
from pykafka_broker.apis.update_raft_voter import update_raft_voter
from pykafka_broker.apis.vote import vote

#: The APIs whose requests a broker may forward for its clients.
FORWARDED: tuple[Api[ControllerPorts], ...] = (
    create_topics,
    delete_topics,
    create_acls,
    delete_acls,
    alter_configs_on_controller,
    create_partitions,
    create_delegation_token_on_controller,
    renew_delegation_token_on_controller,
    expire_delegation_token_on_controller,
    elect_leaders,
    incremental_alter_configs_on_controller,
    alter_partition_reassignments,
    list_partition_reassignments,
    alter_client_quotas,
    alter_user_scram_credentials,
    describe_quorum,
    update_features,
    unregister_broker,
    add_raft_voter,
    remove_raft_voter,
)

CONTROLLER_APIS: tuple[Api[ControllerPorts], ...] = (
    fetch_from_controller,
    sasl_handshake,
    api_versions,
    create_topics,
    delete_topics,
    describe_acls,
    create_acls,
    delete_acls,
    describe_configs,
    alter_configs_on_controller,
    sasl_authenticate,
    create_partitions,
    create_delegation_token_on_controller,
    renew_delegation_token_on_controller,
    expire_delegation_token_on_controller,
    elect_leaders,
    incremental_alter_configs_on_controller,
    alter_partition_reassignments,
    list_partition_reassignments,
    alter_client_quotas,
    alter_user_scram_credentials,
    vote,
    begin_quorum_epoch,
    end_quorum_epoch,
    describe_quorum,
    alter_partition,
    update_features,
    envelope(FORWARDED),
    fetch_snapshot,
    describe_controllers,
    broker_registration,
    broker_heartbeat,
    unregister_broker,
    allocate_producer_ids,
    controller_registration,
    assign_replicas_to_dirs,
    add_raft_voter,
    remove_raft_voter,
    update_raft_voter,
)
