"""Records in, records out: what one client wrote, every client reads."""

from __future__ import annotations

import time
from dataclasses import replace

from interop.clients.client import Client, Record
from interop.world import World, refused_with

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MESSAGE_TOO_LARGE, UNKNOWN_TOPIC = 10, 3

#: Yesterday's noon: not now, but recent, or retention would delete the records under the readers.
NOON_MS = (int(time.time()) // 86_400 * 86_400 - 43_200) * 1000


def sample(count: int = 20) -> list[Record]:
    """Records with everything a record can have, in two partitions."""
    odd = (
        Record(b"value", key=None, timestamp_ms=NOON_MS),
        Record(None, key=b"deleted", timestamp_ms=NOON_MS + 1),
        Record(b"", key=b"", timestamp_ms=NOON_MS + 2),
        Record(b"\x00\xff" * 50, key=b"binary", headers=(("b", b"1"), ("a", b"2"), ("empty", b""))),
    )
    plain = tuple(
        Record(f"value {n}".encode() * 20, key=f"key {n % 3}".encode(), headers=(("n", str(n).encode()),))
        for n in range(count)
    )
    return [
        Record(r.value, r.key, r.headers, r.timestamp_ms or NOON_MS + 10 + n, partition=n % 2)
        for n, r in enumerate(odd + plain)
    ]


def by_partition(records: list[Record]) -> list[Record]:
    return sorted(records, key=lambda record: record.partition)


def expect(writer: Client, found: list[Record], written: list[Record], what: str) -> None:
    """Assert that a reader found the written records, with the timestamps that the writer can choose."""
    wanted = by_partition(written)
    if not writer.can("timestamps"):
        found, wanted = ([replace(r, timestamp_ms=None) for r in records] for records in (found, wanted))
    for one, other in zip(found, wanted, strict=False):
        assert one == other, f"{what} differently: {one} instead of {other}"
    assert len(found) == len(wanted), f"{what} differently: {len(found)} records instead of {len(wanted)}"


def every_codec_is_read_by_every_client(world: World, client: Client) -> None:
    topic, written = world.topic(client, partitions=2), sample()
    for codec in CODECS:
        client.produce(topic, written, codec=codec)
    each = len(written) // 2
    for reader in world.clients.values():
        found = reader.read(topic, (0, 1))
        assert len(found) == 2 * each * len(CODECS), f"{reader.name} read {len(found)} records"
        for n, codec in enumerate(CODECS):
            of_codec = [record for record in found if record.offset // each == n]
            expect(client, of_codec, written, f"{reader.name} reads {codec}")


def a_broker_codec_recompresses_what_was_sent(world: World, client: Client) -> None:
    written = sample()
    for codec in ("gzip", "zstd", "uncompressed"):
        topic = world.topic(client, partitions=2, compression_type=codec)
        client.produce(topic, written, codec="lz4")
        expect(client, client.read(topic, (0, 1)), written, f"it reads {codec}")


def a_null_header_value_stays_null(world: World, client: Client) -> None:
    topic = world.topic(client)
    written = [Record(b"v", headers=(("none", None), ("empty", b"")), timestamp_ms=NOON_MS)]
    client.produce(topic, written)
    for reader in world.able("null_headers"):
        assert reader.read(topic) == written, f"{reader.name} read the headers differently"


def headers_keep_their_order_and_may_repeat(world: World, client: Client) -> None:
    topic = world.topic(client)
    headers = (("b", b"1"), ("a", b"2"), ("b", b"3"), ("b", b"1"))
    written = [Record(b"v", headers=headers, timestamp_ms=NOON_MS)]
    client.produce(topic, written)
    for reader in world.able("ordered_headers"):
        expect(client, reader.read(topic), written, f"{reader.name} reads the headers")


def offsets_are_acknowledged_in_order(world: World, client: Client) -> None:
    topic = world.topic(client)
    assert client.produce(topic, [Record(b"a"), Record(b"b")], acks="all") == [0, 1]
    assert client.produce(topic, [Record(b"c")], acks="1") == [2]
    client.produce(topic, [Record(b"d")], acks="0")
    idempotent = client.can("idempotent")
    assert client.produce(topic, [Record(b"e")], acks="all", idempotent=idempotent) == [4]
    assert [record.value for record in client.read(topic)] == [b"a", b"b", b"c", b"d", b"e"]


def an_idempotent_producer_writes_once_and_in_order(world: World, client: Client) -> None:
    topic = world.topic(client)
    values = [str(n).encode() for n in range(300 if client.name.startswith("java") else 2000)]
    assert client.produce(topic, [Record(value) for value in values], idempotent=True) == list(
        range(len(values))
    )
    assert [record.value for record in client.read(topic)] == values


def a_large_record_passes_and_a_larger_one_is_refused(world: World, client: Client) -> None:
    topic = world.topic(client)
    large = Record(bytes(range(256)) * 3900, timestamp_ms=NOON_MS)
    client.produce(topic, [large])
    with refused_with(MESSAGE_TOO_LARGE):
        client.produce(topic, [Record(bytes(1_100_000))])
    expect(client, client.read(topic), [large], "it reads a large record")


def a_fetch_limit_below_one_record_does_not_stop_a_reader(world: World, client: Client) -> None:
    topic = world.topic(client)
    written = [Record(bytes([n]) * 20_000, timestamp_ms=NOON_MS) for n in range(5)]
    for record in written:
        client.produce(topic, [record])
    expect(client, client.read(topic, fetch_bytes=1000), written, "it reads with a low limit")


def log_append_time_replaces_the_time_of_the_client(world: World, client: Client) -> None:
    topic = world.topic(client, message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    client.produce(topic, [Record(b"v", timestamp_ms=NOON_MS)])
    for reader in world.able("append_time"):
        (record,) = reader.read(topic)
        assert record.timestamp_ms is not None
        assert before - 1000 <= record.timestamp_ms <= time.time() * 1000 + 1000, f"{reader.name}: {record}"


def a_waiting_reader_gets_a_record_at_once(world: World, client: Client) -> None:
    """The wake-up of a long poll: far sooner than the half second that clients let a fetch wait."""
    topic = world.topic(client)
    member = client.member(world.name("wakeup"), topic)
    try:
        deadline = time.monotonic() + 20
        while not member.assignment() and time.monotonic() < deadline:
            member.poll(0.1)
        client.produce(topic, [Record(b"first")])
        while not member.poll(0.1):
            assert time.monotonic() < deadline, "the first record did not arrive"
        took = []
        writer = world.clients.get("confluent-kafka", client)
        for _ in range(5):
            sent = time.monotonic()
            writer.produce(topic, [Record(b"next")])
            while not member.poll(0.5):
                assert time.monotonic() < sent + 10, "a record did not arrive"
            took.append(time.monotonic() - sent)
        assert min(took) < 0.4, f"records took {took} s"
    finally:
        member.close()


def a_topic_is_created_by_its_first_record(world: World, client: Client) -> None:
    topic = world.name("auto")
    assert client.produce(topic, [Record(b"v", timestamp_ms=NOON_MS)]) == [0]
    assert client.partitions(topic) == 3, "num.partitions of the broker"
    expect(client, client.read(topic), [Record(b"v", timestamp_ms=NOON_MS)], "it reads what it wrote")
