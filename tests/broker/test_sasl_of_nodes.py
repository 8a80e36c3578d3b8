"""Nodes that authenticate to each other, on the listeners of brokers and of controllers."""

from __future__ import annotations

import asyncio

from pykafka_broker.broker.formatting import NewCluster, format_directories
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import create_topics as creation
from pykafka_broker.testing.user import User
from tests.support.clusters import Cluster
from tests.support.sasl import authenticate, principals

MODULES = "org.apache.kafka.common.security"
PLAIN_USER = (
    f"{MODULES}.plain.PlainLoginModule required "
    'username="node" password="node-secret" user_node="node-secret" user_alice="alice-secret";'
)
#: Both listeners ask for SASL/PLAIN.
WITH_PLAIN = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": PLAIN_USER,
    "listener.name.controller.plain.sasl.jaas.config": PLAIN_USER,
}
#: Brokers use SCRAM among themselves; controllers elect their leader before there are credentials.
WITH_SCRAM = {
    **WITH_PLAIN,
    "listener.name.plaintext.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
    "listener.name.plaintext.scram-sha-256.sasl.jaas.config": (
        f'{MODULES}.scram.ScramLoginModule required username="replica" password="replica-secret";'
    ),
}


async def replicated(cluster: Cluster, user: User, topic: str) -> None:
    """A record of a topic with a replica on every node is acknowledged by all."""
    nodes = list(cluster.homes)
    assignment = creation.CreatableReplicaAssignment(partition_index=0, broker_ids=nodes)
    wanted = creation.CreatableTopic(
        name=topic,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[assignment],
        configs=[creation.CreatableTopicConfig(name="min.insync.replicas", value=str(len(nodes)))],
    )
    answer = await user.send(creation.CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7)
    assert ErrorCode(answer.topics[0].error_code) == ErrorCode.NONE
    async with asyncio.timeout(30):
        while error := ErrorCode((await user.try_to_produce(topic, b"one", acks=-1)).error_code):
            assert error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            await asyncio.sleep(0)


async def test_brokers_and_controllers_authenticate_with_plain() -> None:
    cluster = Cluster(3, overrides=WITH_PLAIN)
    async with cluster.running(), cluster.user_of(1) as user:
        await authenticate(user)
        await replicated(cluster, user, "orders")
        for home in cluster.homes.values():
            assert {"User:node"} <= set(principals(home)) <= {"User:node", "User:alice"}


async def test_brokers_authenticate_with_scram() -> None:
    cluster = Cluster(3, overrides=WITH_SCRAM)
    users = NewCluster(scram=("SCRAM-SHA-256=[name=replica,password=replica-secret]",))
    for home in cluster.homes.values():
        format_directories(home.files, home.config(), now_ms=0, ignore_formatted=False, new=users)
    async with cluster.running(), cluster.user_of(1) as user:
        await authenticate(user)
        await replicated(cluster, user, "orders")
        assert "User:replica" in principals(cluster.homes[1])
