"""A broker's lives: what survives a stop and a kill, who may share a process or a folder, how starts fail."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from typing import Any

import pytest

from pykafka_broker.broker.broker import Broker
from pykafka_broker.log.disk.directories import LogDirError
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages import join_group
from pykafka_broker.raft.format import StorageFormatError
from pykafka_broker.testing.clock import settle
from pykafka_broker.testing.home import DATA, Home, until
from pykafka_broker.testing.user import BROKER_RESOURCE, TOPIC_RESOURCE, User, fetch_request


async def fill(user: User) -> dict[str, Any]:
    """Something of everything a broker keeps; what to find again."""
    topic_id = await user.create_topic("orders", partitions=2, retention_ms="12345")
    await user.produce("orders", b"one", b"two")
    await user.produce("orders", b"three", partition=1)
    await user.commit("readers", "orders", 2)
    await user.alter_broker(message_max_bytes="55555")
    await user.alter_broker(1, log_retention_ms="777")
    producer_id = await user.new_producer_id()
    return {"topic_id": topic_id, "producer_id": producer_id}


async def check(user: User, kept: dict[str, Any]) -> None:
    """Everything is as `fill` left it."""
    assert await user.topics() == {"orders": kept["topic_id"]}
    assert await user.values("orders") == [b"one", b"two"]
    assert await user.values("orders", partition=1) == [b"three"]
    assert await user.committed("readers") == {("orders", 0): 2}
    assert await user.config(TOPIC_RESOURCE, "orders", "retention.ms") == "12345"
    assert await user.config(BROKER_RESOURCE, "1", "message.max.bytes") == "55555"
    assert await user.config(BROKER_RESOURCE, "1", "log.retention.ms") == "777"
    assert await user.new_producer_id() > kept["producer_id"]


async def test_everything_survives_a_stop(caplog: pytest.LogCaptureFixture) -> None:
    home = Home()
    async with home.running() as user:
        kept = await fill(user)
        cluster_id = (await user.metadata()).cluster_id
    caplog.clear()
    with caplog.at_level("INFO"):
        async with home.running() as user:
            await check(user, kept)
            assert (await user.metadata()).cluster_id == cluster_id
    assert f"Skipping recovery of 52 logs from {DATA} since clean shutdown file was found" in caplog.text


async def test_everything_survives_a_kill(caplog: pytest.LogCaptureFixture) -> None:
    home = Home()
    async with home.running() as user:
        kept = await fill(user)
        after = home.killed()
    caplog.clear()
    with caplog.at_level("INFO"):
        async with after.running() as user:
            await check(user, kept)
    assert f"Recovering 52 logs from {DATA} since no clean shutdown file was found" in caplog.text


async def test_a_producer_goes_on_after_a_restart_without_a_duplicate() -> None:
    home = Home()
    async with home.running() as user:
        await user.create_topic("orders")
        identity = {"producer_id": await user.new_producer_id(), "producer_epoch": 0}
        assert await user.produce("orders", b"one", base_sequence=0, **identity) == 0
    async with home.running() as user:
        assert await user.produce("orders", b"one", base_sequence=0, **identity) == 0
        assert await user.produce("orders", b"two", base_sequence=1, **identity) == 1
        assert await user.values("orders") == [b"one", b"two"]


async def test_brokers_share_a_process_and_an_event_loop_and_nothing_else() -> None:
    homes = [Home({"node.id": str(number)}) for number in (1, 2, 3)]
    brokers = [home.new_broker() for home in homes]
    await asyncio.gather(*[broker.start() for broker in brokers])
    users = [await User.connect(broker.bootstrap_servers) for broker in brokers]

    for number, user in enumerate(users):
        await user.create_topic(f"topic-{number}")
        await user.produce(f"topic-{number}", b"%d" % number)

    found = [(await user.metadata()).brokers[0].node_id for user in users]
    assert found == [1, 2, 3]
    assert [list(await user.topics()) for user in users] == [["topic-0"], ["topic-1"], ["topic-2"]]
    assert len({broker.bootstrap_servers for broker in brokers}) == 3
    for user in users:
        await user.close()
    await asyncio.gather(*[broker.stop() for broker in brokers])


async def test_each_listener_advertises_an_address_of_its_own() -> None:
    home = Home(
        {
            "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0,ANY://0.0.0.0:0",
            "advertised.listeners": "INSIDE://127.0.0.1:0,OUTSIDE://kafka.example.com:19092",
            "listener.security.protocol.map": (
                "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,ANY:PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            "inter.broker.listener.name": "INSIDE",
        },
        listen=None,
    )
    async with home.new_broker() as broker:
        found = {}
        for name, listener in broker.node.listeners.listeners.items():
            async with await User.connect(f"127.0.0.1:{listener.port}") as user:
                [told] = (await user.metadata()).brokers
                found[name] = (told.host, told.port)
        ports = {name: listener.port for name, listener in broker.node.listeners.listeners.items()}
    assert found == {
        "INSIDE": ("127.0.0.1", ports["INSIDE"]),
        "OUTSIDE": ("kafka.example.com", 19092),
        "ANY": ("127.0.0.1", ports["ANY"]),
    }


async def test_a_wildcard_listener_advertises_the_address_its_client_reached() -> None:
    home = Home(listen="0.0.0.0:0")
    async with home.new_broker() as broker:
        port = next(iter(broker.node.listeners.listeners.values())).port
        hosts = []
        for host in ("127.0.0.1", "127.0.0.2"):
            async with await User.connect(f"{host}:{port}") as user:
                hosts.append((await user.metadata()).brokers[0].host)
    assert hosts == ["127.0.0.1", "127.0.0.2"]


async def test_listeners_come_and_go_while_the_broker_runs(caplog: pytest.LogCaptureFixture) -> None:
    home = Home(
        {
            "listeners": "A://127.0.0.1:0,B://127.0.0.1:0",
            "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "A",
        },
        listen=None,
    )
    async with home.running() as user:
        listeners = home.broker.node.listeners.listeners
        first_port, lost = listeners["A"].port, await User.connect(f"127.0.0.1:{listeners['B'].port}")
        await lost.metadata()

        await user.alter_broker(1, listeners="A://127.0.0.1:0,C://127.0.0.1:0")

        assert await lost.is_closed()
        await lost.close()
        await until(lambda: "C" in listeners)
        assert (set(listeners), listeners["A"].port) == ({"A", "C"}, first_port)
        async with await User.connect(f"127.0.0.1:{listeners['C'].port}") as newcomer:
            [told] = (await newcomer.metadata()).brokers
            assert told.port == listeners["C"].port

        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            await user.alter_broker(1, listeners=f"A://127.0.0.1:0,B://127.0.0.1:{port}")
            await until(lambda: any(record.levelname == "ERROR" for record in caplog.records))
            [line] = [record.message for record in caplog.records if record.levelname == "ERROR"]
            assert line.startswith("Listener B is not served: ")
            assert set(listeners) == {"A"}
        await user.alter_broker(1, listeners=None)
        await until(lambda: "B" in listeners)
        assert set(listeners) == {"A", "B"}


async def test_a_misspelt_key_is_named_in_a_program_as_on_the_command_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Home({"num.partition": "3"}).running():
        pass
    line = "These configuration keys are unknown: num.partition (did you mean num.partitions?)"
    assert caplog.messages.count(line) == 1


async def test_a_second_broker_on_a_folder_is_refused_and_harms_nothing() -> None:
    home = Home()
    async with home.running() as user:
        kept = await fill(user)
        other = Home(files=home.files, clock=home.clock)
        before = {path: bytes(inode.data) for path, inode in home.files.inodes.items()}
        with pytest.raises(LogDirError, match=r"Failed to acquire lock on file \.lock in /data\."):
            await other.new_broker().start()
        assert {path: bytes(inode.data) for path, inode in home.files.inodes.items()} == before
        await check(user, kept)
    async with other.running() as user:
        assert await user.values("orders") == [b"one", b"two"]


# --- refusals -------------------------------------------------------------------------------------


async def used_home(**kwargs: Any) -> Home:
    """A home whose broker has run and stopped."""
    home = Home(**kwargs)
    async with home.running() as user:
        await user.create_topic("orders")
        await user.produce("orders", b"one")
    return home


def contents(home: Home) -> dict[str, bytes]:
    return {path: bytes(inode.data) for path, inode in home.files.inodes.items()}


async def refusal(home: Home) -> str:
    """Why a start there is refused; it must not have changed anything."""
    before = contents(home)
    with pytest.raises((LogDirError, StorageFormatError)) as refused:
        await home.new_broker().start()
    assert contents(home) == before
    assert home.files.locked == set()
    return str(refused.value)


async def test_a_folder_of_another_cluster_is_refused() -> None:
    home = await used_home(cluster_id="4L6g3nShT-eMCtK--X86sw")
    other = Home(files=home.files, cluster_id="another-cluster-2345678")
    assert await refusal(other) == (
        "/data belongs to cluster 4L6g3nShT-eMCtK--X86sw, this broker to another-cluster-2345678. "
        "Point log.dirs at this cluster's data, or remove what is there."
    )


async def test_a_folder_of_another_node_is_refused() -> None:
    home = await used_home()
    assert await refusal(Home({"node.id": "7"}, files=home.files)) == (
        "/data belongs to node 1, this is node 7. "
        "Check node.id, or whether the directory was copied from another node."
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"version=2\nnode.id=1\n", "meta.properties has the unknown version '2'"),
        (b"\xff\xfe\x00", "not text"),
        (b"version=1\nnode.id=one\n", "meta.properties has the node id 'one'"),
        (b"version=1\nnode.id=1\ncluster.id=c\ndirectory.id=?\n", "not an id: '?'"),
        (b"", "meta.properties has the unknown version None"),
        (b"version=1\nnode.id=1\n", "cluster.id was not found"),
        (b"version=1\ncluster.id=x\n", "node.id was not found"),
        (b"version=0\nbroker.id=1\n", "meta.properties names no cluster"),
    ],
    ids=[
        "newer version",
        "binary",
        "node id",
        "directory id",
        "empty",
        "no cluster",
        "no node",
        "old, no cluster",
    ],
)
async def test_a_meta_properties_that_makes_no_sense_is_refused(content: bytes, reason: str) -> None:
    home = await used_home()
    home.files.write_file(f"{DATA}/meta.properties", content, sync=False)
    assert await refusal(home) == (
        f"/data/meta.properties cannot be used: {reason}. Start the version of the software that wrote it, "
        "or restore the file from a backup."
    )


async def test_partitions_without_their_metadata_are_not_taken_over() -> None:
    home = await used_home()
    home.files.remove(f"{DATA}/meta.properties")
    assert (await refusal(home)).startswith(
        "/data has no meta.properties, but /data holds partitions (orders-0)."
    )


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
async def test_a_folder_that_cannot_be_written_is_refused(code: int) -> None:
    home = Home()
    home.files.fail("make_directory", code)
    reason = {errno.EROFS: "Read-only file system", errno.EACCES: "Permission denied"}[code]
    assert await refusal(home) == (
        f"Cannot start on the log directories (/data: {reason}). Let this user write there, "
        "or name other folders with log.dirs and metadata.log.dir."
    )


async def test_a_port_in_use_ends_the_start_and_leaves_nothing_behind() -> None:
    threads = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        home = Home(listen=f"127.0.0.1:{taken.getsockname()[1]}")
        broker = home.new_broker()
        with pytest.raises(OSError, match="in use"):
            await broker.start()
    assert home.files.locked == set()
    assert home.clock.pending_timers == 0
    assert set(threading.enumerate()) <= threads
    await broker.stop()
    home = Home(files=home.files)
    async with home.running() as user:
        assert await user.topics() == {}


async def test_a_start_that_fails_after_binding_gives_the_port_back() -> None:
    threads = set(threading.enumerate())
    home = Home()
    broker = home.new_broker()
    home.files.fail("sync", errno.EIO, path="__cluster_metadata-0/0000", skip=3)
    with pytest.raises(KafkaError):
        await broker.start()
    assert home.files.locked == set()
    assert home.clock.pending_timers == 0
    assert set(threading.enumerate()) <= threads


async def test_a_program_that_waits_for_a_failure_hears_why_the_start_failed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        broker = Home(listen=f"127.0.0.1:{taken.getsockname()[1]}").new_broker()
        starting = asyncio.ensure_future(broker.start())
        await asyncio.sleep(0)
        with pytest.raises(OSError, match="in use"):
            await broker.failed()
        with pytest.raises(OSError, match="in use"):
            await starting


# --- the end --------------------------------------------------------------------------------------


async def test_stopping_twice_or_before_the_start_is_harmless() -> None:
    home = Home()
    broker = home.new_broker()
    await broker.start()
    await asyncio.gather(broker.stop(), broker.stop())
    await broker.stop()
    never_started = home.new_broker()
    await never_started.stop()
    with pytest.raises(RuntimeError, match="starts once"):
        await broker.start()


async def test_a_stop_answers_who_waits_and_leaves_the_clean_marker() -> None:
    home = Home({"group.initial.rebalance.delay.ms": "3000"})
    broker = home.new_broker()
    await broker.start()
    user = await User.connect(broker.bootstrap_servers)
    await user.create_topic("orders")
    await user.find_coordinator("workers")
    joiner, fetcher = [await User.connect(broker.bootstrap_servers) for _ in range(2)]
    joining = asyncio.ensure_future(joiner.send(join_request(), 3))
    fetching = asyncio.ensure_future(fetcher.send(fetch_request("orders", max_wait_ms=60_000), 12))
    await until(lambda: broker.node.broker.purgatory.parked == 1)

    await broker.stop()

    assert ErrorCode((await joining).error_code) == ErrorCode.NOT_COORDINATOR
    assert (await fetching).responses[0].partitions[0].error_code == ErrorCode.NONE
    assert [await client.is_closed() for client in (user, joiner, fetcher)] == [True, True, True]
    for client in (user, joiner, fetcher):
        await client.close()
    assert home.files.exists(f"{DATA}/.kafka_cleanshutdown")
    assert home.files.locked == set()
    assert home.clock.pending_timers == 0


async def test_a_killed_broker_answers_nobody_who_waits_and_leaves_no_clean_marker() -> None:
    home = Home()
    broker = home.new_broker()
    await broker.start()
    user, fetcher = [await User.connect(broker.bootstrap_servers) for _ in range(2)]
    await user.create_topic("orders")
    await user.produce("orders", b"one")
    fetching = asyncio.ensure_future(fetcher.send(fetch_request("orders", 1, max_wait_ms=60_000), 12))
    await until(lambda: broker.node.broker.purgatory.parked == 1)

    await broker.kill()
    await broker.kill()

    with pytest.raises(ConnectionError):
        await fetching
    assert await user.is_closed()
    for client in (user, fetcher):
        await client.close()
    assert not home.files.exists(f"{DATA}/.kafka_cleanshutdown")
    assert home.files.locked == set()
    assert home.clock.pending_timers == 0
    async with home.running() as user:
        assert await user.values("orders") == [b"one"]


async def test_a_broker_that_has_handed_over_leads_nothing_and_answers_until_its_stop() -> None:
    home = Home()
    broker = home.new_broker()
    with pytest.raises(RuntimeError, match="this broker has not been started"):
        await broker.hand_over()
    await broker.kill()
    async with home.running() as user:
        await user.create_topic("orders")
        await home.broker.hand_over()
        assert home.broker.node.image.brokers[1].active is False
        assert (await user.metadata("orders")).topics[0].partitions[0].leader_id == -1
    async with home.running() as user:
        await user.produce("orders", b"one")


def join_request() -> join_group.JoinGroupRequest:
    return join_group.JoinGroupRequest(
        group_id="workers",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


async def test_the_line_about_a_request_that_waits_takes_its_limit_from_the_group() -> None:
    home = Home()
    async with home.running() as user:
        limit_ms = home.broker.node.listeners.shared.knowledge.rebalance_timeout_ms
        assert limit_ms("workers") is None, "there is no coordinator yet"
        await user.find_coordinator("workers")
        assert ErrorCode((await user.send(join_request(), 3)).error_code) == ErrorCode.NONE
        assert (limit_ms("workers"), limit_ms("others")) == (10_000, None)


async def test_a_broker_whose_metadata_disk_fails_says_so_and_can_be_stopped() -> None:
    home = Home()
    broker = home.new_broker()
    await broker.start()
    async with await User.connect(broker.bootstrap_servers) as user:
        failed = asyncio.ensure_future(broker.failed())
        home.files.fail("sync", errno.EIO, path="__cluster_metadata-0", times=-1)
        assert await user.try_to_create_topic("orders") == ErrorCode.KAFKA_STORAGE_ERROR
        with pytest.raises(Exception, match="Input/output error"):
            await failed
    await broker.stop()
    assert not home.files.exists(f"{DATA}/.kafka_cleanshutdown")
    home.files.heal()
    async with home.running() as user:
        assert await user.try_to_create_topic("orders-2") == ErrorCode.NONE


async def test_a_stop_under_load_loses_nothing_that_was_acknowledged() -> None:
    home = Home()
    broker = home.new_broker()
    await broker.start()
    users = [await User.connect(broker.bootstrap_servers) for _ in range(8)]
    await users[0].create_topic("orders")
    acknowledged: list[bytes] = []

    async def produce(number: int, user: User) -> None:
        count = 0
        try:
            while True:
                value = b"%d-%d" % (number, count)
                if (await user.try_to_produce("orders", value)).error_code == ErrorCode.NONE:
                    acknowledged.append(value)
                count += 1
        except ConnectionError:
            await user.close()

    producers = [asyncio.ensure_future(produce(number, user)) for number, user in enumerate(users)]
    await until(lambda: len(acknowledged) > 200)
    await broker.stop()
    await asyncio.gather(*producers)

    async with home.running() as user:
        values = await user.values("orders")
    assert set(acknowledged) <= set(values)
    assert len(values) == len(set(values))


async def test_a_start_that_is_cancelled_leaves_nothing_behind() -> None:
    home = Home()
    async with home.running() as user:
        await user.create_topic("orders")
    for turns in range(0, 60, 3):
        starting = asyncio.ensure_future(home.new_broker().start())
        await settle(turns)
        if starting.done():
            break
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert home.files.locked == set(), turns
        assert home.clock.pending_timers == 0, turns
    assert turns > 6
    await home.broker.stop()
    async with home.running() as user:
        assert list(await user.topics()) == ["orders"]


async def test_when_one_listener_cannot_be_had_the_others_are_given_back() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as other:
        free = other.getsockname()[1]
        other.close()
        home = Home(
            {
                "listeners": f"A://127.0.0.1:{free},B://127.0.0.1:{taken.getsockname()[1]}",
                "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "inter.broker.listener.name": "A",
            },
            listen=None,
        )
        with pytest.raises(OSError, match="in use"):
            await home.new_broker().start()
        socket.create_server(("127.0.0.1", free)).close()


async def test_an_error_in_the_body_stops_the_broker() -> None:
    home = Home()
    with pytest.raises(ZeroDivisionError):
        async with home.running():
            raise ZeroDivisionError
    assert home.files.locked == set()
    assert home.files.exists(f"{DATA}/.kafka_cleanshutdown")


async def test_a_program_may_wait_for_a_failure_while_the_broker_starts() -> None:
    home = Home()
    broker = home.new_broker()
    starting = asyncio.ensure_future(broker.start())
    await asyncio.sleep(0)
    failed = asyncio.ensure_future(broker.failed())
    await starting
    assert not failed.done()
    async with await User.connect(broker.bootstrap_servers) as user:
        home.files.fail("sync", errno.EIO, path="__cluster_metadata-0", times=-1)
        await user.try_to_create_topic("orders")
        with pytest.raises(Exception, match="Input/output error"):
            await failed
    await broker.stop()


@pytest.mark.parametrize(
    ("config", "kind"), [({"num.partitions": 1}, "dict"), ("data", "str"), (None, "NoneType")]
)
def test_a_broker_is_made_of_a_loaded_configuration_only(config: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=rf"^Broker takes what load_config\(\) returns, not {kind}$"):
        Broker(config)


@pytest.mark.parametrize("name", ["bootstrap_servers", "node"])
async def test_a_broker_that_was_not_started_answers_with_a_sentence(name: str) -> None:
    broker = Home().new_broker()
    with pytest.raises(RuntimeError, match=r"this broker has not been started: .* start it"):
        getattr(broker, name)
    with pytest.raises(RuntimeError, match="this broker has not been started"):
        await broker.failed()
    async with broker:
        assert getattr(broker, name) is not None
