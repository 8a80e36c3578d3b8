"""Acknowledged records outlive every way in which the broker's process ends."""

from __future__ import annotations

import socket
import threading

from interop.clients.client import Client, Record, Refused
from interop.scenarios.data import expect, sample
from interop.scenarios.groups import following
from interop.world import World, eventually
from pykafka_broker.client.core.addresses import parse_addresses
from pykafka_broker.testing.processes import PING


def records_and_offsets_survive_a_restart(world: World, client: Client) -> None:
    topic, group = world.topic(client, partitions=2, retention_ms="999999999"), world.name("restart")
    written = sample()
    client.produce(topic, written, codec="lz4", idempotent=client.can("idempotent"))
    with following(world.for_client(client, "commit").member(group, topic)) as (follower,):
        eventually(lambda: len(follower.records) == len(written), "everything was read")
        follower.commit()

    world.broker.restart()

    eventually(lambda: client.partitions(topic) == 2 and client.end(topic) > 0, "the topic is back")
    expect(client, client.read(topic, (0, 1)), written, "it reads after the restart")
    admin = world.for_client(client, "config")
    eventually(lambda: admin.config(topic)["retention.ms"] == ("999999999", False), "the config is back")
    admin = world.for_client(client, "committed")
    eventually(lambda: admin.committed(group, topic) == len(written) // 2, "the committed offset is back")
    assert client.produce(topic, [Record(b"after")]) == [len(written) // 2]


def a_kill_loses_nothing_that_was_acknowledged(world: World, client: Client) -> None:
    """Ten kills would be better; `tests/` has that. Here it is a real client that was told "stored"."""
    topic = world.topic(client)
    acknowledged: list[bytes] = []
    stop = threading.Event()

    def produce() -> None:
        number = 0
        while not stop.is_set():
            values = [f"{number + n}".encode() for n in range(10)]
            try:
                client.produce(topic, [Record(value) for value in values])
            except Refused:
                return
            acknowledged.extend(values)
            number += len(values)

    writer = threading.Thread(target=produce)
    writer.start()
    eventually(lambda: len(acknowledged) >= 100, "a hundred records are acknowledged")
    world.broker.kill()
    stop.set()
    world.broker.start()
    writer.join(60)
    assert not writer.is_alive(), "the producer did not come back"

    eventually(lambda: client.end(topic) >= len(acknowledged), "the topic is back")
    found = [record.value for record in client.read(topic)]
    missing = [value for value in acknowledged if value not in set(found)]
    assert not missing, f"{len(missing)} acknowledged records are lost, the first is {missing[0]!r}"


def two_hundred_connections_are_served_at_once(world: World, client: Client) -> None:
    address = parse_addresses(world.broker.address)[0]
    opened = [socket.create_connection((address.host, address.port), 10) for _ in range(200)]
    try:
        for connection in opened:
            connection.sendall(PING)
        assert all(len(connection.recv(4)) == 4 for connection in opened)
        assert client.topics(), "and a client beside them"
    finally:
        for connection in opened:
            connection.close()
