"""Where a reader may begin: first, last, by time, after deletion, and outside."""

from __future__ import annotations

from interop.clients.client import Client, Record
from interop.scenarios.data import NOON_MS
from interop.world import World, refused_with

OFFSET_OUT_OF_RANGE = 1


def timed(world: World, client: Client, count: int = 10) -> str:
    """One record a second, in batches of one."""
    topic = world.topic(client)
    writer = world.for_client(client, "timestamps")
    for n in range(count):
        writer.produce(topic, [Record(str(n).encode(), timestamp_ms=NOON_MS + n * 1000)])
    return topic


def the_first_offset_at_or_after_a_time_is_found(world: World, client: Client) -> None:
    topic = timed(world, client, 5)
    for reader in world.able("offset_at"):
        asked = [NOON_MS - 1, NOON_MS, NOON_MS + 1, NOON_MS + 4000, NOON_MS + 4001]
        found = [reader.offset_at(topic, at) for at in asked]
        assert found == [0, 0, 1, 4, None], f"{reader.name} found {found}"


def times_inside_a_batch_are_told_apart(world: World, client: Client) -> None:
    topic = world.topic(client)
    records = [Record(b"x" * 100, timestamp_ms=NOON_MS + n * 1000) for n in range(50)]
    world.for_client(client, "timestamps").produce(topic, records, codec="gzip")
    assert [client.offset_at(topic, NOON_MS + n * 1000 - 500) for n in (1, 25, 49)] == [1, 25, 49]


def deleted_records_move_the_beginning(world: World, client: Client) -> None:
    topic = timed(world, client)
    client.delete_records(topic, before=6)
    for reader in world.clients.values():
        assert (reader.beginning(topic), reader.end(topic)) == (6, 10), reader.name
        assert [r.value for r in reader.read(topic)] == [b"6", b"7", b"8", b"9"], reader.name
    for reader in world.able("offset_at"):
        assert reader.offset_at(topic, NOON_MS) == 6, reader.name
    with refused_with(OFFSET_OUT_OF_RANGE):
        client.delete_records(topic, before=11)
    client.delete_records(topic, before=10)
    assert client.read(topic) == []


def an_offset_out_of_range_is_reset_as_the_reader_wants(world: World, client: Client) -> None:
    topic = timed(world, client)
    world.for_client(client, "delete_records").delete_records(topic, before=4)
    for offset in (1, 1000):
        assert client.read_out_of_range(topic, offset, "earliest") == 4
        # A client without positions shows where it is by what it reads next, and that is written for it.
        assert 10 <= (client.read_out_of_range(topic, offset, "latest") or 0) <= client.end(topic)


def an_offset_out_of_range_is_an_error_without_a_reset(world: World, client: Client) -> None:
    topic = timed(world, client)
    for offset in (11, 1000):
        assert client.read_out_of_range(topic, offset, "none") is None


def a_reader_may_begin_anywhere(world: World, client: Client) -> None:
    topic = world.topic(client)
    client.produce(topic, [Record(str(n).encode()) for n in range(100)], codec="lz4")
    for start in (0, 1, 50, 99):
        found = [record.value for record in client.read(topic, start=start)]
        assert found == [str(n).encode() for n in range(start, 100)], f"from {start}: {found}"
    assert client.read(topic, start=100) == []
