"""Topics and their configs: made, changed, refused, deleted."""

from __future__ import annotations

from functools import partial

from interop.clients.client import Client, Record
from interop.world import World, eventually, refused_with

UNKNOWN_TOPIC, INVALID_TOPIC, TOPIC_EXISTS = 3, 17, 36
INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_CONFIG = 37, 38, 40


def every_client_sees_the_same_cluster(world: World, client: Client) -> None:
    cluster = client.cluster()
    assert len(cluster.cluster_id) == 22
    assert {address for _, address in cluster.brokers} == set(world.entrance.address.split(","))
    assert cluster.controller_id in dict(cluster.brokers)
    told = {(other.cluster().cluster_id, other.cluster().brokers) for other in world.able("cluster")}
    assert told == {(cluster.cluster_id, cluster.brokers)}


def a_topic_is_created_with_its_configs(world: World, client: Client) -> None:
    """Seen by all clients, wherever they ask: a broker may know a topic a moment later than another one."""
    topic = world.topic(client, partitions=3, retention_ms="999999999", cleanup_policy="compact")
    expected = {
        "retention.ms": ("999999999", False),
        "cleanup.policy": ("compact", False),
        "segment.bytes": ("1073741824", True),
    }

    def is_seen_by(reader: Client) -> bool:
        return topic in reader.topics() and reader.partitions(topic) == 3

    def is_configured_for(reader: Client) -> bool:
        return expected.items() <= reader.config(topic).items()

    for reader in world.clients.values():
        eventually(partial(is_seen_by, reader), f"{reader.name} sees the topic")
    for reader in world.able("config"):
        eventually(partial(is_configured_for, reader), f"{reader.name} sees the configs")


def impossible_topics_are_refused(world: World, client: Client) -> None:
    topic = world.topic(client)
    with refused_with(TOPIC_EXISTS):
        client.create_topic(topic)
    with refused_with(INVALID_TOPIC):
        client.create_topic("not a name")
    with refused_with(INVALID_PARTITIONS):
        client.create_topic(world.name("none"), partitions=0)
    with refused_with(INVALID_REPLICATION_FACTOR):
        client.create_topic(world.name("many"), replication_factor=7)
    with refused_with(INVALID_CONFIG):
        client.create_topic(world.name("config"), configs={"retention.ms": "soon"})


def partitions_only_grow(world: World, client: Client) -> None:
    topic = world.topic(client, partitions=2)
    client.add_partitions(topic, 5)
    world.await_topic(client, topic, 5)
    client.produce(topic, [Record(b"new", partition=4)])
    assert [record.value for record in client.read(topic, (4,))] == [b"new"]
    for total in (5, 1):
        with refused_with(INVALID_PARTITIONS):
            client.add_partitions(topic, total)
    with refused_with(UNKNOWN_TOPIC):
        client.add_partitions(world.name("missing"), 2)


def configs_are_changed_while_running(world: World, client: Client) -> None:
    topic = world.topic(client)
    client.set_config(topic, "max.message.bytes", "2000")
    eventually(lambda: client.config(topic)["max.message.bytes"] == ("2000", False), "the config is changed")
    with refused_with(10):
        client.produce(topic, [Record(bytes(range(250)) * 20)])
    with refused_with(INVALID_CONFIG):
        client.set_config(topic, "retention.ms", "soon")


def a_deleted_topic_is_gone_and_its_name_is_free(world: World, client: Client) -> None:
    topic = world.topic(client, partitions=2)
    client.produce(topic, [Record(b"old"), Record(b"old", partition=1)])
    client.delete_topic(topic)
    eventually(lambda: topic not in client.topics(), "the topic is gone")
    with refused_with(UNKNOWN_TOPIC):
        client.delete_topic(topic)
    client.create_topic(topic, 2)
    world.await_topic(client, topic, 2)
    assert client.produce(topic, [Record(b"new")]) == [0]
    for reader in world.clients.values():
        assert [record.value for record in reader.read(topic, (0, 1))] == [b"new"], reader.name
