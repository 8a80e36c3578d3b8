"""The quorum of controllers behind the metadata log: DescribeQuorum, which its leader alone answers.

Over the blocking client, whose time-out bounds the wait: a broker that finds no leader goes on looking.
"""

from __future__ import annotations

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.connection import check
from pykafka_broker.client.retries import RETRIABLE
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from pykafka_broker.system.named_tuple import NamedTuple

METADATA_TOPIC = "__cluster_metadata"
#: How long an answer may take where a command goes on without. It is asked twice: an election takes less.
QUORUM_WITHIN_S = 3.0


class QuorumStatus(NamedTuple):
    """The quorum of the metadata log, as its leader tells."""

    leader_id: int
    leader_epoch: int
    voters: list[int]
    #: In records of the metadata log, of the last voter.
    max_follower_lag: int


def describe_quorum(client: Client) -> DescribeQuorumResponse:
    """The answer of the leader, without an error.

    Raises:
        KafkaError, OSError: there is none, it does not answer, or it refuses.
    """
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    answer: DescribeQuorumResponse = client.send(DescribeQuorumRequest(topics=[topic]))
    check(answer.error_code, answer.error_message)
    described = answer.topics[0].partitions[0]
    check(described.error_code, described.error_message)
    return answer


def quorum_status(client: Client) -> QuorumStatus | None:
    """What the leader tells; None if no leader is found. It is asked as by `retrying`: once, if the cluster
    has not answered this client yet.

    Raises:
        KafkaError: the cluster does not tell, or not this client.
    """
    try:
        answer = client.retrying(lambda: describe_quorum(client))
    except OSError:
        return None
    except KafkaError as error:
        if error.code in RETRIABLE or error.code == ErrorCode.BROKER_NOT_AVAILABLE:
            return None
        raise
    described = answer.topics[0].partitions[0]
    ends = {voter.replica_id: voter.log_end_offset for voter in described.current_voters}
    lag = max(ends.values(), default=0) - min(ends.values(), default=0)
    return QuorumStatus(described.leader_id, described.leader_epoch, sorted(ends), lag)
