"""DescribeQuorum (55): a quorum of one is led, voted and known by its only node."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.describe_quorum import describe_quorum
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Node,
    ReplicaState,
)
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
