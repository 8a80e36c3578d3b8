"""Nodes of one cluster whose active controller is one of them, or moves from one to the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
import pytest_asyncio

from pykafka_broker.apis import APIS
from pykafka_broker.client.aio import FrameStream
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.client.core.frames import request_frame
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.controller.core.events import BrokerHeartbeat, Event
from pykafka_broker.membership.core.heartbeats import Phase
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import (
    add_raft_voter,
    create_acls,
    create_topics,
    delete_acls,
    remove_raft_voter,
)
from pykafka_broker.protocol.messages import alter_client_quotas as quotas
from pykafka_broker.protocol.messages import alter_configs as replacing
from pykafka_broker.protocol.messages import alter_partition_reassignments as reassigning
from pykafka_broker.protocol.messages import alter_user_scram_credentials as scram
from pykafka_broker.protocol.messages import create_partitions as extending
from pykafka_broker.protocol.messages import delete_topics as deleting
from pykafka_broker.protocol.messages import describe_quorum as describing
from pykafka_broker.protocol.messages import elect_leaders as electing
from pykafka_broker.protocol.messages import incremental_alter_configs as altering
from pykafka_broker.protocol.messages import list_partition_reassignments as listing
from pykafka_broker.protocol.messages import update_features as updating
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.protocol.messages.unregister_broker import UnregisterBrokerRequest
from pykafka_broker.replication.replica_manager import ReplicaManager
from pykafka_broker.testing.home import until
from pykafka_broker.testing.user import User
from tests.support.clusters import Cluster

TOPIC, BROKER = 2, 4


def creation(name: str, *, validate_only: bool = False) -> create_topics.CreateTopicsRequest:
    topic = create_topics.CreatableTopic(
        name=name, num_partitions=2, replication_factor=1, assignments=[], configs=[]
    )
    return create_topics.CreateTopicsRequest(topics=[topic], validate_only=validate_only)


def config(name: str, resource_type: int, key: str, value: str | None) -> replacing.AlterConfigsResource:
    return replacing.AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[replacing.AlterableConfig(name=key, value=value)],
    )


def change(name: str, resource_type: int, key: str, value: str | None) -> altering.AlterConfigsResource:
    return altering.AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[altering.AlterableConfig(name=key, config_operation=0, value=value)],
    )


QUORUM_PARTITION = describing.DescribeQuorumRequestPartitionData(partition_index=0)

#: Requests whose answers do not depend on the time, and that leave the cluster as it is.
HARMLESS: list[Any] = [
    VALIDATED := creation("new", validate_only=True),
    creation("no good"),
    deleting.DeleteTopicsRequest(
        topics=[deleting.DeleteTopicState(name="none", topic_id=bytes(16))],
        topic_names=["none"],
        timeout_ms=1_000,
    ),
    extending.CreatePartitionsRequest(
        topics=[extending.CreatePartitionsTopic(name="none", count=3, assignments=None)],
        timeout_ms=1_000,
        validate_only=True,
    ),
    electing.ElectLeadersRequest(
        election_type=0, topic_partitions=[electing.TopicPartitions(topic="none", partitions=[0])]
    ),
    reassigning.AlterPartitionReassignmentsRequest(
        topics=[
            reassigning.ReassignableTopic(
                name="none",
                partitions=[reassigning.ReassignablePartition(partition_index=0, replicas=[1])],
            )
        ]
    ),
    listing.ListPartitionReassignmentsRequest(topics=None),
    describing.DescribeQuorumRequest(
        topics=[describing.DescribeQuorumRequestTopicData(topic_name="none", partitions=[QUORUM_PARTITION])]
    ),
    updating.UpdateFeaturesRequest(
        feature_updates=[updating.FeatureUpdateKey(feature="nonsense.version", max_version_level=1)]
    ),
    UnregisterBrokerRequest(broker_id=99),
    add_raft_voter.AddRaftVoterRequest(
        cluster_id="another", timeout_ms=1_000, voter_id=9, voter_directory_id=b"v" * 16, listeners=[]
    ),
    remove_raft_voter.RemoveRaftVoterRequest(cluster_id="another", voter_id=9, voter_directory_id=b"v" * 16),
    replacing.AlterConfigsRequest(
        resources=[
            config("none", TOPIC, "retention.ms", "5"),
            config("none", BROKER, "log.retention.ms", "5"),
            config("", BROKER, "log.retention.ms", "nonsense"),
            config("twice", TOPIC, "retention.ms", "5"),
            config("", BROKER, "log.retention.ms", "6000"),
            config("twice", TOPIC, "retention.ms", "6"),
        ],
        validate_only=True,
    ),
    altering.IncrementalAlterConfigsRequest(
        resources=[
            change("none", TOPIC, "retention.ms", "5"),
            change("none", BROKER, "log.retention.ms", "5"),
            change("", BROKER, "log.retention.ms", "nonsense"),
            change("twice", TOPIC, "retention.ms", None),
            change("", 77, "a", "b"),
        ],
        validate_only=True,
    ),
    quotas.AlterClientQuotasRequest(
        entries=[
            quotas.AlterClientQuotasRequestEntryData(
                entity=[quotas.EntityData(entity_type=kind, entity_name="alice")],
                ops=[quotas.OpData(key="producer_byte_rate", value=1000.0, remove=False)],
            )
            for kind in ("user", "nonsense")
        ],
        validate_only=True,
    ),
    scram.AlterUserScramCredentialsRequest(
        deletions=[scram.ScramCredentialDeletion(name="none", mechanism=1)], upsertions=[]
    ),
    create_acls.CreateAclsRequest(
        creations=[
            create_acls.AclCreation(
                resource_type=2,
                resource_name="none",
                principal="User:alice",
                host="*",
                operation=3,
                permission_type=3,
            )
        ]
    ),
    delete_acls.DeleteAclsRequest(
        filters=[
            delete_acls.DeleteAclsFilter(
                resource_type_filter=2,
                resource_name_filter="none",
                principal_filter=None,
                host_filter=None,
                operation=1,
                permission_type=1,
            )
        ]
    ),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    """Three nodes of both roles, and a broker."""
    cluster = Cluster(3, brokers=1)
    async with cluster.running():
        yield cluster


async def answer(address: str, frame: bytes) -> bytes:
    """The answer to a request, byte by byte."""
    stream = await FrameStream.open(parse_address(address))
    try:
        stream.write(frame)
        return bytes(await stream.receive())
    finally:
        await stream.close()


def test_every_forwarded_api_is_compared() -> None:
    forwarded = {api.key for api in APIS if api.forwarded}
    assert {request.api_key for request in HARMLESS} == forwarded | {33, 44}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("request_", HARMLESS, ids=lambda request: type(request).__name__)
async def test_a_forwarded_request_is_answered_as_one_to_the_controllers_own_node(
    cluster: Cluster, request_: Any
) -> None:
    leader = await cluster.leader()
    others = [node_id for node_id in cluster.homes if node_id != leader]
    [api] = [api for api in APIS if api.key == request_.api_key]
    # Of a topic that is not created either, the last version tells a random id.
    newest = api.max_version - (request_ is VALIDATED)
    for version in range(api.min_version, newest + 1):
        frame = request_frame(request_, version, 77, "a client")
        expected = await answer(cluster.broker(leader).bootstrap_servers, frame)
        for node_id in others:
            assert await answer(cluster.broker(node_id).bootstrap_servers, frame) == expected, version


@pytest.mark.asyncio(loop_scope="module")
async def test_topics_are_created_changed_and_deleted_through_any_broker(cluster: Cluster) -> None:
    for node_id in cluster.homes:
        async with cluster.user_of(node_id) as user:
            name = f"through-{node_id}"
            created = await user.send(creation(name), 7)
            assert (created.topics[0].error_code, created.topics[0].num_partitions) == (0, 2)
            longer = change(name, TOPIC, "retention.ms", "5000")
            altered = await user.send(
                altering.IncrementalAlterConfigsRequest(resources=[longer], validate_only=False), 1
            )
            assert [each.error_code for each in altered.responses] == [0]
            deleted = await user.send(
                deleting.DeleteTopicsRequest(
                    topics=[deleting.DeleteTopicState(name=name, topic_id=bytes(16))],
                    topic_names=[],
                    timeout_ms=1_000,
                ),
                6,
            )
            assert [each.error_code for each in deleted.responses] == [0]


@pytest.mark.asyncio(loop_scope="module")
async def test_topics_are_created_on_demand_through_any_broker(cluster: Cluster) -> None:
    for node_id in cluster.homes:
        async with cluster.user_of(node_id) as user:
            asked = [MetadataRequestTopic(name=f"demanded-{node_id}")]
            await user.send(MetadataRequest(topics=asked, allow_auto_topic_creation=True), 9)
            shown = await user.send(MetadataRequest(topics=asked, allow_auto_topic_creation=False), 9)
            assert [(topic.name, topic.error_code) for topic in shown.topics] == [(f"demanded-{node_id}", 0)]


@pytest.mark.asyncio(loop_scope="module")
async def test_brokers_give_out_producer_ids_of_blocks_of_their_own(cluster: Cluster) -> None:
    ids: list[int] = []
    for node_id in cluster.homes:
        async with cluster.user_of(node_id) as user:
            for _ in range(3):
                given = await user.send(
                    InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000), 4
                )
                assert given.error_code == 0
                ids.append(given.producer_id)
    assert len(set(ids)) == 12
    assert len({producer_id // 1_000 for producer_id in ids}) == 4


@pytest.mark.asyncio(loop_scope="module")
async def test_all_nodes_are_registered_and_unfenced(cluster: Cluster) -> None:
    node = cluster.broker(4).node
    # A controller serves before it is registered.
    await until(lambda: sorted(node.image.controllers) == [1, 2, 3])
    await cluster.agree(cluster.homes)
    brokers = node.image.brokers.values()
    assert {b.broker_id: b.fenced for b in brokers} == dict.fromkeys((1, 2, 3, 4), False)


class Silent:
    """A channel over which no heartbeat comes any more, until it is free."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self.free = asyncio.Event()

    async def ask(self, event: Event, timeout_ms: int | None = None) -> Any:
        if isinstance(event, BrokerHeartbeat):
            await self.free.wait()
        return await self._channel.ask(event, timeout_ms)


async def test_a_broker_has_started_when_its_own_metadata_shows_it_to_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The controller's answer to its heartbeat comes some time before."""
    prepare = ReplicaManager.prepare

    def slow(self: ReplicaManager, image: ClusterImage) -> Awaitable[None] | None:
        if self._node_id == 2 and 2 in image.brokers and not image.brokers[2].fenced:
            return asyncio.sleep(0.5)
        return prepare(self, image)

    monkeypatch.setattr(ReplicaManager, "prepare", slow)
    cluster = Cluster(combined=1, brokers=1)
    async with cluster.running():
        assert not cluster.broker(2).node.image.brokers[2].fenced


@pytest.mark.asyncio(loop_scope="module")
async def test_a_broker_that_falls_silent_is_fenced_and_comes_back(cluster: Cluster) -> None:
    lifecycle = cluster.broker(4).node.broker.lifecycle
    channel = lifecycle._controller
    silent = Silent(channel)
    lifecycle._controller = silent
    node = cluster.broker(1).node
    await until(lambda: node.image.brokers[4].fenced)

    silent.free.set()

    await until(lambda: not node.image.brokers[4].fenced)
    lifecycle._controller = channel
    assert lifecycle.phase is Phase.RUNNING


async def create_until(user: User, enough: asyncio.Event, prefix: str) -> list[str]:
    """Create topics one after the other; the names of those that were acknowledged."""
    created: list[str] = []
    while not enough.is_set():
        name = f"{prefix}-{len(created)}"
        answer = await user.send(creation(name), 7)
        # A request that was sent again may find its own topic.
        assert answer.topics[0].error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS), answer
        created.append(name)
    return created


async def test_clients_go_on_creating_topics_while_the_active_controller_stops_and_comes_back() -> None:
    cluster = Cluster(3, brokers=1)
    async with cluster.running():
        first = await cluster.leader()
        others = [node_id for node_id in cluster.controllers if node_id != first]
        async with cluster.user_of(4) as elsewhere, cluster.user_of(others[0]) as beside:
            enough = asyncio.Event()
            work = [
                asyncio.ensure_future(create_until(user, enough, prefix))
                for user, prefix in ((elsewhere, "elsewhere"), (beside, "beside"))
            ]
            await until(lambda: len(cluster.broker(4).node.image.topics) > 10)

            await cluster.broker(first).stop()
            second = await cluster.leader(*others)
            before = len(cluster.broker(4).node.image.topics)
            await until(lambda: len(cluster.broker(4).node.image.topics) > before + 10)
            await cluster.start(first)
            enough.set()
            created = [name for names in await asyncio.gather(*work) for name in names]

        await cluster.agree(cluster.homes)
        image = cluster.broker(first).node.image
        assert set(created) <= set(image.topics)
        assert second != first
        assert not any(broker.fenced for broker in image.brokers.values())
