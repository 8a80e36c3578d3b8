"""What a client may not do on a secured broker, and how it is told so: the error code of the broker."""

from __future__ import annotations

import time

from interop.clients.client import Client, Record
from interop.world import World, refused_with

TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED = 29, 30
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53

#: A client that is not told by then is never told.
PATIENCE_S = 20.0


def name_of_others(world: World) -> str:
    return f"others-{world.name('name')}"


def topic_of_others(world: World) -> str:
    """A new topic that no ACL is about."""
    topic = name_of_others(world)
    world.maker.create_topic(topic, replication_factor=world.nodes)
    world.await_topic(world.maker, topic)
    return topic


def a_topic_of_others_is_not_written(world: World, client: Client) -> None:
    topic = topic_of_others(world)
    with refused_with(TOPIC_AUTHORIZATION_FAILED):
        client.produce(topic, [Record(b"not allowed")])
    assert world.maker.end(topic) == 0


def a_topic_of_others_is_not_read(world: World, client: Client) -> None:
    topic = topic_of_others(world)
    with refused_with(TOPIC_AUTHORIZATION_FAILED):
        client.read(topic)


def no_topic_is_made_with_a_name_of_others(world: World, client: Client) -> None:
    topic = name_of_others(world)
    with refused_with(TOPIC_AUTHORIZATION_FAILED):
        client.create_topic(topic, replication_factor=world.nodes)
    assert topic not in world.maker.topics()


def a_topic_of_others_is_not_deleted(world: World, client: Client) -> None:
    topic = topic_of_others(world)
    with refused_with(TOPIC_AUTHORIZATION_FAILED):
        client.delete_topic(topic)
    assert topic in world.maker.topics()


def the_configs_of_a_topic_of_others_stay(world: World, client: Client) -> None:
    topic = topic_of_others(world)
    with refused_with(TOPIC_AUTHORIZATION_FAILED):
        client.set_config(topic, "retention.ms", "1000")
    assert world.maker.config(topic)["retention.ms"] == ("604800000", True)


def a_group_of_others_has_no_new_member(world: World, client: Client) -> None:
    topic, deadline = world.topic(client), time.monotonic() + PATIENCE_S
    with refused_with(GROUP_AUTHORIZATION_FAILED):
        member = client.member(name_of_others(world), topic)
        try:
            while time.monotonic() < deadline:
                assert not member.poll(1)
        finally:
            member.close()


def a_transactional_id_of_others_is_not_used(world: World, client: Client) -> None:
    topic = world.topic(client)
    with refused_with(TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
        producer = client.transactions(name_of_others(world))
        try:
            producer.begin()
            producer.send(topic, [Record(b"not allowed")])
            producer.commit()
        finally:
            producer.close()
    assert world.maker.end(topic) == 0
