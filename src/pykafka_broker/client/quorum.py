"""The quorum of controllers behind the metadata log: DescribeQuorum, which only its leader answers.

Over the blocking client, whose time-out bounds the wait: a broker that finds no leader keeps looking. A
pykafka_broker node that is sure that there is no leader answers at once with what it knows
(`apis/describe_quorum.py`). If controllers are asked, the one that answers lists the controllers it knows.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.controllers import Controllers
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.core.connection import check
from pykafka_broker.client.core.retries import RETRIABLE
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, error_of
from pykafka_broker.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC
from pykafka_broker.system.named_tuple import NamedTuple

#: The time-out of an answer that a command can do without. The question is asked twice, as an election takes
#: less time.
QUORUM_WITHIN_S = 3.0


class QuorumStatus(NamedTuple):
    """The quorum of the metadata log, as its leader describes it."""

    leader_id: int
    leader_epoch: int
    voters: list[int]
    #: The lag of the slowest voter, in records of the metadata log.
    max_follower_lag: int


class LostQuorum(NamedTuple):
    """A quorum without a leader, as far as the asked node knows it."""

    #: The node that was asked; None, as all fields below, if it tells nothing.
    node_id: int | None = None
    #: The time since a leader last answered that broker, and hence the age of its knowledge. A controller
    #: tells neither this nor an epoch.
    age_ms: int | None = None
    leader_epoch: int | None = None
    #: The addresses of the voters; if a controller was asked, of all registered controllers.
    voters: Mapping[int, list[Address]] | None = None


def describe_quorum(client: Client) -> DescribeQuorumResponse:
    """The answer of the leader, without an error.

    Raises:
        KafkaError, OSError: there is no leader, it does not answer, or it refuses.
    """
    answer = _answer(client)
    if answer.error_code and answer.topics:
        raise KafkaError(error_of(answer.error_code), "Only the leader of the quorum describes it.")
    check(answer.error_code, answer.error_message)
    described = answer.topics[0].partitions[0]
    check(described.error_code, described.error_message)
    return answer


def quorum_status(client: Client) -> QuorumStatus | LostQuorum:
    """The status from the leader; if no leader is found, what the asked node knows. Retries as `retrying`: a
    cluster that has not answered this client yet is asked once.

    Raises:
        KafkaError: the cluster does not serve the request, or not to this client.
    """
    try:
        return client.retrying(lambda: _asked(client))
    except OSError:
        return _known(client)
    except KafkaError as error:
        if error.code in RETRIABLE or error.code == ErrorCode.BROKER_NOT_AVAILABLE:
            return _known(client)
        raise


def _asked(client: Client) -> QuorumStatus | LostQuorum:
    try:
        return _status(_answer(client))
    except KafkaError:
        # A controller that waits for the quorum is sure that none leads.
        if isinstance(client, Controllers) and client.waits:
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
    # Only the entry of the asked node has times, both by its own clock.
    for own in (*described.current_voters, *described.observers):
        if own.last_fetch_timestamp >= 0:
            age_ms = max(0, own.last_fetch_timestamp - own.last_caught_up_timestamp)
            return LostQuorum(own.replica_id, age_ms, described.leader_epoch, voters)
    return LostQuorum(None, None, described.leader_epoch, voters)
