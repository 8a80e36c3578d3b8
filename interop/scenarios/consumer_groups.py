"""Consumer groups of the newer protocol (KIP-848), and classic members in them."""

from __future__ import annotations

import time

from interop.clients.client import Client, Record
from interop.scenarios.groups import Follower, fill, following, shares
from interop.world import World, eventually

#: Heartbeats are five seconds apart, and a share moves in two or three of them.
PATIENCE_S = 60


def members_share_what_the_broker_assigns(world: World, client: Client) -> None:
    topic, group = world.topic(client, partitions=4), world.name("newer")
    with following(client.consumer_member(group, topic)) as followers:
        eventually(lambda: shares(followers) == [4], "one member has all partitions", PATIENCE_S)
        followers.append(Follower(client.consumer_member(group, topic)))
        eventually(lambda: shares(followers) == [2, 2], "two members share", PATIENCE_S)
        written = fill(client, topic)
        eventually(
            lambda: {r.value for f in followers for r in f.records} == written,
            "every record came to one of them",
        )
        followers[1].commit()
        followers.pop(0).leave()
        eventually(lambda: shares(followers) == [4], "one takes over what the other had", PATIENCE_S)


def a_pattern_finds_topics_as_they_come(world: World, client: Client) -> None:
    prefix, group = world.name("pattern"), world.name("newer")
    client.create_topic(f"{prefix}-first", partitions=2)
    with following(client.consumer_member(group, f"^{prefix}-.*")) as followers:
        eventually(lambda: len(followers[0].assigned) == 2, "it found the topic", PATIENCE_S)
        client.create_topic(f"{prefix}-second", partitions=3)
        eventually(lambda: len(followers[0].assigned) == 3, "it found the topic that came", PATIENCE_S)


def a_static_consumer_comes_back_to_its_partitions(world: World, client: Client) -> None:
    topic, group = world.topic(client, partitions=4), world.name("newer-static")
    members = [client.consumer_member(group, topic, instance_id=name) for name in ("one", "two")]
    with following(*members) as followers:
        eventually(lambda: shares(followers) == [2, 2], "two members share", PATIENCE_S)
        time.sleep(1)
        before = [(follower.assigned, follower.assignments) for follower in followers]
        followers.pop(0).leave()
        followers.insert(0, Follower(client.consumer_member(group, topic, instance_id="one")))
        eventually(lambda: followers[0].assigned == before[0][0], "it has its old partitions", PATIENCE_S)
        assert (followers[1].assigned, followers[1].assignments) == before[1], "the other noticed nothing"


def a_member_chooses_the_assignor_of_the_broker(world: World, client: Client) -> None:
    topic, group = world.topic(client, partitions=4), world.name("newer-range")
    members = [client.consumer_member(group, topic, assignor="range") for _ in range(2)]
    with following(*members) as followers:
        eventually(lambda: shares(followers) == [2, 2], "two members share", PATIENCE_S)
        halves = {follower.assigned for follower in followers}
        assert halves == {frozenset({0, 1}), frozenset({2, 3})}, halves


def newer_clients_of_different_kinds_share_one_group(world: World, client: Client) -> None:
    others = [other for other in world.able("consumer_member") if other is not client]
    partitions = 1 + len(others)
    topic, group = world.topic(client, partitions=partitions), world.name("newer-mixed")
    with following(client.consumer_member(group, topic)) as followers:
        eventually(lambda: shares(followers, partitions) == [partitions], "it has all first", PATIENCE_S)
        followers.extend(Follower(other.consumer_member(group, topic)) for other in others)
        eventually(lambda: shares(followers, partitions) == [1] * partitions, "each has one", PATIENCE_S)
        written = fill(client, topic, partitions)
        eventually(
            lambda: {r.value for f in followers for r in f.records} == written,
            "every record came to one of them",
        )


def a_classic_client_stays_while_newer_ones_come_and_go(world: World, client: Client) -> None:
    """The group becomes a consumer group with the first of them, and a classic one after the last."""
    others = [other for other in world.able("consumer_member") if other is not client]
    partitions = 1 + len(others)
    topic, group = world.topic(client, partitions=partitions), world.name("upgraded")
    written = fill(client, topic, partitions, each=5)
    with following(client.member(group, topic)) as followers:
        eventually(lambda: shares(followers, partitions) == [partitions], "it has all first", PATIENCE_S)
        followers.extend(Follower(other.consumer_member(group, topic)) for other in others)
        eventually(lambda: shares(followers, partitions) == [1] * partitions, "each has one", PATIENCE_S)
        while len(followers) > 1:
            followers.pop().leave()
        eventually(lambda: shares(followers, partitions) == [partitions], "it has all again", PATIENCE_S)
        client.produce(topic, [Record(b"last", partition=p) for p in range(partitions)])

        def read_all() -> bool:
            found = [record.value for record in followers[0].records]
            return found.count(b"last") == partitions and set(found) == {b"last", *written}

        eventually(read_all, "it reads everything", PATIENCE_S)


def a_living_group_changes_to_the_newer_protocol_and_back(world: World, client: Client) -> None:
    topic, group = world.topic(client, partitions=4), world.name("migrating")
    with following(client.member(group, topic)) as followers:
        eventually(lambda: shares(followers) == [4], "a classic member has all partitions", PATIENCE_S)
        followers.append(Follower(client.consumer_member(group, topic)))
        eventually(lambda: shares(followers) == [2, 2], "a newer one shares with it", PATIENCE_S)
        followers.pop().leave()
        eventually(lambda: shares(followers) == [4], "the classic one has everything again", PATIENCE_S)
        followers.append(Follower(client.member(group, topic)))
        eventually(lambda: shares(followers) == [2, 2], "and shares with one of its kind", PATIENCE_S)
