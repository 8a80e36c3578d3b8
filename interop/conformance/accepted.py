"""Where we differ from Apache Kafka on purpose, each with the reason that `docs/conformance.md` prints.

An entry names conversations ("api/name") and what may differ in them: the path of a difference and what ours
says there, all as glob patterns. One that no difference matches any more is stale and fails the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from interop.conformance.compare import MISSING, Difference
from interop.conformance.conversation import Case
from pykafka_broker.apis.api import CONTROLLER_LISTENER
from pykafka_broker.apis.controller_apis import CONTROLLER_APIS
from pykafka_broker.cluster.topic_names import INTERNAL_TOPICS
from pykafka_broker.log.partition.validation import MAX_RECORD_ERRORS, MAX_RECORDS_LOOKED_AT
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages import API_NAMES, request_type
from pykafka_broker.protocol.records.compression import DEFAULT_LIMIT_BYTES
from pykafka_broker.protocol.wire import MAX_ELEMENTS, MAX_TAGS


@dataclass(frozen=True)
class Accepted:
    name: str
    conversations: str
    #: Path -> what ours says there. An answer of ours is also taken literally, brackets and all.
    differences: Mapping[str, str]
    #: Why, in words for users.
    reason: str
    #: The value of Apache Kafka there, as a pattern too.
    apache: str = "*"

    def concerns(self, case: Case) -> bool:
        return fnmatchcase(case.conversation.id, self.conversations)

    def matches(self, case: Case, difference: Difference) -> bool:
        return (
            self.concerns(case)
            and fnmatchcase(difference.apache, self.apache)
            and any(
                fnmatchcase(difference.path, path)
                and (difference.ours == ours or fnmatchcase(difference.ours, ours))
                for path, ours in self.differences.items()
            )
        )


def refused(produce: str, error: str) -> dict[str, str]:
    """The batch of partition 0 is not appended: what is answered then, where `produce` is the request."""
    partition = f"{produce} Produce v*.responses.*.partition_responses.0"
    return {f"{partition}.error_code": f'"{error}"', f"{partition}.base_offset": "-1"}


def not_looked_at(produce: str) -> dict[str, str]:
    """The batch is refused as too large, before Kafka's log would have named its start."""
    start = f"{produce} Produce v*.responses.*.partition_responses.0.log_start_offset"
    return {**refused(produce, "10 MESSAGE_TOO_LARGE"), start: "-1"}


CONFIGS = "1 DescribeConfigs v*.results.0.configs"
PARTITION = "Fetch v*.responses.0.partitions.0"
EVERY_PROTOCOL = '"SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"'


def unserved_keys_of_controllers() -> list[int]:
    """The keys of what Apache Kafka lists for controllers although its ControllerApis has no case for it."""
    served = {api.key for api in CONTROLLER_APIS}
    declared = {key for key in API_NAMES if CONTROLLER_LISTENER in schema_of(request_type(key)).listeners}
    return sorted(declared - served)


ACCEPTED: tuple[Accepted, ...] = (
    Accepted(
        "aborted transactions are named by their start",
        "fetch/aborted_transactions_that_did_not_end_as_they_began",
        {
            f"3 {PARTITION}.aborted_transactions.order": '[{"producer_id": "<producer id 1>", '
            '"first_offset": 0}, {"producer_id": "<producer id 2>", "first_offset": 1}]'
        },
        "Apache Kafka names aborted transactions in the order of their ends, and older clients that do "
        "not sort the list show aborted records. Here the list is sorted by the starts, with which every "
        "client is right.",
    ),
    Accepted(
        "an API that no controller serves is not listed",
        "api_versions/a_listener_of_controllers_says_what_it_serves",
        {f"1 ApiVersions v*.api_keys.{key}": MISSING for key in unserved_keys_of_controllers()},
        "Only what works is listed. Apache Kafka's controllers list "
        f"{' and '.join(API_NAMES[key] for key in unserved_keys_of_controllers())} too, but have no "
        "handler for them: the first is answered UNKNOWN_SERVER_ERROR, the second without names of users not "
        "at all. Brokers serve them, there and here.",
    ),
    Accepted(
        "an unknown topic id does not spoil a ShareFetch",
        "share_fetch/a_topic_id_that_nobody_knows",
        {
            "? ShareFetch v*.error_code": '"0 NONE"',
            "? ShareFetch v*.acquisition_lock_timeout_ms": "30000",
            "? ShareFetch v*.responses.*": "*UNKNOWN_TOPIC_ID*",
            "1 ShareFetch v*.responses.<topic id 1>": "*acquired_records*",
        },
        "If one topic is unknown, such as one that was deleted a moment ago, Apache Kafka answers "
        "UNKNOWN_SERVER_ERROR to the whole request, and the records that it has acquired of other topics "
        "stay locked. Here the partitions of the unknown topic are answered UNKNOWN_TOPIC_ID, and all "
        "others as ever.",
    ),
    Accepted(
        "an unreadable assignment",
        "consumer_group_heartbeat/a_classic_group_with_an_unreadable_assignment_is_not_upgraded",
        {"1 ConsumerGroupHeartbeat v*.error_code": '"69 GROUP_ID_NOT_FOUND"'},
        "Apache Kafka answers UNKNOWN_SERVER_ERROR, this broker GROUP_ID_NOT_FOUND with a message that "
        "names the cause.",
    ),
    Accepted(
        "an unreadable subscription",
        "join_group/an_unreadable_subscription",
        {"2 JoinGroup v*": '"answered"'},
        "If the subscription of a member claims more topics than it has bytes, Apache Kafka answers "
        "neither the member nor the others of its group until they time out. This broker answers every "
        "subscription.",
    ),
    Accepted(
        "a member that has not subscribed is assigned nothing",
        "consumer_group_heartbeat/a_member_without_topics_comes_when_another_has_just_left",
        {
            "4 ConsumerGroupHeartbeat v*.member_epoch": '"<epoch 3>"',
            "4 ConsumerGroupHeartbeat v*.assignment": "null",
        },
        "When a member joins without naming a topic just after another has left, Apache Kafka assigns as "
        "if the new member had subscribed to the topics of the others: partitions are revoked, and no "
        "member reads them until the group changes again. Here the members keep their partitions.",
    ),
    Accepted(
        "who is removed is told so",
        "sync_group/who_waits_for_its_assignment_is_removed",
        {"2 SyncGroup v*": '"answered"'},
        "When an administrator removes a member, Apache Kafka forgets its SyncGroup, and the client waits "
        "until it gives up. Here the SyncGroup is answered UNKNOWN_MEMBER_ID at once, as a waiting "
        "JoinGroup is.",
    ),
    Accepted(
        "a group does not wait for who was refused",
        "join_group/the_one_that_a_full_group_has_waited_for_is_refused",
        {"6 JoinGroup v*": '"answered"'},
        "When the last member that a rebalance waits for comes back to a full group, Apache Kafka refuses "
        "it and lets the other members wait until the rebalance timeout. Here the others go on at once.",
    ),
    Accepted(
        "the first of two joins is answered",
        "join_group/a_member_joins_twice_at_once",
        {"3 JoinGroup v*": '"answered"'},
        "When a member that waits joins again over another connection, Apache Kafka never answers its "
        "first request. Here the first request is answered REBALANCE_IN_PROGRESS.",
    ),
    Accepted(
        "a topic is created before the answer",
        "metadata/the_first_request_that_names_an_unknown_topic",
        {
            "1 Metadata v*.topics.0.error_code": '"0 NONE"',
            "1 Metadata v*.topics.0.topic_id": '"<topic id 1>"',
            "1 Metadata v*.topics.0.partitions.0": '{"error_code": "0 NONE", "partition_index": 0, '
            '"leader_id": 1, "leader_epoch": 0, "replica_nodes": [1], "isr_nodes": [1], '
            '"offline_replicas": []}',
        },
        "A request that names an unknown topic may create the topic. Apache Kafka answers that the topic "
        "does not exist and creates it meanwhile, so clients ask again; here the first answer already "
        "names the leader.",
    ),
    Accepted(
        "a topic without name and id is a bad request",
        "metadata/a_topic_without_name_and_id_is_refused",
        {
            "1 Metadata v*.topics.0.error_code": '"42 INVALID_REQUEST"',
            "1 Metadata v*.error_code": '"42 INVALID_REQUEST"',
        },
        "Apache Kafka answers UNKNOWN_SERVER_ERROR, which clients take for a fault of the broker; "
        "INVALID_REQUEST names the request as the fault.",
    ),
    Accepted(
        "an empty topic name is an invalid name",
        "describe_topic_partitions/an_empty_name",
        {
            "1 DescribeTopicPartitions v*.topics.0.error_code": '"17 INVALID_TOPIC_EXCEPTION"',
            "1 DescribeTopicPartitions v*.topics.0.topic_authorized_operations": "3576",
        },
        "Apache Kafka answers UNKNOWN_SERVER_ERROR here, and INVALID_TOPIC_EXCEPTION to other invalid names.",
    ),
    Accepted(
        "too many new partitions are refused by a rule",
        "create_partitions/more_partitions_than_one_request_may_make",
        {"1 CreatePartitions v*.results.*.error_code": '"44 POLICY_VIOLATION"'},
        "Apache Kafka answers UNKNOWN_SERVER_ERROR and its controller resigns; CreateTopics answers "
        "POLICY_VIOLATION to the same number of partitions.",
    ),
    Accepted(
        "a resource named twice is refused",
        "alter_configs/a_resource_named_twice",
        {"1 AlterConfigs v*": '"answered"'},
        "Apache Kafka never answers such a request, and the client waits until its own timeout.",
    ),
    Accepted(
        "another place in the network",
        "describe_configs/every_key_of_the_broker",
        {
            f"{CONFIGS}.advertised.listeners.value": "null",
            f"{CONFIGS}.advertised.listeners.config_source": "5",
            f"{CONFIGS}.advertised.listeners.synonyms.0": MISSING,
            f"{CONFIGS}.inter.broker.listener.name.value": "null",
            f"{CONFIGS}.inter.broker.listener.name.config_source": "5",
            f"{CONFIGS}.inter.broker.listener.name.synonyms.0": MISSING,
            f"{CONFIGS}.listener.security.protocol.map.value": EVERY_PROTOCOL,
            f"{CONFIGS}.listener.security.protocol.map.config_source": "5",
            f"{CONFIGS}.listener.security.protocol.map.synonyms.0.value": EVERY_PROTOCOL,
            f"{CONFIGS}.listener.security.protocol.map.synonyms.0.source": "5",
            f"{CONFIGS}.listener.security.protocol.map.synonyms.1": MISSING,
        },
        "The run tells Apache Kafka what to advertise and how its brokers talk; ours needs neither.",
    ),
    Accepted(
        "no listener for the controller",
        "describe_configs/every_key_of_the_broker",
        {
            f"{CONFIGS}.controller.quorum.bootstrap.servers.{what}": ours
            for what, ours in (
                ("value", '""'),
                ("config_source", "5"),
                ("synonyms.0.value", '""'),
                ("synonyms.0.source", "5"),
                ("synonyms.1", MISSING),
            )
        },
        "A single node asks its controller within the process.",
    ),
    Accepted(
        "null instead of records is refused",
        "produce/records_that_are_null",
        {"1 Produce v*": '"answered"'},
        "Apache Kafka fails inside and never answers, so that the producer waits until its own timeout; "
        "here the answer is INVALID_RECORD.",
    ),
    Accepted(
        "a read ends with a whole batch",
        "fetch/a_limit_inside_a_batch",
        {f"1 {PARTITION}.records.1": MISSING, f"2 {PARTITION}.records.2": MISSING},
        "Apache Kafka fills an answer up to the limit with the beginning of one more batch, which clients "
        "throw away. Here the answer ends where a batch ends.",
    ),
    Accepted(
        "a producer is idle when it does not write",
        "describe_producers/a_producer_of_old_records_writes_twice_within_the_time",
        {
            "1 Produce v*.partition_responses.0.base_offset": "0",
            "1 Produce v*.partition_responses.0.log_append_time_ms": "1700000000000",
        },
        "`producer.id.expiration.ms` counts from the last write here, and from the timestamp of the last "
        "record in Apache Kafka. So Apache Kafka forgets a producer of old records at once, and then "
        "takes a batch that is sent twice for a new one.",
    ),
    Accepted(
        "a lost answer is given again",
        "init_producer_id/the_answer_with_the_last_epoch_is_lost",
        {
            "1 InitProducerId v*.error_code": '"0 NONE"',
            "1 InitProducerId v*.producer_id": '"<producer id 1>"',
            "1 InitProducerId v*.producer_epoch": "32766",
        },
        "A producer that asks again because the answer was lost gets the same answer. If the lost answer "
        "had the last epoch of an id, Apache Kafka answers UNKNOWN_SERVER_ERROR instead.",
    ),
    Accepted(
        "a commit that comes too late fences its producer",
        "end_txn/a_commit_after_an_abort",
        {"3 EndTxn v*.error_code": '"90 PRODUCER_FENCED"'},
        "When the coordinator has aborted a transaction because of its time-out and the producer commits it, "
        "Apache Kafka 4.3 answers INVALID_TXN_STATE, which ends a thread of Kafka Streams. PRODUCER_FENCED, "
        "as in later releases (KAFKA-20785), lets Streams go on.",
    ),
    Accepted(
        "a time is looked for behind what was deleted",
        "list_offsets/a_time_in_a_segment_whose_records_are_all_deleted",
        {
            "1 ListOffsets v*.topics.*.partitions.0.timestamp": "1702592000000",
            "1 ListOffsets v*.topics.*.partitions.0.offset": "1",
            "1 ListOffsets v*.topics.*.partitions.0.leader_epoch": "0",
        },
        "Until files with deleted records are removed, Apache Kafka looks for a time only in the first "
        "file that had it, finds nothing, and answers that there is no such record. Here the look-up goes "
        "on.",
    ),
    Accepted(
        "nothing ends before it begins",
        "fetch/the_start_moves_into_the_first_batch_of_an_open_transaction",
        {f"1 {PARTITION}.last_stable_offset": "1"},
        "When records are deleted up to the middle of a transaction's first batch, Apache Kafka's last "
        "stable offset stays at the beginning of that batch, before the log's start. Here the last stable "
        "offset is never before the log's start.",
    ),
    Accepted(
        "a producer id comes with an epoch",
        "produce/a_producer_id_without_an_epoch",
        {
            **refused("[12]", "87 INVALID_RECORD"),
            "2 Produce v*.responses.*.partition_responses.0.log_append_time_ms": "-1",
        },
        "Apache Kafka takes a producer id without an epoch, and remembers a producer that nothing can "
        "fence. Here such a batch is refused, as one without a sequence is.",
    ),
    Accepted(
        "a producer id is not below that of none",
        "produce/a_producer_id_below_that_of_none",
        refused("[12]", "87 INVALID_RECORD"),
        "The producer id -1 stands for none. Apache Kafka stores batches with an id below -1; here such "
        "batches are refused, because no client sends them on purpose.",
    ),
    Accepted(
        "a batch has a million records at most",
        "produce/more_records_than_a_batch_may_have",
        not_looked_at("1"),
        f"A batch that says to have more than {MAX_RECORDS_LOOKED_AT:,} records is refused "
        "(MESSAGE_TOO_LARGE): every record is looked at before it is stored, and a few KB could keep the "
        "broker busy for minutes.",
    ),
    Accepted(
        "a batch is at most 100 MB when decompressed",
        "produce/a_batch_that_is_too_large_when_decompressed",
        not_looked_at("1"),
        f"A batch that decompresses to more than {DEFAULT_LIMIT_BYTES:,} bytes, the largest request that "
        "could have carried it uncompressed, is refused (MESSAGE_TOO_LARGE) before it fills the memory.",
    ),
    Accepted(
        "a thousand bad records are named",
        "produce/a_thousand_bad_records_and_more",
        {
            "1 Produce v*.responses.*.partition_responses.0.record_errors.100[012]": MISSING,
        },
        f"An answer names the first {MAX_RECORD_ERRORS:,} of the records for which a batch is refused.",
    ),
    Accepted(
        "the times of records count, not a claimed append time",
        "produce/an_append_time_that_a_producer_claims",
        {
            f"2 {PARTITION}.records.0.crc": "2833923369",
            f"2 {PARTITION}.records.0.max_timestamp": "1700000000001",
            "[34] ListOffsets v*.topics.*.partitions.0.timestamp": "170000000000[01]",
            "[34] ListOffsets v*.topics.*.partitions.0.offset": "[01]",
            "[34] ListOffsets v*.topics.*.partitions.0.leader_epoch": "0",
        },
        "If a producer's batch claims an append time, Apache Kafka clears that bit and still uses the "
        "time, though the records have other times: look-ups by time miss them, and retention goes by the "
        "claim. Here the times of the records count.",
    ),
    Accepted(
        "a request has a million elements at most",
        "framing/as_many_elements_as_a_request_may_have_and_one_more",
        {"2 ListGroups v4": '"connection closed"'},
        f"A request whose arrays have more than {MAX_ELEMENTS:,} elements is answered by closing the "
        "connection: an empty string is one byte in a request and many in memory.",
    ),
    Accepted(
        "a structure has ten thousand tagged fields at most",
        "framing/as_many_tagged_fields_as_a_request_may_have_and_one_more",
        {"2 ListGroups v4": '"connection closed"'},
        f"A request with more than {MAX_TAGS:,} tagged fields in one place is answered by closing the "
        "connection.",
    ),
    Accepted(
        "a refused batch does not block other producers",
        "produce/a_batch_that_the_coordinator_refused_does_not_block_other_producers",
        {
            "2 Produce v*.responses.*.partition_responses.0.error_code": '"0 NONE"',
            "2 Produce v*.responses.*.partition_responses.0.base_offset": "1",
        },
        "Apache Kafka remembers the refused verification under the producer id, and refuses the next batch "
        "of the producer that owns the id and has a transaction open, until that transaction ends. Here only "
        "the first batch of a transaction waits for a verification.",
    ),
    Accepted(
        "offsets in a batch count up",
        "produce/offsets_inside_a_batch_that_do_not_count_up",
        refused("[12]", "87 INVALID_RECORD"),
        "Apache Kafka stores records whose offsets go back inside their batch. Here they are refused: "
        "neither compaction nor a consumer's position gets over them.",
    ),
    Accepted(
        "nothing stands behind a batch",
        "produce/a_few_bytes_behind_the_batch",
        {
            **refused("[12]", "87 INVALID_RECORD"),
            "[12] Produce v*.responses.*.partition_responses.0.log_start_offset": "-1",
            f"3 {PARTITION}.high_watermark": "0",
            f"3 {PARTITION}.last_stable_offset": "0",
            f"3 {PARTITION}.records.[01]": MISSING,
        },
        "Apache Kafka cuts off bytes behind a batch that are too few for another batch. Here the batch is "
        "refused, because a producer that sends such bytes has a fault.",
    ),
    Accepted(
        "a request about no transactions is answered",
        "add_partitions_to_txn/no_transactions_in_a_request",
        {"1 AddPartitionsToTxn v*": '"answered"'},
        "Apache Kafka never answers a broker that asks about no transactions at all. Here the answer is "
        "empty, too.",
    ),
)

#: The same where each side is a cluster of three nodes (`clusters.py`), beside those of `ACCEPTED`.
OF_SEVERAL_NODES: tuple[Accepted, ...] = (
    Accepted(
        "a new group is described before its first record is committed",
        "describe_groups/a_group_that_waits_for_its_assignment",
        {
            "1 DescribeGroups v*.groups.0.error_*": "*",
            "1 DescribeGroups v*.groups.0.group_state": '"CompletingRebalance"',
            "1 DescribeGroups v*.groups.0.protocol_type": '"consumer"',
            "1 DescribeGroups v*.groups.0.members./": "{*}",
        },
        "Apache Kafka describes a group as it is on all replicas, and so does not know a new group in the "
        "first milliseconds. Here the members of a new group are described at once.",
    ),
    Accepted(
        "a transaction timeout is none of its coordinator's",
        "init_producer_id/timeouts_that_cannot_be",
        {
            "6 InitProducerId v*.error_code": '"0 NONE"',
            "6 InitProducerId v*.producer_id": '"<producer id *>"',
            "6 InitProducerId v*.producer_epoch": "1",
        },
        "Apache Kafka's coordinator gives its followers no more time to take over the state of a "
        "transaction than the transaction has, here 1 ms, and answers COORDINATOR_NOT_AVAILABLE.",
    ),
    Accepted(
        "what a leader knows of a dead voter",
        "describe_quorum/*",
        {
            f"1 DescribeQuorum v*.topics.0.partitions.0.current_voters.0.{field}": "*"
            for field in ("log_end_offset", "last_fetch_timestamp", "last_caught_up_timestamp")
        },
        "A controller that was elected after the death of a voter has never heard from that voter; a "
        "controller that was active before has. Either kind may lead on either side.",
    ),
    Accepted(
        "only replicas are eligible to lead",
        "alter_partition_reassignments/the_replicas_that_a_partition_has",
        {"3 DescribeTopicPartitions v*.topics.0.partitions.0.eligible_leader_replicas.*": MISSING},
        "When a partition is moved onto fewer nodes than min.insync.replicas says, some brokers that were in "
        "sync are no replicas any more. Apache Kafka still calls them eligible, and never elects one.",
    ),
    Accepted(
        "logs of coordinators differ in size",
        "describe_log_dirs/*",
        {f"1 DescribeLogDirs v*.topics.{name}.partitions.*.partition_size": "*" for name in INTERNAL_TOPICS},
        "The logs hold what was written for all earlier conversations, some of which a kill has disturbed.",
    ),
    Accepted(
        "new partitions are placed at random",
        "create_topics/*",
        {
            "*.partitions.*.leader_id": "[123]",
            "*.partitions.*.replica_nodes*": "*[123]*",
            "*.partitions.*.isr_nodes*": "*[123]*",
        },
        "If a request does not say on which nodes replicas are, both controllers draw the first node.",
    ),
    Accepted(
        "replicas stand in the ISR in the order in which they joined",
        "*",
        {"*.isr_nodes.order": "*[123]*"},
        "A node that was killed joins last, unless it was back before it had left.",
        apache="*[123]*",
    ),
)


@dataclass(frozen=True)
class OneNode:
    """Conversations that are not held with several nodes."""

    conversations: str
    reason: str

    def concerns(self, case: Case) -> bool:
        return fnmatchcase(case.conversation.id, self.conversations)


PLACED_AT_RANDOM = "The controller of Apache Kafka draws the node of a new partition, and so who leads it."

FIRST_PARTITION = "It needs a broker that leads the first partition of __consumer_offsets."

NAMES_THE_NODE = "It names the node that it asks, which is the active controller: another one on each side."

MANY_EPOCHS = "It begins 32,000 epochs of a producer, which takes several nodes minutes."

ONE_NODE: tuple[OneNode, ...] = (
    OneNode("delete_records/an_internal_topic", FIRST_PARTITION),
    OneNode("produce/internal_topics_are_not_for_clients", FIRST_PARTITION),
    OneNode("offset_commit/the_empty_group_id_takes_commits_of_simple_consumers", FIRST_PARTITION),
    OneNode("create_partitions/a_topic_grows_by_hand", "The replicas that it names are those of one node."),
    OneNode(
        "metadata/a_topic_that_differs_in_a_dot_alone_is_not_created",
        "Its two names belong to different partitions of coordinators, and then differ in more than a dot.",
    ),
    OneNode("create_partitions/a_topic_grows", PLACED_AT_RANDOM),
    OneNode("metadata/a_just_deleted_topic_is_unknown_before_it_is_created_again", PLACED_AT_RANDOM),
    OneNode("metadata/more_partitions_are_seen", PLACED_AT_RANDOM),
    OneNode("init_producer_id/*_last_epoch*", MANY_EPOCHS),
    OneNode("end_txn/transactions_with_the_last_epochs", MANY_EPOCHS),
    OneNode("streams_group_heartbeat/internal_topics_are_created_as_the_topology_says", PLACED_AT_RANDOM),
    OneNode(
        "describe_configs/what_is_set_for_all_brokers",
        "It waits for a config of broker 1, which only broker 1 describes.",
    ),
    OneNode("metadata/the_first_request_that_names_an_unknown_topic", PLACED_AT_RANDOM),
    OneNode("metadata/naming_an_unknown_topic_creates_it", PLACED_AT_RANDOM),
    OneNode("describe_configs/configs_are_described_over_a_listener_of_controllers", NAMES_THE_NODE),
    OneNode("describe_configs/*_by_a_controller", NAMES_THE_NODE),
    OneNode("incremental_alter_configs/*_by_a_controller", NAMES_THE_NODE),
    OneNode(
        "incremental_alter_configs/a_listener_of_controllers_asks_the_controller_at_once", NAMES_THE_NODE
    ),
    OneNode(
        "describe_configs/loggers_of_another_broker", "The other broker is there, with loggers of its own."
    ),
)
