"""DescribeQuorum (55): a quorum of one is led, voted and known by its only node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pykafka_broker.apis.describe_quorum import describe_quorum, without_leader
from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from pykafka_broker.raft.core.describe import QuorumStatus, ReplicaStatus
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.quorum_description import QuorumDescription
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import ends, every

METADATA = "__cluster_metadata"


def asking(*topics: tuple[str, list[int]]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=[
            DescribeQuorumRequestTopicData(
                topic_name=name,
                partitions=[DescribeQuorumRequestPartitionData(partition_index=index) for index in indexes],
            )
            for name, indexes in topics
        ]
    )


THE_QUORUM = asking((METADATA, [0]))


@pytest.mark.parametrize("version", every(describe_quorum))
async def test_the_only_node_leads_and_votes(home: Home, user: User, version: int) -> None:
    await user.create_topic("t")
    node, now_ms = home.broker.node, home.clock.now_ms()
    end_offset = node.image.offset + 1

    answer = await user.send(THE_QUORUM, version)

    voter = ReplicaState(replica_id=1, log_end_offset=end_offset)
    nodes = []
    if version >= 1:
        voter.last_fetch_timestamp = voter.last_caught_up_timestamp = now_ms
    if version >= 2:
        voter.replica_directory_id = node.logs.dirs.metadata.directory_id
        nodes = [Node(node_id=1, listeners=[])]
    text = "" if version >= 2 else None
    assert answer == DescribeQuorumResponse(
        error_code=0,
        error_message=text,
        topics=[
            DescribeQuorumResponseTopicData(
                topic_name=METADATA,
                partitions=[
                    DescribeQuorumResponsePartitionData(
                        partition_index=0,
                        error_code=0,
                        error_message=text,
                        leader_id=1,
                        leader_epoch=node.image.epoch,
                        high_watermark=end_offset,
                        current_voters=[voter],
                        observers=[],
                    )
                ],
            )
        ],
        nodes=nodes,
    )


async def test_the_only_node_is_reached_where_it_listens_for_controllers(home: Home) -> None:
    """localhost:9093, which formatting wrote down, was named whether anything listened there or not."""
    async with home.running() as user:
        assert [node.listeners for node in (await user.send(THE_QUORUM, 2)).nodes] == [[]]
    listeners = {"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"}
    again = Home({**home.overrides, **listeners}, files=home.files, clock=home.clock, listen=None)
    async with again.running() as user:
        host, port = again.broker.node.listeners.advertised("CONTROLLER")
        [node] = (await user.send(THE_QUORUM, 2)).nodes
        assert [(one.name, one.host, one.port) for one in node.listeners] == [("CONTROLLER", host, port)]


@pytest.mark.parametrize("version", every(describe_quorum))
def test_a_broker_that_is_sure_that_none_leads_says_what_it_knows(version: int) -> None:
    """It looked for a leader until the client gave up, and nothing told how old its metadata was."""
    own = ReplicaStatus(ReplicaKey(3, b"d" * 16), 77, 40_000, 4_100)
    other = ReplicaStatus(ReplicaKey(1), -1, -1, -1)
    status = QuorumStatus(-1, 7, 70, (other, own), ())
    quorum = QuorumDescription(status, {1: {"CONTROLLER": ("kafka-1", 9093)}, 3: {}})
    forwarding = SimpleNamespace(lost_quorum=lambda: quorum)
    ctx: Any = SimpleNamespace(node=SimpleNamespace(forwarding=forwarding))

    answer, _ = decode(DescribeQuorumResponse, version, encode(without_leader(THE_QUORUM, ctx), version))

    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    [described] = answer.topics[0].partitions
    assert (described.error_code, described.leader_id, described.leader_epoch) == (0, -1, 7)
    assert [(one.replica_id, one.log_end_offset) for one in described.current_voters] == [(1, -1), (3, 77)]
    times = [(one.last_fetch_timestamp, one.last_caught_up_timestamp) for one in described.current_voters]
    assert times == [(-1, -1), (40_000, 4_100) if version >= 1 else (-1, -1)]
    if version >= 2:
        assert answer.error_message == "No controller leads: none has answered broker 3 for 35 s."
        assert answer.nodes[0] == Node(
            node_id=1, listeners=[Listener(name="CONTROLLER", host="kafka-1", port=9093)]
        )


@pytest.mark.parametrize("version", ends(describe_quorum))
async def test_the_metadata_log_grows_with_every_change(user: User, version: int) -> None:
    before = (await user.send(THE_QUORUM, version)).topics[0].partitions[0]
    await user.create_topic("t", 5)
    after = (await user.send(THE_QUORUM, version)).topics[0].partitions[0]

    assert after.high_watermark == before.high_watermark + 6


@pytest.mark.parametrize(
    "topics",
    [
        [(METADATA, [1])],
        [(METADATA, [0, 0])],
        [(METADATA, [0]), ("t", [0])],
        [("t", [0, 3]), (METADATA, [])],
        [(METADATA, [])],
        [],
    ],
)
@pytest.mark.parametrize("version", ends(describe_quorum))
async def test_only_the_metadata_log_alone_has_a_quorum(
    user: User, version: int, topics: list[tuple[str, list[int]]]
) -> None:
    await user.create_topic("t")

    answer = await user.send(asking(*topics), version)

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (answer.error_code, answer.nodes) == (0, [])
    assert [
        (topic.topic_name, [(part.partition_index, part.error_code) for part in topic.partitions])
        for topic in answer.topics
    ] == [(name, [(index, unknown) for index in indexes]) for name, indexes in topics]
    if version >= 2:
        texts = {part.error_message for topic in answer.topics for part in topic.partitions}
        assert texts <= {unknown.message}


async def test_a_node_that_leads_no_more_says_so(user: User) -> None:
    refused = describe_quorum.error_response
    assert refused is not None
    answer = refused(THE_QUORUM, KafkaError(ErrorCode.NOT_CONTROLLER))

    assert (answer.error_code, answer.topics) == (ErrorCode.NOT_CONTROLLER, [])
