"""The APIs of Apache Kafka that are to come: accepted as missing, and checked to be all that is missing."""

from __future__ import annotations

from pykafka_broker.protocol.messages import API_NAMES

#: What Apache Kafka 4.3's broker listener serves and this one does not yet, by what it waits for.
NOT_YET_SERVED = {
    "share groups": (
        "ShareGroupHeartbeat",
        "ShareGroupDescribe",
        "ShareFetch",
        "ShareAcknowledge",
        "InitializeShareGroupState",
        "ReadShareGroupState",
        "WriteShareGroupState",
        "DeleteShareGroupState",
        "ReadShareGroupStateSummary",
        "DescribeShareGroupOffsets",
        "AlterShareGroupOffsets",
        "DeleteShareGroupOffsets",
    ),
    "streams groups": ("StreamsGroupHeartbeat", "StreamsGroupDescribe"),
    "security": (
        "SaslHandshake",
        "SaslAuthenticate",
        "DescribeAcls",
        "CreateAcls",
        "DeleteAcls",
        "CreateDelegationToken",
        "RenewDelegationToken",
        "ExpireDelegationToken",
        "DescribeDelegationToken",
        "DescribeUserScramCredentials",
        "AlterUserScramCredentials",
    ),
    "quotas": ("DescribeClientQuotas", "AlterClientQuotas"),
    "several brokers and controllers": (
        "ElectLeaders",
        "AlterPartitionReassignments",
        "ListPartitionReassignments",
        "DescribeQuorum",
        "UpdateFeatures",
        "UnregisterBroker",
        "AddRaftVoter",
        "RemoveRaftVoter",
    ),
    "client telemetry": ("GetTelemetrySubscriptions", "PushTelemetry"),
}


#: Apache Kafka itself lists these only when a reporter of metrics takes them.
LISTED_WHEN_SET_UP = frozenset(NOT_YET_SERVED["client telemetry"])


def missing_keys() -> list[int]:
    """The keys of the APIs that Apache Kafka lists as it is and that are not served yet, in their order."""
    names = {name for each in NOT_YET_SERVED.values() for name in each} - LISTED_WHEN_SET_UP
    return sorted(key for key, name in API_NAMES.items() if name in names)
