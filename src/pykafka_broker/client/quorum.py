"""The quorum of controllers behind the metadata log: DescribeQuorum, which its leader alone answers.

Over the blocking client, whose time-out bounds the wait: a broker that finds no leader goes on looking. One
of this kind that is sure that there is none says at once what it knows (`apis/describe_quorum.py`). Where
controllers are asked, one that answers names those that it knows.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.controllers import Controllers
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.core.connection import check
from pykafka_broker.client.core.retries import RETRIABLE
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


class LostQuorum(NamedTuple):
    """A quorum without a leader, as far as the node that was asked tells what it knows of it."""

    #: The node that was asked; None where it tells nothing, as all below.
    node_id: int | None = None
    #: The time since a controller that led has answered that broker: what it knows is from then. A controller
    #: does not tell it, nor an epoch.
    age_ms: int | None = None
    leader_epoch: int | None = None
    #: Where the controllers that vote are reached; told by a controller, all that have registered.
    voters: Mapping[int, list[Address]] | None = None


def describe_quorum(client: Client) -> DescribeQuorumResponse:
    """The answer of the leader, without an error.

    Raises:
        KafkaError, OSError: there is none, it does not answer, or it refuses.
    """
    answer = _answer(client)
    if answer.error_code and answer.topics:
        raise KafkaError(ErrorCode(answer.error_code), "Only the leader of the quorum describes it.")
    check(answer.error_code, answer.error_message)
    described = answer.topics[0].partitions[0]
    check(described.error_code, described.error_message)
    return answer


def quorum_status(client: Client) -> QuorumStatus | LostQuorum:
    """What the leader tells; if no leader is found, what the node that was asked knows. It is asked as by
    `retrying`: once, if the cluster has not answered this client yet.

    Raises:
        KafkaError: the cluster does not tell, or not this client.
    """
    try:
        return client.retrying(lambda: _status(_answer(client)))
    except OSError:
        return _known(client)
    except KafkaError as error:
        if error.code in RETRIABLE or error.code == ErrorCode.BROKER_NOT_AVAILABLE:
            return _known(client)
        raise


def _known(client: Client) -> LostQuorum:
    """What is known of a quorum whose leader does not answer."""
    if not isinstance(client, Controllers) or not client.brokers.addresses:
        return LostQuorum()
    known = client.brokers.addresses
    asked = next((node_id for node_id, at in known.items() if str(at) == client.asked), None)
    return LostQuorum(asked, voters={node_id: [address] for node_id, address in known.items()})


def _answer(client: Client) -> DescribeQuorumResponse:
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    answer: DescribeQuorumResponse = client.send(DescribeQuorumRequest(topics=[topic]))
    return answer


def _status(answer: DescribeQuorumResponse) -> QuorumStatus | LostQuorum:
    if answer.error_code and answer.topics:
        return _lost(answer)
    check(answer.error_code, answer.error_message)
    described = answer.topics[0].partitions[0]
    check(described.error_code, described.error_message)
    ends = {voter.replica_id: voter.log_end_offset for voter in described.current_voters}
    lag = max(ends.values(), default=0) - min(ends.values(), default=0)
    return QuorumStatus(described.leader_id, described.leader_epoch, sorted(ends), lag)


def _lost(answer: DescribeQuorumResponse) -> LostQuorum:
    described = answer.topics[0].partitions[0]
    addresses = {
        node.node_id: [Address(one.host, one.port) for one in node.listeners] for node in answer.nodes
    }
    voters = {voter.replica_id: addresses.get(voter.replica_id, []) for voter in described.current_voters}
    # The one that was asked has times, both by its own clock.
    for own in (*described.current_voters, *described.observers):
        if own.last_fetch_timestamp >= 0:
            age_ms = max(0, own.last_fetch_timestamp - own.last_caught_up_timestamp)
            return LostQuorum(own.replica_id, age_ms, described.leader_epoch, voters)
    return LostQuorum(None, None, described.leader_epoch, voters)
