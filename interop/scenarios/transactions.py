"""Transactions: what is read of them, who may end them, and offsets that go with them.

Most clients speak version 1 (KIP-98), Java 4.3 and franz-go version 2 (KIP-890): they meet in one partition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from interop.clients.client import Client, Record, Refused, Transactions
from interop.scenarios.groups import fill, following
from interop.world import World, eventually

#: INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, PRODUCER_FENCED, TRANSACTION_ABORTABLE; librdkafka's words for
#: "fenced" and "the transaction has timed out"; and those without a code of a client that knows by itself.
LOST = (47, 48, 90, 120, -144, -138, -1)


@contextmanager
def producing(world: World, client: Client, timeout_ms: int = 60_000) -> Iterator[Transactions]:
    producer = client.transactions(world.name("transactional"), timeout_ms=timeout_ms)
    try:
        yield producer
    finally:
        producer.close()


def plain(world: World, client: Client, topic: str, *values: bytes, partitions: int = 1) -> None:
    """Records outside any transaction, which also show where a partition ends."""
    for partition in range(partitions):
        client.produce(topic, [Record(value, partition=partition) for value in values])


def last(world: World, client: Client, topic: str, value: bytes, partitions: int = 1) -> None:
    """A record behind the markers of all transactions, which are written after their ends are answered."""
    way_in = world.makers_entrance
    settings = way_in.login.for_librdkafka() if way_in.login else {}
    admin = AdminClient({"bootstrap.servers": way_in.address, "log_level": 0, **settings})
    places = [TopicPartition(topic, partition) for partition in range(partitions)]

    def ends(isolation: IsolationLevel) -> list[int]:
        # Their constructor has no types.
        asked_for = {place: OffsetSpec.latest() for place in places}  # type: ignore[no-untyped-call]
        asked = admin.list_offsets(asked_for, isolation_level=isolation, request_timeout=10)
        return [asked[place].result().offset for place in places]

    def are_written() -> bool:
        try:
            return ends(IsolationLevel.READ_COMMITTED) == ends(IsolationLevel.READ_UNCOMMITTED)
        except KafkaException:  # a node is on its way back
            return False

    eventually(are_written, "the markers are written")
    plain(world, client, topic, value, partitions=partitions)


def values(
    reader: Client, topic: str, *, committed: bool, partitions: Sequence[int] = (0,)
) -> list[bytes | None]:
    return [record.value for record in reader.read(topic, partitions, committed=committed)]


def a_commit_shows_everything_at_once(world: World, client: Client) -> None:
    topic = world.topic(client, partitions=2)
    plain(world, client, topic, b"before", partitions=2)
    with producing(world, client) as producer:
        producer.begin()
        producer.send(topic, [Record(b"one"), Record(b"two", partition=1)])
        for reader in world.able("isolation", "stable_end"):
            seen = values(reader, topic, committed=True, partitions=(0, 1))
            assert seen == [b"before", b"before"], f"{reader.name} saw {seen} of an open transaction"
        producer.commit()
    last(world, client, topic, b"after", partitions=2)
    for reader in world.able("isolation"):
        seen = values(reader, topic, committed=True, partitions=(0, 1))
        assert seen == [b"before", b"one", b"after", b"before", b"two", b"after"], f"{reader.name}: {seen}"


def an_abort_leaves_nothing_for_readers_of_committed_records(world: World, client: Client) -> None:
    topic = world.topic(client)
    with producing(world, client) as producer:
        for number, end in enumerate((producer.abort, producer.commit, producer.abort, producer.commit)):
            producer.begin()
            producer.send(topic, [Record(f"{number}".encode())])
            end()
    last(world, client, topic, b"after")
    for reader in world.able("isolation"):
        seen = values(reader, topic, committed=True)
        assert seen == [b"1", b"3", b"after"], f"{reader.name}: {seen}"
        seen = values(reader, topic, committed=False)
        assert seen == [b"0", b"1", b"2", b"3", b"after"], f"{reader.name}: {seen}"


def a_reader_of_committed_records_sees_no_others(world: World, client: Client) -> None:
    topic = world.topic(client)
    writers = [writer.transactions(world.name("written")) for writer in world.able("transactions")[:2]]
    try:
        for number in range(10):
            for writer in writers:
                writer.begin()
                writer.send(topic, [Record(b"%d" % number)])
            for writer in writers:
                if number % 3:
                    writer.abort()
                else:
                    writer.commit()
    finally:
        for writer in writers:
            writer.close()
    last(world, client, topic, b"after")
    kept = [b"%d" % number for number in range(0, 10, 3) for _ in writers]
    assert values(client, topic, committed=True) == [*kept, b"after"]
    assert len(values(client, topic, committed=False)) == 10 * len(writers) + 1


def transactions_of_all_clients_interleave(world: World, client: Client) -> None:
    """One open transaction of each in the same partition; every second one is aborted."""
    topic = world.topic(client)
    writers = [client, *(other for other in world.able("transactions") if other is not client)]
    producers = [writer.transactions(world.name(writer.name)) for writer in writers]
    try:
        for producer in producers:
            producer.begin()
        for turn in (b"a", b"b"):
            for number, producer in enumerate(producers):
                producer.send(topic, [Record(b"%d%s" % (number, turn))])
        # The first that began ends last.
        for number, producer in reversed(list(enumerate(producers))):
            if number % 2:
                producer.abort()
            else:
                producer.commit()
    finally:
        for producer in producers:
            producer.close()
    last(world, client, topic, b"after")
    kept = [b"%d%s" % (number, turn) for turn in (b"a", b"b") for number in range(0, len(writers), 2)]
    for reader in world.able("isolation"):
        seen = values(reader, topic, committed=True)
        assert seen == [*kept, b"after"], f"{reader.name}: {seen}"


def offsets_go_with_the_transaction(world: World, client: Client) -> None:
    """Consume, transform, produce: aborted once, then committed, and the next reader begins behind it."""
    source, target, group = world.topic(client), world.topic(client), world.name("copied")
    written = fill(client, source, partitions=1)
    name = world.name("copier")
    client.copy(name, group, source, target, count=len(written), commit=False)
    for reader in world.able("committed"):
        assert reader.committed(group, source) is None, reader.name
    client.copy(name, group, source, target, count=len(written), commit=True)
    last(world, client, target, b"after")
    plain(world, client, source, b"later")
    for reader in world.able("committed"):
        eventually(lambda: reader.committed(group, source) == len(written), f"{reader.name} sees the commit")  # noqa: B023
    for reader in world.able("isolation"):
        copied = values(reader, target, committed=True)
        assert copied == [*sorted(written, key=numbered), b"after"], f"{reader.name}: {copied}"
    with following(client.member(group, source)) as (follower,):
        eventually(lambda: [r.value for r in follower.records] == [b"later"], "it begins behind the copy", 40)


def numbered(value: bytes) -> int:
    """Records are written in the order of their text."""
    return sorted(f"0-{n}".encode() for n in range(25)).index(value)


def a_newer_producer_fences_an_older_one(world: World, client: Client) -> None:
    topic, name = world.topic(client), world.name("fenced")
    older = client.transactions(name)
    older.begin()
    older.send(topic, [Record(b"of the older")])
    newer = client.transactions(name)
    try:
        newer.begin()
        newer.send(topic, [Record(b"of the newer")])
        lost(lambda: finish(older, topic))
        newer.commit()
    finally:
        newer.close()
        older.close()
    last(world, client, topic, b"after")
    for reader in world.able("isolation"):
        seen = values(reader, topic, committed=True)
        assert seen == [b"of the newer", b"after"], f"{reader.name}: {seen}"


def a_transaction_that_takes_too_long_is_aborted(world: World, client: Client) -> None:
    topic, name = world.topic(client), world.name("slow")
    slow = client.transactions(name, timeout_ms=2000)
    try:
        slow.begin()
        slow.send(topic, [Record(b"too late")])
        end = client.end(topic)
        eventually(lambda: client.end(topic) > end, "a marker is written", 30)
        last(world, client, topic, b"after")
        lost(lambda: finish(slow, topic))
    finally:
        slow.close()
    with_name_again = client.transactions(name)
    try:
        with_name_again.begin()
        with_name_again.send(topic, [Record(b"in time")])
        with_name_again.commit()
    finally:
        with_name_again.close()
    last(world, client, topic, b"at last")
    for reader in world.able("isolation"):
        seen = values(reader, topic, committed=True)
        assert seen == [b"after", b"in time", b"at last"], f"{reader.name}: {seen}"


def finish(producer: Transactions, topic: str) -> None:
    producer.send(topic, [Record(b"of a fenced producer")])
    producer.commit()


def lost(finish: Callable[[], None]) -> None:
    try:
        finish()
    except Refused as refused:
        assert refused.code in LOST, f"refused with {refused.code}: {refused}"
        return
    raise AssertionError("a producer that had lost its transaction could commit it")


def a_transaction_goes_on_after_a_kill_of_the_broker(world: World, client: Client) -> None:
    topic = world.topic(client)
    with producing(world, client) as producer:
        producer.begin()
        producer.send(topic, [Record(b"before the kill")])
        world.broker.kill()
        time.sleep(0.5)
        world.broker.start()
        producer.send(topic, [Record(b"after the kill")])
        producer.commit()
    eventually(lambda: client.end(topic) >= 3, "the client has found the broker again")
    last(world, client, topic, b"after")
    for reader in world.able("isolation"):
        seen = values(reader, topic, committed=True)
        assert seen == [b"before the kill", b"after the kill", b"after"], f"{reader.name}: {seen}"
