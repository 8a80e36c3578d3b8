"""What the metadata says, carried out on the logs: topics that go and come back, live configs, retention."""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
from typing import Any

import pytest

from pykafka_broker.cluster.image import NO_LEADER, ClusterImage
from pykafka_broker.network.endpoint import UNLIMITED
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import describe_log_dirs
from pykafka_broker.replication.leading_replica import LeadingReplica
from pykafka_broker.replication.partition import Partition
from pykafka_broker.testing.clock import NOW
from pykafka_broker.testing.home import DATA, PATIENCE_SECONDS, Home, until
from pykafka_broker.testing.user import BROKER_RESOURCE, EARLIEST, TOPIC_RESOURCE, User

MINUTE_MS = 60_000
KIB = 1024


def folders(home: Home, topic: str) -> list[str]:
    """The folders of a topic's partitions, whatever state they are in."""
    return sorted(path for path in tuple(home.files.directories) if path.startswith(f"{DATA}/{topic}-"))


def segments(home: Home, topic: str) -> list[str]:
    """The segment files of partition 0."""
    return sorted(
        path.rpartition("/")[2]
        for path in home.files.inodes
        if path.startswith(f"{DATA}/{topic}-0/") and path.endswith(".log")
    )


# --- topics that go -------------------------------------------------------------------------------


async def test_a_deleted_topic_leaves_the_disk_after_file_delete_delay(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    home = Home()
    async with home.running() as user:
        await user.create_topic("orders", partitions=2, file_delete_delay_ms="60000")
        await user.produce("orders", b"one")
        assert folders(home, "orders") == [f"{DATA}/orders-0", f"{DATA}/orders-1"]

        await user.delete_topic("orders")

        [line] = [r.getMessage() for r in caplog.records if "deletion" in r.getMessage()]
        assert line == "Removed 2 partitions (orders-0, orders-1): their logs are scheduled for deletion."
        await until(lambda: all(path.endswith("-delete") for path in folders(home, "orders")))
        assert ErrorCode((await user.fetch("orders")).error_code) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await home.pass_time(MINUTE_MS - 1_000)
        assert len(folders(home, "orders")) == 2
        await home.pass_time(2_000)
        await until(lambda: not folders(home, "orders"))


async def test_what_was_to_be_deleted_when_the_broker_stopped_goes_at_the_next_start() -> None:
    home = Home()
    async with home.running() as user:
        await user.create_topic("orders")
        await user.delete_topic("orders")
    assert folders(home, "orders")
    async with home.running():
        await home.pass_time(1_000)
        await until(lambda: not folders(home, "orders"))


async def test_a_topic_of_the_same_name_begins_again_and_the_old_id_is_unknown() -> None:
    home = Home()
    async with home.running() as user:
        old_id = await user.create_topic("orders")
        await user.produce("orders", b"old")
        await user.delete_topic("orders")
        assert ErrorCode((await user.fetch("", topic_id=old_id)).error_code) == ErrorCode.UNKNOWN_TOPIC_ID

        new_id = await user.create_topic("orders")

        assert new_id != old_id
        assert await user.produce("orders", b"new") == 0
        assert await user.values("orders") == [b"new"]
        assert ErrorCode((await user.fetch("", topic_id=old_id)).error_code) == ErrorCode.UNKNOWN_TOPIC_ID
        assert (await user.fetch("", topic_id=new_id)).high_watermark == 1
        await home.pass_time(2 * MINUTE_MS)
        assert await user.values("orders") == [b"new"]
    async with home.running() as user:
        assert await user.values("orders") == [b"new"]


async def test_a_parked_fetch_of_a_topic_that_is_deleted_is_answered_at_once() -> None:
    home = Home()
    async with home.running() as user, await User.connect(home.broker.bootstrap_servers) as reader:
        await user.create_topic("orders")
        fetching = asyncio.ensure_future(reader.fetch("orders", max_wait_ms=60_000))
        await until(lambda: home.broker.node.broker.purgatory.parked == 1)
        await user.delete_topic("orders")
        answer = await asyncio.wait_for(fetching, PATIENCE_SECONDS)
    assert ErrorCode(answer.error_code) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# --- roles ----------------------------------------------------------------------------------------


class Told:
    """Notes the roles that it is told of."""

    def __init__(self) -> None:
        self.roles: list[tuple[object, ...]] = []

    def lead(self, partition: LeadingReplica) -> None:
        self.roles.append(("lead", partition.log.topic))

    def follow(self, partition: Partition, leader: int) -> None:
        self.roles.append(("follow", partition.topic, leader, partition.leader_epoch))

    def resign(self, partition: Partition) -> None:
        self.roles.append(("resign", partition.topic))


def led_by(leader: int, leader_epoch: int, image: ClusterImage) -> ClusterImage:
    """The image, with another leader of partition 0 of "orders"."""
    topic = image.topics["orders"]
    registration = topic.partitions[0]._replace(leader=leader, leader_epoch=leader_epoch)
    return image._replace(topics={**image.topics, "orders": topic._replace(partitions={0: registration})})


async def test_each_role_in_a_partition_ends_before_the_next_begins(home: Home, user: User) -> None:
    await user.create_topic("orders")
    node = home.broker.node
    here, elsewhere = node.foundation.node_id, node.foundation.node_id + 1
    replicas, image, told = node.broker.replicas, node.image, Told()
    replicas.subscribe(told)

    def new_roles(image: ClusterImage) -> list[tuple[object, ...]]:
        told.roles.clear()
        replicas.apply(image)
        return told.roles

    resign = ("resign", "orders")
    assert new_roles(led_by(elsewhere, 1, image)) == [resign, ("follow", "orders", elsewhere, 1)]
    assert new_roles(led_by(elsewhere, 1, image)) == []
    assert new_roles(led_by(elsewhere, 2, image)) == [resign, ("follow", "orders", elsewhere, 2)]
    assert new_roles(led_by(NO_LEADER, 3, image)) == [resign]
    assert new_roles(led_by(elsewhere, 4, image)) == [("follow", "orders", elsewhere, 4)]
    assert new_roles(led_by(here, 5, image)) == [resign, ("lead", "orders")]
    assert new_roles(led_by(here, 6, image)) == []
    assert new_roles(led_by(elsewhere, 7, image)) == [resign, ("follow", "orders", elsewhere, 7)]
    assert new_roles(image._replace(topics={})) == [resign]


def placed_on(image: ClusterImage, *replicas: int, leader: int) -> ClusterImage:
    """The image, with other replicas of partition 0 of "orders"."""
    topic = image.topics["orders"]
    now = topic.partitions[0]
    registration = now._replace(
        replicas=replicas,
        isr=replicas,
        leader=leader,
        leader_epoch=now.leader_epoch + 1,
        partition_epoch=now.partition_epoch + 1,
        directories=(),
    )
    return image._replace(topics={**image.topics, "orders": topic._replace(partitions={0: registration})})


async def test_a_partition_that_is_given_to_other_brokers_is_dropped_and_begins_anew_when_it_comes_back(
    home: Home, user: User
) -> None:
    await user.create_topic("orders")
    await user.produce("orders", b"one")
    node = home.broker.node
    here, elsewhere = node.foundation.node_id, node.foundation.node_id + 1
    replicas, image, told = node.broker.replicas, node.image, Told()
    replicas.subscribe(told)

    shared = placed_on(image, here, elsewhere, leader=elsewhere)
    replicas.apply(shared)
    gone = placed_on(shared, elsewhere, leader=elsewhere)
    replicas.apply(gone)

    resign = ("resign", "orders")
    assert told.roles == [resign, ("follow", "orders", elsewhere, 1), resign]
    assert replicas.hosted("orders", 0) is None
    assert replicas.why_not_led("orders", 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    await until(lambda: all(path.endswith("-delete") for path in folders(home, "orders")))

    back = placed_on(gone, here, elsewhere, leader=elsewhere)
    preparation = replicas.prepare(back)
    assert preparation is not None
    await preparation
    replicas.apply(back)
    partition = replicas.followed("orders", 0)
    assert partition is not None
    assert (partition.log.state.log_end_offset, partition.leader) == (0, elsewhere)
    assert told.roles[3:] == [("follow", "orders", elsewhere, 3)]


# --- many partitions at once ----------------------------------------------------------------------


async def test_the_event_loop_touches_no_file_while_partitions_are_created_and_deleted(
    home: Home, user: User
) -> None:
    by_loop: list[tuple[str, str]] = []
    event_loop_thread = threading.get_ident()

    def note(operation: str, path: str) -> None:
        if f"{DATA}/many-" in path and threading.get_ident() == event_loop_thread:
            by_loop.append((operation, path))

    home.files.meanwhile = note
    await user.create_topic("many", partitions=200)
    assert len(folders(home, "many")) == 200
    await user.delete_topic("many")
    await until(lambda: all(path.endswith("-delete") for path in folders(home, "many")))
    await home.pass_time(MINUTE_MS + 1_000)
    await until(lambda: not folders(home, "many"))
    assert by_loop == []


async def test_a_topic_is_shown_when_its_partitions_are_there_and_others_are_served_meanwhile(
    home: Home, user: User
) -> None:
    await user.create_topic("orders")
    is_asked, may_go_on = threading.Event(), threading.Event()

    def wait(operation: str, path: str) -> None:
        if path.startswith(f"{DATA}/many-7/"):
            is_asked.set()
            assert may_go_on.wait(PATIENCE_SECONDS)

    home.files.meanwhile = wait
    async with await User.connect(home.broker.bootstrap_servers) as other:
        creating = asyncio.ensure_future(other.create_topic("many", partitions=10))
        await until(is_asked.is_set)
        assert await user.produce("orders", b"one") == 0
        assert await user.values("orders") == [b"one"]
        assert "many" not in home.broker.node.image.topics
        assert not creating.done()
        may_go_on.set()
        await creating
    assert await user.produce("many", b"two", partition=7) == 0


async def test_a_topic_that_comes_back_at_once_gets_new_folders(home: Home, user: User) -> None:
    """The old folders are renamed by the deletion or the creation, whichever runs first."""
    is_asked, may_go_on = threading.Event(), threading.Event()
    await user.create_topic("orders", partitions=3)
    await user.produce("orders", b"old")

    def wait(operation: str, path: str) -> None:
        if operation == "rename" and path.startswith(f"{DATA}/orders-0"):
            is_asked.set()
            assert may_go_on.wait(PATIENCE_SECONDS)

    home.files.meanwhile = wait
    await user.delete_topic("orders")
    await until(is_asked.is_set)
    creating = asyncio.ensure_future(user.create_topic("orders", partitions=3))
    may_go_on.set()
    await creating
    assert await user.produce("orders", b"new") == 0
    assert await user.values("orders") == [b"new"]
    await until(lambda: len(folders(home, "orders")) == 6)


async def test_what_a_full_disk_refuses_is_created_when_there_is_room(home: Home, user: User) -> None:
    home.files.fail("create", errno.ENOSPC, path="many-2", times=1)
    await user.create_topic("many", partitions=4)
    assert await user.produce("many", b"one", partition=1) == 0
    refused = await user.try_to_produce("many", b"two", partition=2)
    assert ErrorCode(refused.error_code) == ErrorCode.KAFKA_STORAGE_ERROR
    await home.pass_time(1_000)
    assert await user.produce("many", b"two", partition=2) == 0


async def test_partitions_that_a_full_disk_refuses_are_one_line_with_their_count(
    home: Home, user: User, caplog: pytest.LogCaptureFixture
) -> None:
    home.files.fail("create", errno.ENOSPC, path="many-", times=30)
    await user.create_topic("many", partitions=30)
    [line] = [r for r in caplog.records if "offline" in r.getMessage()]
    assert line.levelname == "ERROR"
    first, _, names = line.getMessage().partition(" (many-")
    assert first == "30 partitions" and " and 27 more) are offline, the first: " in names


async def test_a_log_made_late_is_not_taken_for_that_of_another_topic_of_the_same_name(
    home: Home, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicas = home.broker.node.broker.replicas
    home.files.fail("create", errno.ENOSPC, path="orders-0", times=1)
    old_id = await user.create_topic("orders")
    make, is_made, may_go_on = replicas._logs.create_all, asyncio.Event(), asyncio.Event()

    async def held(wanted: Any) -> Any:
        logs = await make(wanted)
        if wanted[0].topic_id == old_id:
            is_made.set()
            await may_go_on.wait()
        return logs

    monkeypatch.setattr(replicas._logs, "create_all", held)
    late = asyncio.ensure_future(replicas.create_missing())
    await is_made.wait()
    await user.delete_topic("orders")
    home.files.fail("create", errno.ENOSPC, path="orders-0", times=1)
    new_id = await user.create_topic("orders")
    may_go_on.set()
    await late
    assert replicas.hosted("orders", 0) is None

    await replicas.create_missing()

    partition = replicas.hosted("orders", 0)
    assert partition is not None
    assert partition.log.topic_id == partition.topic_id == new_id
    assert await user.produce("orders", b"new") == 0


async def test_a_log_made_for_the_next_topic_of_a_name_stays_when_the_missing_one_is_dropped(
    home: Home, user: User
) -> None:
    """A snapshot of the metadata may show a deletion and a creation at once."""
    home.files.fail("create", errno.ENOSPC, path="orders-0", times=1)
    await user.create_topic("orders")
    replicas, image = home.broker.node.broker.replicas, home.broker.node.image
    again = image.topics["orders"]._replace(topic_id=b"\x09" * 16)
    remade = image._replace(topics={**image.topics, "orders": again})

    preparation = replicas.prepare(remade)
    assert preparation is not None
    await preparation
    replicas.apply(remade)

    partition = replicas.hosted("orders", 0)
    assert partition is not None
    assert partition.log.topic_id == partition.topic_id == again.topic_id
    assert await user.produce("orders", b"new") == 0
    await home.pass_time(2 * MINUTE_MS)
    assert folders(home, "orders") == [f"{DATA}/orders-0"]
    assert await user.values("orders") == [b"new"]


# --- topic configs --------------------------------------------------------------------------------


async def fill(user: User, count: int = 10, *, topic: str = "orders", timestamp: int = NOW) -> None:
    """Batches of about one KiB."""
    for number in range(count):
        await user.produce(topic, b"%d" % number + bytes(KIB - 100), timestamp=timestamp + number)


async def test_segments_roll_at_the_size_that_is_in_force(home: Home, user: User) -> None:
    await user.create_topic("orders", segment_bytes=str(1024 * KIB))
    await fill(user)
    assert len(segments(home, "orders")) == 1
    await user.alter_topic("orders", internal_segment_bytes=str(4 * KIB))
    await fill(user)
    assert len(segments(home, "orders")) > 2


async def starts_at(home: Home, topic: str, offset: int) -> None:
    """Return when threads have done what retention wants."""
    log = home.broker.node.logs.get(topic, 0)
    await until(lambda: log is not None and log.state.log_start_offset == offset)


async def test_retention_removes_what_is_old_and_can_be_changed_while_it_runs(home: Home, user: User) -> None:
    await user.create_topic("orders", internal_segment_bytes=str(2 * KIB), retention_ms="-1")
    await fill(user)
    await home.pass_time(20 * MINUTE_MS)
    assert await user.offset_for("orders", EARLIEST) == 0

    await user.alter_topic("orders", retention_ms=str(10 * MINUTE_MS))
    await home.pass_time(5 * MINUTE_MS + 1_000)

    await starts_at(home, "orders", 10)
    assert await user.offset_for("orders", EARLIEST) == 10
    assert await user.values("orders") == []
    assert await user.produce("orders", b"goes on") == 10
    # A thread may set the files aside after any of these minutes; a minute later they are gone.
    async with asyncio.timeout(PATIENCE_SECONDS):
        await home.pass_time(2 * MINUTE_MS)
        while any(name.endswith(".deleted") for name in home.files.inodes):
            await home.pass_time(MINUTE_MS)
    assert len(segments(home, "orders")) == 1


async def test_retention_by_size_keeps_the_newest(home: Home, user: User) -> None:
    await user.create_topic("orders", internal_segment_bytes=str(2 * KIB))
    await fill(user)
    await user.alter_topic("orders", retention_bytes=str(4 * KIB))
    await home.pass_time(5 * MINUTE_MS + 1_000)
    kept = await user.values("orders")
    assert 4 <= len(kept) <= 6
    assert kept[-1] is not None
    assert kept[-1].startswith(b"9")


async def test_the_brokers_defaults_hold_where_a_topic_says_nothing(home: Home, user: User) -> None:
    await user.create_topic("silent", internal_segment_bytes=str(2 * KIB))
    await user.create_topic("keeps", internal_segment_bytes=str(2 * KIB), retention_ms="-1")
    for topic in ("silent", "keeps"):
        await fill(user, topic=topic)

    await user.alter_broker(log_retention_ms=str(MINUTE_MS))
    await home.pass_time(10 * MINUTE_MS)

    await starts_at(home, "silent", 10)
    assert await user.offset_for("silent", EARLIEST) == 10
    assert await user.offset_for("keeps", EARLIEST) == 0


async def produced(user: User, topic: str, *values: bytes, **details: Any) -> ErrorCode:
    return ErrorCode((await user.try_to_produce(topic, *values, **details)).error_code)


async def test_max_message_bytes_follows_topic_and_broker(home: Home, user: User) -> None:
    await user.create_topic("orders")
    big = bytes(3_000)
    assert await produced(user, "orders", big) == ErrorCode.NONE

    await user.alter_broker(message_max_bytes="2000")
    assert await produced(user, "orders", big) == ErrorCode.MESSAGE_TOO_LARGE
    await user.alter_topic("orders", max_message_bytes="4000")
    assert await produced(user, "orders", big) == ErrorCode.NONE
    await user.alter_topic("orders", max_message_bytes="1000")
    assert await produced(user, "orders", big) == ErrorCode.MESSAGE_TOO_LARGE

    await user.alter_topic("orders", max_message_bytes=None)
    await user.alter_broker(1, message_max_bytes="5000")
    assert await produced(user, "orders", big) == ErrorCode.NONE
    await user.alter_broker(1, message_max_bytes=None)
    assert await produced(user, "orders", big) == ErrorCode.MESSAGE_TOO_LARGE
    await user.alter_broker(message_max_bytes=None)
    assert await produced(user, "orders", big) == ErrorCode.NONE
    assert await user.config(BROKER_RESOURCE, "1", "message.max.bytes") == "1048588"


async def test_compression_and_timestamps_follow_the_topic(home: Home, user: User) -> None:
    await user.create_topic("orders")
    await user.produce("orders", bytes(1_000), timestamp=NOW - 5)
    await user.alter_topic("orders", compression_type="zstd", message_timestamp_type="LogAppendTime")
    await user.produce("orders", bytes(1_000), timestamp=NOW - 5)
    await user.alter_topic("orders", compression_type=None, message_timestamp_type=None)
    await user.produce("orders", bytes(1_000), timestamp=NOW - 5)

    records = await user.records("orders")

    assert [record.timestamp for record in records] == [NOW - 5, NOW, NOW - 5]
    log = home.broker.node.logs.get("orders", 0)
    assert log is not None
    assert log.state.size_bytes < 2 * 1_100 + 200, "the middle one is compressed"


async def test_changed_configs_survive_a_restart_and_so_does_their_deletion() -> None:
    home = Home()
    async with home.running() as user:
        await user.create_topic("orders", max_message_bytes="1000")
        await user.alter_topic("orders", retention_ms="5000", max_message_bytes=None)
        await user.alter_broker(log_retention_ms="777")
        await user.alter_broker(log_retention_ms=None, message_max_bytes="2000")
    async with home.running() as user:
        assert await user.config(TOPIC_RESOURCE, "orders", "retention.ms") == "5000"
        assert await user.config(TOPIC_RESOURCE, "orders", "max.message.bytes") == "2000"
        assert await user.config(BROKER_RESOURCE, "1", "log.retention.ms") is None
        assert await produced(user, "orders", bytes(1_500)) == ErrorCode.NONE
        assert await produced(user, "orders", bytes(2_500)) == ErrorCode.MESSAGE_TOO_LARGE


async def test_connection_limits_change_while_running(home: Home, user: User) -> None:
    await user.alter_broker(1, max_connections_per_ip="2")
    async with await User.connect(home.broker.bootstrap_servers) as second:
        await second.metadata()
        async with await User.connect(home.broker.bootstrap_servers) as third:
            assert await third.is_closed()
        await user.alter_broker(1, max_connections_per_ip=None)
        async with await User.connect(home.broker.bootstrap_servers) as third:
            await third.metadata()


async def test_connection_limits_stay_where_a_host_is_unknown_and_a_restart_is_not_kept_from(
    caplog: pytest.LogCaptureFixture,
) -> None:
    home = Home()
    async with home.running() as user:
        await user.alter_broker(max_connections_per_ip_overrides="localhost:5")
        await until(
            lambda: home.broker.node.listeners.limits.max_connections_per_ip_overrides == {"127.0.0.1": 5}
        )
        await user.alter_broker(max_connections_per_ip_overrides="no.such.invalid:6")
        await until(lambda: "Limits of single addresses stay as they are: Unknown host" in caplog.text)
        assert home.broker.node.listeners.limits.max_connections_per_ip_overrides == {"127.0.0.1": 5}
    async with home.running() as user:
        await user.metadata()
        assert home.broker.node.listeners.limits.max_connections_per_ip_overrides == {}


async def test_limits_of_one_listener_change_while_running(home: Home, user: User) -> None:
    name = next(iter(home.broker.node.listeners.listeners))
    prefix = f"listener.name.{name.lower()}"
    changes = {f"{prefix}.max.connections": "2", f"{prefix}.max.connection.creation.rate": "7"}
    await user.alter_broker(1, **changes)
    endpoint = home.broker.node.listeners.listeners[name].endpoint
    assert (endpoint.max_connections, endpoint.max_connection_creation_rate) == (2, 7)
    await user.alter_broker(1, **dict.fromkeys(changes))
    endpoint = home.broker.node.listeners.listeners[name].endpoint
    assert (endpoint.max_connections, endpoint.max_connection_creation_rate) == (UNLIMITED, UNLIMITED)


async def test_flush_messages_holds_the_acknowledgement_until_the_records_are_on_disk(
    home: Home, user: User
) -> None:
    await user.create_topic("ledger", flush_messages="1")
    for number in range(3):
        await user.produce("ledger", b"%d" % number, acks=1)
        log = home.broker.node.logs.get("ledger", 0)
        assert log is not None
        assert log.state.recovery_point == number + 1
    assert len(await user.records("ledger")) == 3
    after = Home(files=home.files.power_cut(), clock=home.clock)
    async with after.running() as reader:
        assert await reader.values("ledger") == [b"0", b"1", b"2"]


async def test_producers_that_wait_at_the_same_moment_share_a_sync(home: Home, user: User) -> None:
    await user.create_topic("ledger", flush_messages="1")
    await user.produce("ledger", b"first", acks=1)
    producers = [await User.connect(home.broker.bootstrap_servers) for _ in range(20)]
    home.files.calls.clear()
    await asyncio.gather(*[producer.produce("ledger", b"x", acks=1) for producer in producers])
    syncs = [path for operation, path in home.files.calls if operation == "sync" and "ledger-0" in path]
    assert 1 <= len(syncs) <= 10, "one at a time, each for all who came meanwhile"
    assert home.broker.node.logs.logs["ledger", 0].state.recovery_point == 21
    for producer in producers:
        await producer.close()


async def test_describe_log_dirs_tells_sizes(home: Home, user: User) -> None:
    await user.create_topic("orders")
    await fill(user, 3)
    answer = await user.send(describe_log_dirs.DescribeLogDirsRequest(topics=None), 4)
    [log_dir] = answer.results
    assert (log_dir.error_code, log_dir.log_dir) == (0, DATA)
    [size] = [p.partition_size for topic in log_dir.topics for p in topic.partitions]
    log = home.broker.node.logs.get("orders", 0)
    assert log is not None
    assert size == log.state.size_bytes > 3 * 900


@pytest.fixture
def home() -> Home:
    """Where time may pass without a word from the client."""
    return Home({"connections.max.idle.ms": "-1"})


@pytest.fixture
async def user(home: Home) -> Any:
    """A client of a broker at `home`."""
    async with home.running() as user:
        yield user
