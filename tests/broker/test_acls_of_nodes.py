"""ACLs in a cluster whose nodes authenticate: controllers decide about the clients of brokers."""

from __future__ import annotations

import asyncio

import pytest

from pykafka_broker.config.authorizer import STANDARD_AUTHORIZER
from pykafka_broker.protocol.acls import AclOperation, AclResourceType, PatternType
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.create_acls import CreateAclsRequest
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.sasl.plain import plain_token
from pykafka_broker.testing.home import until
from pykafka_broker.testing.user import User
from tests.apis.acls import creation
from tests.broker.test_sasl_of_nodes import WITH_PLAIN
from tests.support.clusters import Cluster
from tests.support.sasl import authenticate

#: The nodes are super users, as they have to be in Apache Kafka.
WITH_ACLS = {**WITH_PLAIN, "authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:node"}
NODE, ALICE = plain_token("node", "node-secret"), plain_token("alice", "alice-secret")


async def creating(user: User, topic: str) -> ErrorCode:
    wanted = CreatableTopic(name=topic, num_partitions=1, replication_factor=3, assignments=[], configs=[])
    answer = await user.send(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7)
    return ErrorCode(answer.topics[0].error_code)


@pytest.mark.parametrize("host", ["*", "127.0.0.1", "10.9.8.7"])
async def test_every_broker_passes_on_who_asks_and_from_where(host: str) -> None:
    cluster = Cluster(3, overrides=WITH_ACLS)
    async with cluster.running(), cluster.user_of(1) as root:
        await authenticate(root, NODE)
        for node_id in cluster.homes:
            async with cluster.user_of(node_id) as alice:
                await authenticate(alice, ALICE)
                assert await creating(alice, f"of-{node_id}") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        acls = creation(
            resource_name="of-",
            resource_pattern_type=PatternType.PREFIXED,
            operation=AclOperation.CREATE,
            host=host,
        )
        assert (await root.send(CreateAclsRequest(creations=[acls]), 3)).results[0].error_code == 0
        await until(lambda: all(home.broker.node.image.acls for home in cluster.homes.values()))
        expected = ErrorCode.TOPIC_AUTHORIZATION_FAILED if host == "10.9.8.7" else ErrorCode.NONE
        for node_id in cluster.homes:
            async with cluster.user_of(node_id) as alice:
                await authenticate(alice, ALICE)
                assert await creating(alice, f"of-{node_id}") == expected


async def test_a_record_that_may_be_written_is_acknowledged_by_all_replicas() -> None:
    cluster = Cluster(3, overrides=WITH_ACLS)
    async with cluster.running(), cluster.user_of(1) as root:
        await authenticate(root, NODE)
        assert await creating(root, "orders") == ErrorCode.NONE
        acls = creation(operation=AclOperation.WRITE, resource_type=AclResourceType.TOPIC)
        assert (await root.send(CreateAclsRequest(creations=[acls]), 3)).results[0].error_code == 0
        await until(lambda: all(home.broker.node.image.acls for home in cluster.homes.values()))
        [leader] = {
            home.broker.node.image.topics["orders"].partitions[0].leader for home in cluster.homes.values()
        }
        async with cluster.user_of(leader) as alice:
            await authenticate(alice, ALICE)
            async with asyncio.timeout(30):
                while error := ErrorCode((await alice.try_to_produce("orders", b"one", acks=-1)).error_code):
                    assert error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    await asyncio.sleep(0)
            read = await alice.fetch("orders")
            assert read.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
