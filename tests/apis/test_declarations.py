"""What each API declares beside its handler, side by side with the tables of KafkaApis and ControllerApis."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis import APIS
from pykafka_broker.apis.api import Api
from pykafka_broker.apis.controller_apis import CONTROLLER_APIS
from pykafka_broker.apis.needs import Need
from pykafka_broker.apis.ports.authorizer import AclResourceType
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.testing.messages import as_of, full

#: "READ GROUP" is checked for the whole request, "READ each TOPIC" is for the handler to ask about.
NEEDS = {
    "Produce": "WRITE each TRANSACTIONAL_ID, WRITE each TOPIC",
    "Fetch": "CLUSTER_ACTION each CLUSTER, READ each TOPIC",
    "ListOffsets": "DESCRIBE each TOPIC",
    "Metadata": "DESCRIBE each TOPIC, CREATE each TOPIC or CREATE each CLUSTER",
    "OffsetCommit": "READ GROUP, READ each TOPIC",
    "OffsetFetch": "DESCRIBE each GROUP, DESCRIBE each TOPIC",
    "FindCoordinator": "DESCRIBE each GROUP, DESCRIBE each TRANSACTIONAL_ID, CLUSTER_ACTION each CLUSTER",
    "JoinGroup": "READ each GROUP",
    "Heartbeat": "READ GROUP",
    "LeaveGroup": "READ GROUP",
    "SyncGroup": "READ each GROUP",
    "DescribeGroups": "DESCRIBE each GROUP",
    "ListGroups": "DESCRIBE each CLUSTER or DESCRIBE each GROUP",
    "SaslHandshake": "",
    "ApiVersions": "",
    "CreateTopics": "CREATE each CLUSTER or CREATE each TOPIC, DESCRIBE_CONFIGS each TOPIC",
    "DeleteTopics": "DELETE each CLUSTER or DESCRIBE each TOPIC, DELETE each CLUSTER or DELETE each TOPIC",
    "DeleteRecords": "DELETE each TOPIC",
    "InitProducerId": "WRITE TRANSACTIONAL_ID, IDEMPOTENT_WRITE CLUSTER or WRITE TOPIC",
    "OffsetForLeaderEpoch": "CLUSTER_ACTION each CLUSTER or DESCRIBE each TOPIC",
    "AddPartitionsToTxn": "CLUSTER_ACTION CLUSTER, WRITE each TRANSACTIONAL_ID, WRITE each TOPIC",
    "AddOffsetsToTxn": "WRITE TRANSACTIONAL_ID, READ GROUP",
    "EndTxn": "WRITE TRANSACTIONAL_ID",
    "WriteTxnMarkers": "ALTER CLUSTER or CLUSTER_ACTION CLUSTER",
    "TxnOffsetCommit": "WRITE TRANSACTIONAL_ID, READ GROUP, READ each TOPIC",
    "DescribeConfigs": "DESCRIBE_CONFIGS each CLUSTER, DESCRIBE_CONFIGS each TOPIC, "
    "DESCRIBE_CONFIGS each GROUP",
    "AlterConfigs": "ALTER_CONFIGS each CLUSTER, ALTER_CONFIGS each TOPIC, ALTER_CONFIGS each GROUP",
    "AlterReplicaLogDirs": "ALTER CLUSTER",
    "DescribeLogDirs": "DESCRIBE CLUSTER",
    "SaslAuthenticate": "",
    "DescribeUserScramCredentials": "DESCRIBE CLUSTER",
    "AlterUserScramCredentials": "ALTER CLUSTER",
    "CreatePartitions": "ALTER each TOPIC",
    "CreateDelegationToken": "CREATE_TOKENS each USER",
    "RenewDelegationToken": "",
    "ExpireDelegationToken": "",
    "DescribeDelegationToken": "DESCRIBE each DELEGATION_TOKEN or DESCRIBE_TOKENS each USER",
    "DeleteGroups": "DELETE each GROUP",
    "ElectLeaders": "ALTER CLUSTER",
    "IncrementalAlterConfigs": "ALTER_CONFIGS each CLUSTER, ALTER_CONFIGS each TOPIC, "
    "ALTER_CONFIGS each GROUP",
    "AlterPartitionReassignments": "ALTER CLUSTER",
    "ListPartitionReassignments": "DESCRIBE CLUSTER",
    "OffsetDelete": "DELETE GROUP, READ each TOPIC",
    "DescribeAcls": "DESCRIBE CLUSTER",
    "CreateAcls": "ALTER CLUSTER",
    "DeleteAcls": "ALTER CLUSTER",
    "DescribeClientQuotas": "DESCRIBE_CONFIGS CLUSTER",
    "AlterClientQuotas": "ALTER_CONFIGS CLUSTER",
    "DescribeQuorum": "DESCRIBE CLUSTER",
    "UpdateFeatures": "ALTER CLUSTER",
    "UnregisterBroker": "ALTER CLUSTER",
    "DescribeCluster": "DESCRIBE each CLUSTER",
    "DescribeProducers": "READ each TOPIC",
    "DescribeTransactions": "DESCRIBE each TRANSACTIONAL_ID, DESCRIBE each TOPIC",
    "ListTransactions": "DESCRIBE each TRANSACTIONAL_ID",
    "ConsumerGroupHeartbeat": "READ GROUP, DESCRIBE each TOPIC",
    "ConsumerGroupDescribe": "DESCRIBE each GROUP, DESCRIBE each TOPIC",
    "ShareGroupHeartbeat": "READ each GROUP, DESCRIBE each TOPIC",
    "ShareGroupDescribe": "DESCRIBE each GROUP, DESCRIBE each TOPIC",
    "GetTelemetrySubscriptions": "",
    "PushTelemetry": "",
    "ListConfigResources": "DESCRIBE_CONFIGS CLUSTER",
    "DescribeTopicPartitions": "DESCRIBE each TOPIC",
    "AddRaftVoter": "ALTER CLUSTER",
    "RemoveRaftVoter": "ALTER CLUSTER",
    "ShareFetch": "READ each GROUP, READ each TOPIC",
    "ShareAcknowledge": "READ each GROUP, READ each TOPIC",
    "InitializeShareGroupState": "CLUSTER_ACTION CLUSTER",
    "ReadShareGroupState": "CLUSTER_ACTION CLUSTER",
    "WriteShareGroupState": "CLUSTER_ACTION CLUSTER",
    "DeleteShareGroupState": "CLUSTER_ACTION CLUSTER",
    "ReadShareGroupStateSummary": "CLUSTER_ACTION CLUSTER",
    "StreamsGroupHeartbeat": "READ each GROUP, DESCRIBE each TOPIC, CREATE each CLUSTER or CREATE each TOPIC",
    "StreamsGroupDescribe": "DESCRIBE each GROUP, DESCRIBE each TOPIC",
    "DescribeShareGroupOffsets": "DESCRIBE each GROUP, DESCRIBE each TOPIC",
    "AlterShareGroupOffsets": "READ each GROUP, READ each TOPIC",
    "DeleteShareGroupOffsets": "DELETE each GROUP, READ each TOPIC",
}

#: Of ControllerApis, where it is another handler than that of a broker's listener.
CONTROLLER_NEEDS = {
    "AlterConfigs": "ALTER_CONFIGS each CLUSTER, ALTER_CONFIGS each TOPIC, ALTER_CONFIGS each GROUP",
    "IncrementalAlterConfigs": "ALTER_CONFIGS each CLUSTER, ALTER_CONFIGS each TOPIC, "
    "ALTER_CONFIGS each GROUP, CLUSTER_ACTION each CLUSTER",
    "AlterPartition": "CLUSTER_ACTION CLUSTER",
    "Envelope": "CLUSTER_ACTION CLUSTER",
    "DescribeCluster": "ALTER CLUSTER",
    "BrokerRegistration": "CLUSTER_ACTION CLUSTER",
    "BrokerHeartbeat": "CLUSTER_ACTION CLUSTER",
    "AllocateProducerIds": "CLUSTER_ACTION CLUSTER",
    "ControllerRegistration": "CLUSTER_ACTION CLUSTER",
    "AssignReplicasToDirs": "CLUSTER_ACTION CLUSTER",
    "Fetch": "CLUSTER_ACTION CLUSTER",
    "FetchSnapshot": "CLUSTER_ACTION CLUSTER",
    "Vote": "CLUSTER_ACTION CLUSTER",
    "BeginQuorumEpoch": "CLUSTER_ACTION CLUSTER",
    "EndQuorumEpoch": "CLUSTER_ACTION CLUSTER",
    "UpdateRaftVoter": "CLUSTER_ACTION CLUSTER",
    "CreateDelegationToken": "CREATE_TOKENS each USER",
    "RenewDelegationToken": "",
    "ExpireDelegationToken": "",
}

#: All others count to the request quota alone.
QUOTAS = {
    "Produce": "PRODUCE",
    "Fetch": "FETCH",
    "ShareFetch": "FETCH",
    "CreateTopics": "CONTROLLER_MUTATION",
    "DeleteTopics": "CONTROLLER_MUTATION",
    "CreatePartitions": "CONTROLLER_MUTATION",
    "WriteTxnMarkers": "EXEMPT",
}


def told(need: Need) -> str:
    each = "" if need.names is not None else "each "
    text = f"{need.operation.name} {each}{need.resource_type.name}"
    return text if need.instead is None else f"{text} or {told(need.instead)}"


def test_every_api_declares_what_a_request_has_to_be_authorized_for() -> None:
    assert {api.name: ", ".join(map(told, api.needs)) for api in APIS} == NEEDS


def test_every_api_of_controllers_declares_what_a_request_has_to_be_authorized_for() -> None:
    of_brokers: list[Api[Any]] = list(APIS)
    own = [api for api in CONTROLLER_APIS if api not in of_brokers]

    assert {api.name: ", ".join(map(told, api.needs)) for api in own} == CONTROLLER_NEEDS


def test_only_a_need_without_names_is_left_to_the_handler() -> None:
    needs = [need for api in APIS for need in api.needs]

    assert [need for need in needs if need.names is not None and need.is_asked] == []


def test_every_api_declares_which_quota_it_counts_to() -> None:
    assert {api.name: api.quota.name for api in APIS if api.quota.name != "REQUEST"} == QUOTAS


def test_clients_of_a_brokers_listener_are_served_by_every_api() -> None:
    """Which listeners serve a message is compared with Apache Kafka's schemas beside the messages."""
    assert [api.name for api in APIS if "broker" not in api.listeners] == []


#: What the protocol calls a resource that a field names.
ENTITIES = {AclResourceType.GROUP: "group_id", AclResourceType.TRANSACTIONAL_ID: "transactional_id"}


@pytest.mark.parametrize(
    ("api", "need"),
    [(api, need) for api in APIS for need in api.needs if need.names is not None],
    ids=lambda one: one.name if isinstance(one, Api) else told(one),
)
def test_a_request_names_what_it_is_about(api: Api[Any], need: Need) -> None:
    """The names are those in the fields whose entity is of the resource's type."""
    assert need.names is not None
    for version in range(api.min_version, api.max_version + 1):
        request: Any = as_of(full(api.request), version)
        if need.resource_type is AclResourceType.CLUSTER:
            assert need.names(request) in ((), ("kafka-cluster",))
        else:
            entity = ENTITIES[need.resource_type]
            assert list(need.names(request)) == named(request, entity, version)


def named(request: Any, entity: str, version: int) -> list[str]:
    return [
        getattr(request, field.name)
        for field in schema_of(type(request)).fields
        if field.entity == entity and version in field.versions
    ]
