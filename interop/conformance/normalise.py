"""Values that differ in every run get a stable name; everything else is compared as it is.

Ids that a broker makes up are named in the order in which a conversation meets them, in requests too: an
id that a broker answers instead of the one it was asked about gets a name of its own, and is a difference.
Times, ports and paths are volatile only where they are what they should be: a port that is not the broker's
own and a time that is not now are compared as they stand.
"""

from __future__ import annotations

import base64
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from interop.conformance.records_view import view_of_records
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.fields import Field, schema_of

#: A message as plain values: dicts by field name, lists, and dicts by key where Apache knows no order.
Tree = Any

#: How far a broker's clock may be off, and how long a run takes at most.
CLOCK_TOLERANCE_MS = 60_000
LONGEST_RUN_MS = 3_600_000

VERY_LONG_WAIT_MS = 10_000_000

#: Ids that mean "none" are no ids.
NO_IDS = (bytes(16), "", None, -1, 0)

MEMBER_ID = re.compile(r"^(?P<prefix>.*?)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.DOTALL)

#: How Apache Kafka refuses what needs a right on the cluster: with all that it knows of the request.
REFUSED_REQUEST = re.compile(r"^Request Request\(.*\) needs ", re.DOTALL)

#: What is in time for a topic, as Kafka says it: its ends move with the broker's clock.
SPAN_OF_TIME = re.compile(r"within \[(-?\d+), (\d+)\]")


@dataclass(frozen=True)
class Kind:
    """A kind of volatile value, why no two runs agree on it, and what of it is compared all the same."""

    name: str
    why: str
    kept: str
    #: Gives a value its stable name, or returns it as it is when it is not volatile after all.
    stable: Callable[[Names, str, Any], Any]


@dataclass
class Names:
    """The stable names that one broker's values have been given in one conversation."""

    #: The broker's own address, paths and the like: text -> what stands for it.
    fixed: Mapping[str, str]
    #: The broker's own ports.
    ports: frozenset[int] = frozenset()
    #: The ids of the nodes of a cluster; empty where there is one node, which is known to be 1.
    nodes: frozenset[int] = frozenset()
    given: dict[tuple[str, Any], str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    #: How the named ids look inside error messages.
    spelled: dict[str, str] = field(default_factory=dict)
    #: Compressed records are stored as they were sent: then they are compared byte by byte.
    bodies_are_the_producers: bool = False
    #: Arrays without an order in the message at hand, beside those of `UNORDERED`: field -> "key/key".
    unordered: Mapping[str, str] = field(default_factory=dict)
    #: In a cluster: finds the id of the controller that is active by now.
    active_controller: Callable[[], int] | None = None
    #: Whether the leaders that the message at hand names are those of the quorum.
    is_of_the_quorum: bool = False

    def named(self, kind: str, value: Any) -> str:
        name = self.given.get((kind, value))
        if name is None:
            self.counts[kind] = number = self.counts.get(kind, 0) + 1
            name = self.given[kind, value] = f"<{kind} {number}>"
            if not isinstance(value, int):  # a number in a sentence can mean anything
                self.spelled[spelling(value)] = name
        return name

    def stand_for(self, text: str, name: str) -> None:
        """Say what stands for a text of this conversation that differs from side to side."""
        self.fixed = {**self.fixed, text: name}

    def label(self, field_name: str, value: Any) -> str:
        """The word for a value that tells elements apart: the name of an id, if it has one by now."""
        kind = VOLATILE.get(field_name)
        known = self.given.get((kind.name, value)) if kind else None
        return known or self.text(spelling(value))

    def text(self, text: str, *, with_ids: bool = False) -> str:
        """`text` with the broker's own address and paths (and the ids it was given) replaced."""
        for found, stands in (*self.fixed.items(), *(self.spelled.items() if with_ids else ())):
            if found in text:
                text = text.replace(found, stands)
        return text


def spelling(value: Any) -> str:
    """How Kafka writes an id in a sentence."""
    if isinstance(value, bytes):
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    return str(value)


def an_id(names: Names, kind: str, value: Any) -> Any:
    return value if value in NO_IDS else names.named(kind, value)


def a_producer_id(names: Names, kind: str, value: int) -> Any:
    """0 is the first one that a cluster gives out."""
    return value if value < 0 else names.named(kind, value)


def a_member_id(names: Names, kind: str, value: str) -> str:
    """The client id or instance id in front of a generated member id is not volatile."""
    found = MEMBER_ID.match(value)
    return found["prefix"] + names.named(kind, value) if found else value


def an_epoch(names: Names, kind: str, value: int) -> Any:
    """Told apart and kept in order: one that is met after a later one says so.

    Not counted, and never looked for in sentences, which are full of small numbers.
    """
    if value <= 0:
        return value
    if (kind, value) not in names.given:
        known = {number: name for (each, number), name in names.given.items() if each == kind}
        later = min((number for number in known if number > value), default=None)
        before = "" if later is None else f" before {known[later]}"
        names.given[kind, value] = f"<{kind} {len(known) + 1}{before}>"
    return names.given[kind, value]


def the_port(names: Names, kind: str, value: int) -> Any:
    return f"<{kind}>" if value in names.ports else value


def any_node(names: Names, kind: str, value: int) -> Any:
    return f"<{kind}>" if value in names.nodes else value


def the_active_controller(names: Names, kind: str, value: int) -> Any:
    is_it = names.is_of_the_quorum and names.active_controller and value == names.active_controller()
    return f"<{kind}>" if is_it else value


def now(names: Names, kind: str, value: int) -> Any:
    age_ms = time.time() * 1000 - value
    return f"<{kind}>" if -CLOCK_TOLERANCE_MS < age_ms < LONGEST_RUN_MS else value


def a_time_to_come(names: Names, kind: str, value: int) -> Any:
    """The limits of an answer without a time are compared as they are."""
    return f"<{kind} in {math.ceil((value / 1_000 - time.time()) / 10) * 10} s>" if value > 0 else value


def steady(text: str) -> str:
    """A sentence with the length of a span of time instead of its ends, and without what is in a request."""
    text = REFUSED_REQUEST.sub("Request <request> needs ", text)
    return SPAN_OF_TIME.sub(lambda found: f"within <{int(found[2]) - int(found[1])} ms around now>", text)


def not_negative(names: Names, kind: str, value: int) -> Any:
    return f"<{kind}>" if value >= 0 else value


def a_wait(names: Names, kind: str, value: int) -> Any:
    if value >= VERY_LONG_WAIT_MS:
        return f"<{kind} of {value / 1_000:.1e} s>"
    return f"<{kind} of {round(value / 1_000)} s>" if value else value


def a_long_wait(names: Names, kind: str, value: int) -> Any:
    return f"<{kind} of {round(value / 10_000) * 10} s>" if value else value


def some_text(names: Names, kind: str, value: str) -> Any:
    return f"<{kind}>" if value else value


def some_bytes(names: Names, kind: str, value: int) -> Any:
    return f"<{kind}>" if value > 0 else value


WHICH = "which one of those met before, or that it is new"
TOPIC_ID = Kind("topic id", "drawn at random when the topic is created", WHICH, an_id)
MEMBER = Kind("member id", "holds a random part", f"what stands before that part; {WHICH}", a_member_id)
PRODUCER_ID = Kind("producer id", "counted over the whole run", WHICH, a_producer_id)
SESSION_ID = Kind("session", "drawn at random", WHICH, an_id)
INSTANCE_ID = Kind("client instance", "drawn at random for a client that has none", WHICH, an_id)
SUBSCRIPTION_ID = Kind(
    "subscription",
    "the id of the client instance is in it",
    f"{WHICH}; the id, where that of the client is given",
    an_id,
)
CLUSTER_ID = Kind("cluster id", "drawn when a node is formatted", WHICH, an_id)
DIRECTORY_ID = Kind("directory id", "drawn when a log directory is formatted", WHICH, an_id)
EPOCH = Kind(
    "epoch",
    "a coordinator may hear of a new topic before or after its first member",
    "the order of epochs, not the steps between them",
    an_epoch,
)
LEADER_EPOCH = Kind(
    "leader epoch",
    "grows at each election, and Apache Kafka's controller resigns in some conversations",
    "the order of epochs, not the steps between them",
    an_epoch,
)
PORT = Kind("port", "a free port of the machine", "that it is a port of that broker", the_port)
NODE = Kind(
    "any node",
    "of several nodes one is drawn for each answer",
    "that it is one of them; with one node the id",
    any_node,
)
ACTIVE_CONTROLLER = Kind(
    "active controller",
    "the first of several controllers that stands for election, and Apache Kafka's resigns in some "
    "conversations",
    "that it is the active one; with one node the id",
    the_active_controller,
)
TIME = Kind("now", "the broker's clock", "that it is a time in this run", now)
METADATA_OFFSET = Kind(
    "metadata offset", "grows with every change of the cluster", "that it is not negative", not_negative
)
WAIT = Kind(
    "wait",
    "the window of a quota grows from its first request on",
    "its length to the second, which is a byte of the quotas in these conversations; two digits of a wait of "
    "many hours",
    a_wait,
)
LONG_WAIT = Kind(
    "long wait", "tokens come back while a request is under way", "its length to ten seconds", a_long_wait
)
TIME_TO_COME = Kind(
    "time",
    "so much later than the broker's clock",
    "how far away it is, rounded up to ten seconds",
    a_time_to_come,
)
TOKEN_ID = Kind("token id", "drawn at random when the token is created", WHICH, an_id)
TOKEN_HMAC = Kind("HMAC", "made of the id of the token", WHICH, an_id)
DOCUMENTATION = Kind(
    "documentation", "told by each broker in words of its own", "that there is some, or none", some_text
)
VOLUME = Kind(
    "bytes", "the size and the free space of the machine's volume", "that it is above zero", some_bytes
)

#: By field name, or "Struct.field" where the name alone could mean something else. The page lists them.
VOLATILE: dict[str, Kind] = {
    "topic_id": TOPIC_ID,
    "member_id": MEMBER,
    "JoinGroupResponse.leader": MEMBER,
    "GroupMetadataValue.leader": MEMBER,
    "ConsumerGroupHeartbeatResponse.member_epoch": EPOCH,
    "StreamsGroupHeartbeatResponse.member_epoch": EPOCH,
    "ShareGroupHeartbeatResponse.member_epoch": EPOCH,
    "Member.member_epoch": EPOCH,
    "VoteResponsePartitionData.leader_epoch": LEADER_EPOCH,
    "BeginQuorumEpochResponsePartitionData.leader_epoch": LEADER_EPOCH,
    "EndQuorumEpochResponsePartitionData.leader_epoch": LEADER_EPOCH,
    "DescribeQuorumResponsePartitionData.leader_epoch": LEADER_EPOCH,
    "CurrentLeader.leader_epoch": LEADER_EPOCH,
    "LeaderIdAndEpoch.leader_epoch": LEADER_EPOCH,
    "group_epoch": EPOCH,
    "assignment_epoch": EPOCH,
    "producer_id": PRODUCER_ID,
    "FetchRequest.session_id": SESSION_ID,
    "FetchResponse.session_id": SESSION_ID,
    "client_instance_id": INSTANCE_ID,
    "GetTelemetrySubscriptionsResponse.subscription_id": SUBSCRIPTION_ID,
    "cluster_id": CLUSTER_ID,
    "replica_directory_id": DIRECTORY_ID,
    "port": PORT,
    "ProduceResponse.throttle_time_ms": WAIT,
    "FetchResponse.throttle_time_ms": WAIT,
    "CreateTopicsResponse.throttle_time_ms": LONG_WAIT,
    "CreatePartitionsResponse.throttle_time_ms": LONG_WAIT,
    "DeleteTopicsResponse.throttle_time_ms": LONG_WAIT,
    "MetadataResponse.controller_id": NODE,
    "DescribeClusterResponse.controller_id": NODE,
    "DescribeQuorumResponsePartitionData.leader_id": ACTIVE_CONTROLLER,
    "VoteResponsePartitionData.leader_id": ACTIVE_CONTROLLER,
    "BeginQuorumEpochResponsePartitionData.leader_id": ACTIVE_CONTROLLER,
    "EndQuorumEpochResponsePartitionData.leader_id": ACTIVE_CONTROLLER,
    "CurrentLeader.leader_id": ACTIVE_CONTROLLER,
    "LeaderIdAndEpoch.leader_id": ACTIVE_CONTROLLER,
    "NodeEndpoint.node_id": ACTIVE_CONTROLLER,
    "token_id": TOKEN_ID,
    "CreateDelegationTokenResponse.hmac": TOKEN_HMAC,
    "DescribedDelegationToken.hmac": TOKEN_HMAC,
    "issue_timestamp_ms": TIME,
    "issue_timestamp": TIME,
    "expiry_timestamp_ms": TIME_TO_COME,
    "expiry_timestamp": TIME_TO_COME,
    "max_timestamp_ms": TIME_TO_COME,
    "DescribedDelegationToken.max_timestamp": TIME_TO_COME,
    "log_append_time_ms": TIME,
    "ListOffsetsPartitionResponse.timestamp": TIME,
    "last_timestamp": TIME,
    "commit_timestamp": TIME,
    "current_state_timestamp": TIME,
    "expire_timestamp": TIME,
    "transaction_start_time_ms": TIME,
    "finalized_features_epoch": METADATA_OFFSET,
    "BrokerRegistrationResponse.broker_epoch": METADATA_OFFSET,
    "DescribeQuorumResponsePartitionData.high_watermark": METADATA_OFFSET,
    "ReplicaState.log_end_offset": METADATA_OFFSET,
    "last_fetch_timestamp": TIME,
    "last_caught_up_timestamp": TIME,
    "documentation": DOCUMENTATION,
    "total_bytes": VOLUME,
    "usable_bytes": VOLUME,
}

#: Sentences: compared apart from values, as words.
WORDS = frozenset({"error_message", "batch_index_error_message", "acknowledge_error_message"})

#: Arrays in which Apache keeps no order, with the fields by which their elements are told apart, and why.
UNORDERED: dict[str, tuple[tuple[str, ...], str]] = {
    "ProduceResponse.responses": (("name", "topic_id"), "the batches go through hash maps"),
    "TopicProduceResponse.partition_responses": (("index",), "the batches go through hash maps"),
    "ListOffsetsResponse.topics": (("name",), "grouped in a hash map"),
    "ListOffsetsTopicResponse.partitions": (("partition_index",), "grouped in a hash map"),
    "PartitionResponse.active_producers": (("producer_id",), "a hash map"),
    "AddPartitionsToTxnResponse.results_by_transaction": (
        ("transactional_id",),
        "each is added when it is done",
    ),
    "AddPartitionsToTxnResponse.results_by_topic_v3_and_below": (("name",), "a hash map"),
    "AddPartitionsToTxnResult.topic_results": (("name",), "a hash map"),
    "AddPartitionsToTxnTopicResult.results_by_partition": (("partition_index",), "a hash map"),
    "TopicData.partitions": ((), "a hash set of partitions"),
    "TransactionState.topics": (("topic",), "a hash set of partitions"),
    "ListTransactionsResponse.transaction_states": (("transactional_id",), "a hash map"),
    "WriteTxnMarkersResponse.markers": (("producer_id",), "a hash map"),
    "WritableTxnMarkerResult.topics": (("name",), "a hash map"),
    "WritableTxnMarkerTopicResult.partitions": (("partition_index",), "a hash map"),
    "ApiVersionsResponse.supported_features": (("name",), "a hash map"),
    "ApiVersionsResponse.finalized_features": (("name",), "a hash map"),
    "DeleteTopicsResponse.responses": (
        ("name", "topic_id"),
        "shuffled, so that what is missing looks like what is forbidden",
    ),
    "DeleteRecordsResponse.topics": (("name",), "grouped in a hash map"),
    "DeleteRecordsTopicResult.partitions": (("partition_index",), "grouped in a hash map"),
    "JoinGroupResponse.members": (("metadata",), "a hash map by member id"),
    "GroupMetadataValue.members": (("subscription",), "a hash map by member id"),
    "ListGroupsResponse.groups": (("group_id",), "a hash map by group"),
    "DeleteGroupsResponse.results": (("group_id",), "groups are sorted into shards by a hash map"),
    "Assignment.topic_partitions": (("topic_id",), "a map by topic id"),
    "DescribeDelegationTokenResponse.tokens": (("token_id",), "a hash map by token id, which is random"),
    "ShareFetchResponse.responses": (("topic_id",), "a hash map of partitions"),
    "ShareFetchableTopicResponse.partitions": (("partition_index",), "a hash map of partitions"),
    "ShareAcknowledgeResponse.responses": (("topic_id",), "a hash map of partitions"),
    "ShareAcknowledgeTopicResponse.partitions": (("partition_index",), "a hash map of partitions"),
    "DescribedGroup.members": (("member_metadata", "member_assignment"), "a hash map by member id"),
}

#: The same where it is so in some answers only: the conversations say which (`in_any_order`).
UNORDERED_AT_TIMES: dict[str, str] = {
    "AlterConfigsResponse.responses": "of a listener of controllers: a hash map",
    "AlterReplicaLogDirsResponse.results, .partitions": "a hash map of partitions",
    "ConsumerGroupDescribeResponse.members": "the order of their ids, which are random",
    "DescribeLogDirsTopic, .partitions": "a hash map of partitions",
    "ElectLeadersResponse.replica_election_results, .partition_result": "all partitions: hash maps",
    "IncrementalAlterConfigsResponse.responses": "of a listener of controllers: a hash map",
    "ListConfigResourcesResponse.config_resources": "a hash set",
    "MetadataResponse.topics": "all topics: a hash map by name, which also holds those of others",
    "OffsetDeleteResponse.topics, OffsetFetchResponse.topics": "all topics of a group: a hash map",
}

#: Why these orders may be left alone: looked up in kafkajs 2.2.4, @platformatic/kafka 2.12.1, kafka-go 0.4.51
#: and kafka-python 2.0.2.
READ_BY_POSITION = (
    "Clients look the elements of these arrays up by name, id or number. kafka-go and kafka-python take the "
    "first element if they asked for one topic, partition or group. kafkajs throws the first error of an "
    "answer: if several topics have failed, each for a reason of its own, that may be another error than "
    "with Apache Kafka. Programs were seen to read the entries of DescribeConfigs by position: these come in "
    "Apache Kafka's order, which is compared, and so do the results of CreatePartitions."
)

#: Arrays whose elements are compared by a key, and in their order as well: so that one that is missing does
#: not make all that follow differ.
KEYED: dict[str, str] = {
    "ApiVersionsResponse.api_keys": "api_key",
    "CreatePartitionsResponse.results": "name",
    "DescribeConfigsResult.configs": "name",
}


class InOrder(dict[str, Tree]):
    """Elements by key, in an order that matters."""


def is_unordered(response: type) -> bool:
    """Whether Apache has no order in some array of such a response, or one that depends on names."""
    return any(name.startswith(f"{schema_of(response).name}.") for name in (*UNORDERED, *KEYED))


def tree_of(
    message: Any,
    version: int,
    names: Names,
    unordered: Mapping[str, str] | None = None,
    *,
    is_of_the_quorum: bool = False,
) -> Tree:
    """A decoded message as plain values that two brokers can agree on."""
    names.unordered = unordered or {}
    names.is_of_the_quorum = is_of_the_quorum
    return struct_of(message, version, names)


def struct_of(message: Any, version: int, names: Names) -> Tree:
    return dict(fields_of(message, version, names))


def learn(message: Any, version: int, names: Names) -> None:
    """Meet the ids of a message that is not compared: a request, or the answer to a step of set-up."""
    tree_of(message, version, names)


def fields_of(message: Any, version: int, names: Names) -> list[tuple[str, Tree]]:
    schema = schema_of(message)
    return [
        (
            declared.name,
            0
            if declared.name == "producer_id" and is_of_no_producer(message)
            else value_of(getattr(message, declared.name), declared, schema.name, version, names),
        )
        for declared in schema.fields
        if version in declared.versions
    ]


def is_of_no_producer(message: Any) -> bool:
    """Whether 0 is no producer's id here: it stands beside an error, as what Apache Kafka leaves out."""
    return message.producer_id == 0 and getattr(message, "error_code", ErrorCode.NONE) != ErrorCode.NONE


def value_of(value: Any, declared: Field, struct: str, version: int, names: Names) -> Tree:
    if value is None:
        return None
    qualified = f"{struct}.{declared.name}"
    kind = VOLATILE.get(qualified) or VOLATILE.get(declared.name)
    if declared.kind == "array":
        assert declared.element is not None
        return array_of(value, declared.element, qualified, version, names, declared.name)
    if declared.kind == "struct":
        return struct_of(value, version, names)
    if declared.kind == "records":
        return view_of_records(
            value,
            lambda time_ms: now(names, "now", time_ms),
            lambda producer_id: a_producer_id(names, "producer id", producer_id),
            bodies=names.bodies_are_the_producers,
        )
    if kind is not None:
        value = kind.stable(names, kind.name, value)
    if declared.name.endswith("error_code"):
        return error_name(value)
    if isinstance(value, str):
        return names.text(steady(value), with_ids=True) if declared.name in WORDS else names.text(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"0x{bytes(value).hex()}"
    return value


def array_of(
    values: list[Any], element: Field, qualified: str, version: int, names: Names, name: str
) -> Tree:
    if qualified in KEYED:
        labels = [str(getattr(value, KEYED[qualified])) for value in values]
        if len(set(labels)) == len(labels):
            trees = [element_of(value, element, qualified, version, names) for value in values]
            return InOrder(zip(labels, trees, strict=True))
    key = names.unordered.get(name)
    keys = tuple(key.split("/")) if key else UNORDERED[qualified][0] if qualified in UNORDERED else None
    if keys is None:
        return [element_of(value, element, qualified, version, names) for value in values]
    if not keys:
        return sorted((element_of(value, element, qualified, version, names) for value in values), key=str)
    by_key: dict[str, Tree] = {}
    labelled = [("/".join(names.label(key, getattr(each, key)) for key in keys), each) for each in values]
    for label, value in sorted(labelled, key=lambda pair: pair[0]):
        while label in by_key:
            label += " again"
        by_key[label] = element_of(value, element, qualified, version, names)
    return by_key


def element_of(value: Any, element: Field, qualified: str, version: int, names: Names) -> Tree:
    if element.kind == "struct":
        return struct_of(value, version, names)
    return value_of(value, element, qualified, version, names)


def error_name(code: int) -> str:
    try:
        return f"{code} {ErrorCode(code).name}"
    except ValueError:
        return f"{code} (no such code)"


def error_codes(message: Any, version: int) -> list[int]:
    """Every error code in a message other than NONE, in the order of the wire."""
    found: list[int] = []
    for declared in schema_of(message).fields:
        value = getattr(message, declared.name)
        if version not in declared.versions or value is None:
            continue
        if declared.kind == "array" and declared.element is not None and declared.element.kind == "struct":
            for each in value:
                found += error_codes(each, version)
        elif declared.kind == "struct":
            found += error_codes(value, version)
        elif declared.name.endswith("error_code") and value:
            found.append(value)
    return found
