"""Handlers: one file per Kafka API, named like its message file. `APIS` is everything that a listener of
brokers serves, `controller_apis.py` has the APIs of a listener of controllers. A handler in both uses only
the ports of both (`ports/administration.py`).
"""

from __future__ import annotations

from pykafka_broker.apis.add_offsets_to_txn import add_offsets_to_txn
from pykafka_broker.apis.add_partitions_to_txn import add_partitions_to_txn
from pykafka_broker.apis.add_raft_voter import add_raft_voter
from pykafka_broker.apis.alter_client_quotas import alter_client_quotas
from pykafka_broker.apis.alter_configs import alter_configs
from pykafka_broker.apis.alter_partition_reassignments import alter_partition_reassignments
from pykafka_broker.apis.alter_replica_log_dirs import alter_replica_log_dirs
from pykafka_broker.apis.alter_share_group_offsets import alter_share_group_offsets
from pykafka_broker.apis.alter_user_scram_credentials import alter_user_scram_credentials
from pykafka_broker.apis.api import Api
from pykafka_broker.apis.api_versions import api_versions
from pykafka_broker.apis.consumer_group_describe import consumer_group_describe
from pykafka_broker.apis.consumer_group_heartbeat import consumer_group_heartbeat
from pykafka_broker.apis.create_acls import create_acls
from pykafka_broker.apis.create_delegation_token import create_delegation_token
from pykafka_broker.apis.create_partitions import create_partitions
from pykafka_broker.apis.create_topics import create_topics
from pykafka_broker.apis.delete_acls import delete_acls
from pykafka_broker.apis.delete_groups import delete_groups
from pykafka_broker.apis.delete_records import delete_records
from pykafka_broker.apis.delete_share_group_offsets import delete_share_group_offsets
from pykafka_broker.apis.delete_share_group_state import delete_share_group_state
from pykafka_broker.apis.delete_topics import delete_topics
from pykafka_broker.apis.describe_acls import describe_acls
from pykafka_broker.apis.describe_client_quotas import describe_client_quotas
from pykafka_broker.apis.describe_cluster import describe_cluster
from pykafka_broker.apis.describe_configs import describe_configs
from pykafka_broker.apis.describe_delegation_token import describe_delegation_token
from pykafka_broker.apis.describe_groups import describe_groups
from pykafka_broker.apis.describe_log_dirs import describe_log_dirs
from pykafka_broker.apis.describe_producers import describe_producers
from pykafka_broker.apis.describe_quorum import describe_quorum
from pykafka_broker.apis.describe_share_group_offsets import describe_share_group_offsets
from pykafka_broker.apis.describe_topic_partitions import describe_topic_partitions
from pykafka_broker.apis.describe_transactions import describe_transactions
from pykafka_broker.apis.describe_user_scram_credentials import describe_user_scram_credentials
from pykafka_broker.apis.elect_leaders import elect_leaders
from pykafka_broker.apis.end_txn import end_txn
from pykafka_broker.apis.expire_delegation_token import expire_delegation_token
from pykafka_broker.apis.fetch import fetch
from pykafka_broker.apis.find_coordinator import find_coordinator
from pykafka_broker.apis.get_telemetry_subscriptions import get_telemetry_subscriptions
from pykafka_broker.apis.heartbeat import heartbeat
from pykafka_broker.apis.incremental_alter_configs import incremental_alter_configs
from pykafka_broker.apis.init_producer_id import init_producer_id
from pykafka_broker.apis.initialize_share_group_state import initialize_share_group_state
from pykafka_broker.apis.join_group import join_group
from pykafka_broker.apis.leave_group import leave_group
from pykafka_broker.apis.list_config_resources import list_config_resources
from pykafka_broker.apis.list_groups import list_groups
from pykafka_broker.apis.list_offsets import list_offsets
from pykafka_broker.apis.list_partition_reassignments import list_partition_reassignments
from pykafka_broker.apis.list_transactions import list_transactions
from pykafka_broker.apis.metadata import metadata
from pykafka_broker.apis.offset_commit import offset_commit
from pykafka_broker.apis.offset_delete import offset_delete
from pykafka_broker.apis.offset_fetch import offset_fetch
from pykafka_broker.apis.offset_for_leader_epoch import offset_for_leader_epoch
from pykafka_broker.apis.ports.node import NodePorts
from pykafka_broker.apis.produce import produce
from pykafka_broker.apis.push_telemetry import push_telemetry
from pykafka_broker.apis.read_share_group_state import read_share_group_state
from pykafka_broker.apis.read_share_group_state_summary import read_share_group_state_summary
from pykafka_broker.apis.remove_raft_voter import remove_raft_voter
from pykafka_broker.apis.renew_delegation_token import renew_delegation_token
from pykafka_broker.apis.sasl_authenticate import sasl_authenticate
from pykafka_broker.apis.sasl_handshake import sasl_handshake
from pykafka_broker.apis.share_acknowledge import share_acknowledge
from pykafka_broker.apis.share_fetch import share_fetch
from pykafka_broker.apis.share_group_describe import share_group_describe
from pykafka_broker.apis.share_group_heartbeat import share_group_heartbeat
from pykafka_broker.apis.streams_group_describe import streams_group_describe
from pykafka_broker.apis.streams_group_heartbeat import streams_group_heartbeat
from pykafka_broker.apis.sync_group import sync_group
from pykafka_broker.apis.txn_offset_commit import txn_offset_commit
from pykafka_broker.apis.unregister_broker import unregister_broker
from pykafka_broker.apis.update_features import update_features
from pykafka_broker.apis.write_share_group_state import write_share_group_state
from pykafka_broker.apis.write_txn_markers import write_txn_markers

APIS: tuple[Api[NodePorts], ...] = (
    produce,
    fetch,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    find_coordinator,
    join_group,
    heartbeat,
    leave_group,
    sync_group,
    describe_groups,
    list_groups,
    sasl_handshake,
    api_versions,
    create_topics,
    delete_topics,
    delete_records,
    init_producer_id,
    offset_for_leader_epoch,
    add_partitions_to_txn,
    add_offsets_to_txn,
    end_txn,
    write_txn_markers,
    txn_offset_commit,
    describe_acls,
    create_acls,
    delete_acls,
    describe_configs,
    alter_configs,
    alter_replica_log_dirs,
    describe_log_dirs,
    sasl_authenticate,
    create_partitions,
    create_delegation_token,
    renew_delegation_token,
    expire_delegation_token,
    describe_delegation_token,
    delete_groups,
    elect_leaders,
    incremental_alter_configs,
    alter_partition_reassignments,
    list_partition_reassignments,
    offset_delete,
    describe_client_quotas,
    alter_client_quotas,
    describe_user_scram_credentials,
    alter_user_scram_credentials,
    describe_quorum,
    update_features,
    describe_cluster,
    describe_producers,
    unregister_broker,
    describe_transactions,
    list_transactions,
    consumer_group_heartbeat,
    consumer_group_describe,
    get_telemetry_subscriptions,
    push_telemetry,
    list_config_resources,
    describe_topic_partitions,
    share_group_heartbeat,
    share_group_describe,
    share_fetch,
    share_acknowledge,
    add_raft_voter,
    remove_raft_voter,
    initialize_share_group_state,
    read_share_group_state,
    write_share_group_state,
    delete_share_group_state,
    read_share_group_state_summary,
    streams_group_heartbeat,
    streams_group_describe,
    describe_share_group_offsets,
    alter_share_group_offsets,
    delete_share_group_offsets,
)
