"""Where we differ from Apache Kafka on purpose, each with the reason that `docs/conformance.md` prints.

An entry names conversations ("api/name") and the paths of differences in them, both as glob patterns. One
that no difference matches any more is stale and fails the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from interop.conformance.compare import Difference
from interop.conformance.conversation import Case


@dataclass(frozen=True)
class Accepted:
    name: str
    conversations: str
    paths: str
    #: Why, in words for users.
    reason: str
    #: What ours says there, as a glob pattern as well.
    ours: str = "*"

    def concerns(self, case: Case) -> bool:
        return fnmatchcase(case.conversation.id, self.conversations)

    def matches(self, case: Case, difference: Difference) -> bool:
        return (
            self.concerns(case)
            and fnmatchcase(difference.path, self.paths)
            and fnmatchcase(difference.ours, self.ours)
        )


ACCEPTED: tuple[Accepted, ...] = (
    Accepted(
        "aborted transactions are named by their start",
        "fetch/aborted_transactions_that_did_not_end_as_they_began",
        "* Fetch v*.aborted_transactions*",
        "Apache Kafka names them in the order of their ends, and older clients that do not sort the list "
        "show records that were aborted. Sorted by their start, every client is right.",
    ),
    Accepted(
        "an API is not served yet",
        "api_versions/*",
        "* ApiVersions v*.api_keys.*",
        "Only what works is listed: ACLs, SASL, quotas, share and streams groups and the moving of replicas "
        "are to come.",
        ours="(missing)",
    ),
    Accepted(
        "an assignment that nobody can read",
        "consumer_group_heartbeat/a_classic_group_whose_assignment_nobody_can_read_is_not_upgraded",
        "1 ConsumerGroupHeartbeat v*.error_*",
        "Apache says UNKNOWN_SERVER_ERROR; GROUP_ID_NOT_FOUND with a sentence tells what to look for.",
    ),
    Accepted(
        "a subscription that nobody can read",
        "join_group/a_subscription_that_nobody_can_read",
        "2 JoinGroup v*",
        "A member whose subscription claims more topics than it has bytes is never answered by Apache, nor "
        "is anybody else in its group until they time out. Ours answers: what members bring is their affair.",
    ),
    Accepted(
        "a feature is not supported yet",
        "api_versions/*",
        "* ApiVersions v*.*_features.*",
        "The level of a feature is raised when what it promises works.",
    ),
    Accepted(
        "a topic is created before the answer",
        "metadata/the_first_request_that_names_an_unknown_topic",
        "1 Metadata v*.topics.0.*",
        "Naming an unknown topic may create it. Apache Kafka answers that it does not exist and creates it "
        "meanwhile, so clients ask again; here the first answer already names the leader.",
    ),
    Accepted(
        "a topic without name and id is a bad request",
        "metadata/a_topic_without_name_and_id_is_refused",
        "1 Metadata v*error_code",
        "Apache Kafka stumbles and answers UNKNOWN_SERVER_ERROR, which clients take for the broker's fault; "
        "INVALID_REQUEST says whose fault it is.",
        ours='"42 INVALID_REQUEST"',
    ),
    Accepted(
        "an empty topic name is an invalid name",
        "describe_topic_partitions/an_empty_name",
        "1 DescribeTopicPartitions v0.topics.0.*",
        "Apache Kafka stumbles and answers UNKNOWN_SERVER_ERROR; INVALID_TOPIC_EXCEPTION is what it says of "
        "other names that cannot be.",
    ),
    Accepted(
        "too many new partitions are refused by a rule",
        "create_partitions/more_partitions_than_one_request_may_make",
        "1 CreatePartitions v*.results.*",
        "Apache Kafka answers UNKNOWN_SERVER_ERROR and its controller resigns; POLICY_VIOLATION is what "
        "CreateTopics answers to as many.",
    ),
    Accepted(
        "a resource named twice is refused",
        "alter_configs/a_resource_named_twice",
        "1 AlterConfigs v*",
        "Apache Kafka never answers such a request, and the client waits until it gives up.",
        ours='"answered"',
    ),
    Accepted(
        "another place in the network",
        "describe_configs/every_key_of_the_broker",
        "1 DescribeConfigs v*.results.0.configs.*listener*",
        "The two brokers of the run have listeners of their own, and ours needs none for its controller.",
    ),
    Accepted(
        "no listener for the controller",
        "describe_configs/every_key_of_the_broker",
        "1 DescribeConfigs v*.results.0.configs.controller.quorum.bootstrap.servers.*",
        "A single node asks its controller within the process.",
    ),
    Accepted(
        "null instead of records is refused",
        "produce/records_that_are_null",
        "1 Produce v13",
        "Apache Kafka fails inside and never answers, so that the producer waits until its own timeout; here "
        "it is told INVALID_RECORD.",
        ours='"answered"',
    ),
    Accepted(
        "a read ends with a whole batch",
        "fetch/a_limit_inside_a_batch",
        "* Fetch v*.records.*",
        "Apache Kafka fills an answer up to the limit with the beginning of one more batch, which clients "
        "throw away. Here the answer ends where a batch ends.",
        ours="(missing)",
    ),
    Accepted(
        "a producer id comes with an epoch",
        "produce/a_producer_id_without_an_epoch",
        "* Produce v13.responses.*",
        "Apache Kafka takes a producer id without an epoch, and remembers a producer that nothing can fence. "
        "It is refused as one without a sequence is.",
    ),
    Accepted(
        "offsets in a batch count up",
        "produce/offsets_inside_a_batch_that_do_not_count_up",
        "* Produce v13.responses.*",
        "Apache Kafka stores records whose offsets go back inside their batch. Here they are refused: "
        "neither compaction nor a consumer's position gets over them.",
    ),
    Accepted(
        "nothing stands behind a batch",
        "produce/a_few_bytes_behind_the_batch",
        "*",
        "Apache Kafka cuts off what stands behind a batch and is too short for another one. A producer that "
        "sends it has lost count, and is told so.",
    ),
    Accepted(
        "a request about no transactions is answered",
        "add_partitions_to_txn/no_transactions_in_a_request",
        "1 AddPartitionsToTxn v5",
        "Apache Kafka never answers a broker that asks about no transactions at all. Here the answer is as "
        "empty as the question.",
        ours='"answered"',
    ),
)
