"""From empty folders to a broker's own: formatting, several folders, metadata that we cannot go by."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable

import pytest

from pykafka_broker.broker.formatting import format_directories
from pykafka_broker.broker.metadata_log import open_metadata_log
from pykafka_broker.cluster.records import FRAME_VERSION, encode_record
from pykafka_broker.config.sources import load_config
from pykafka_broker.log.disk.checkpoints import decode_meta_properties
from pykafka_broker.log.disk.directories import LogDirError
from pykafka_broker.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from pykafka_broker.protocol.messages.records import control
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.raft.format import METADATA_FOLDER
from pykafka_broker.raft.storage import RaftStorage
from pykafka_broker.testing.home import DATA, PATIENCE_SECONDS, Home
from pykafka_broker.testing.memory_files import MemoryFiles
from pykafka_broker.testing.user import User


def run(job: Callable[[], object]) -> None:
    job()


def metadata_log(home: Home) -> RaftStorage:
    """The metadata log of a home whose broker does not run."""
    return open_metadata_log(home.files, home.config(), now_ms=0, run_later=run)


def metadata_files(home: Home) -> dict[str, bytes]:
    """What a start must not touch before it knows that it may."""
    names = (".log", "quorum-state", "meta.properties", ".kafka_cleanshutdown")
    return {path: bytes(inode.data) for path, inode in home.files.inodes.items() if path.endswith(names)}


def append_to_metadata(home: Home, *values: bytes) -> None:
    """Write metadata that a later version of the software might have written."""
    storage = metadata_log(home)
    storage.append_metadata(values, epoch=storage.log.state.latest_epoch, now_ms=0)
    storage.log.close()


async def used_home() -> Home:
    home = Home()
    async with home.running() as user:
        await user.create_topic("orders")
        await user.produce("orders", b"one")
    return home


def meta(files: MemoryFiles, directory: str) -> tuple[str | None, int | None]:
    found = decode_meta_properties(files.read_file(f"{directory}/meta.properties"))
    assert found.directory_id is not None
    return found.cluster_id, found.node_id


async def test_a_first_start_formats_every_folder(caplog: pytest.LogCaptureFixture) -> None:
    home = Home({"node.id": "3"}, data_dir="/a,/b", cluster_id="4L6g3nShT-eMCtK--X86sw")
    with caplog.at_level("INFO"):
        async with home.running():
            pass
    assert meta(home.files, "/a") == meta(home.files, "/b") == ("4L6g3nShT-eMCtK--X86sw", 3)
    assert home.files.exists(f"/a/{METADATA_FOLDER}")
    assert not home.files.exists(f"/b/{METADATA_FOLDER}")
    assert [r.message for r in caplog.records if r.message.startswith("Formatted")] == [
        "Formatted /a for cluster 4L6g3nShT-eMCtK--X86sw",
        "Formatted /b for cluster 4L6g3nShT-eMCtK--X86sw",
    ]


async def test_who_names_the_folders_in_another_order_is_told_which_comes_first() -> None:
    home = Home({"log.dirs": "/a,/b"}, data_dir=None)
    async with home.running():
        pass
    before = metadata_files(home)
    home.overrides["log.dirs"] = "/b,/a"

    with pytest.raises(LogDirError, match=r"Name /a first in log\.dirs, or as metadata\.log\.dir\."):
        async with home.running():
            pass

    assert metadata_files(home) == before


def format_what_is_new(home: Home) -> None:
    """`pykafka-broker format --ignore-formatted`."""
    format_directories(home.files, home.config(), now_ms=0, ignore_formatted=True)


async def test_a_folder_that_comes_later_joins_the_cluster_once_it_is_formatted() -> None:
    files = MemoryFiles()
    async with Home(data_dir="/a", files=files).running():
        pass
    home = Home(data_dir="/a,/b", files=files)
    with pytest.raises(LogDirError, match=r"No `meta\.properties` found in /b \(have you run "):
        await home.new_broker().start()
    assert not files.exists("/b/meta.properties")
    assert files.locked == set()
    format_what_is_new(home)
    async with home.running() as user:
        for number in range(4):
            await user.create_topic(f"topic-{number}")
    assert meta(files, "/b") == meta(files, "/a")
    placed = sorted(path for path in files.directories if "/topic-" in path)
    assert [path[:2] for path in placed] == ["/a", "/a", "/b", "/b"]


def carry(files: MemoryFiles, old: str, new: str) -> None:
    """Let a disk be mounted elsewhere."""
    for folder in [path for path in files.directories if path.startswith(f"{old}/")]:
        files.rename(folder, new + folder.removeprefix(old))
    files.rename(old, new)


async def until_led(user: User, topic: str, partition: int) -> None:
    """Where a log is, the controller hears after the start, and gives the partition its leader back."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            [described] = (await user.metadata(topic)).topics
            if any(p.partition_index == partition and p.leader_id >= 0 for p in described.partitions):
                return
            await asyncio.sleep(0)


@pytest.mark.parametrize("then", ["the disk is back", "an empty folder is made", "the topic is deleted"])
async def test_a_disk_that_is_not_mounted_is_not_replaced_by_an_empty_folder(
    then: str, caplog: pytest.LogCaptureFixture
) -> None:
    files = MemoryFiles()
    home = Home(data_dir="/a,/b", files=files)
    async with home.running() as user:
        await user.create_topic("orders", partitions=2)
        for partition in range(2):
            await user.produce("orders", b"%d" % partition, partition=partition)
    away = next(p for p in range(2) if files.exists(f"/b/orders-{p}"))
    carry(files, "/b", "/elsewhere")

    with pytest.raises(LogDirError, match=r"No `meta\.properties` found in /b .* mount its disk"):
        await home.new_broker().start()

    format_what_is_new(home)
    for _ in range(2):
        async with home.running() as user:
            assert await user.values("orders", partition=1 - away) == [b"%d" % (1 - away)]
            answer = await user.try_to_produce("orders", b"x", partition=away)
            assert answer.error_code == 56  # KAFKA_STORAGE_ERROR
        [line] = [r.message for r in caplog.records if f"orders-{away} is offline" in r.message]
        assert f"make an empty folder orders-{away} in one of log.dirs" in line
        caplog.clear()
    assert not any(path.endswith(f"/orders-{away}") for path in files.directories if path[:2] in ("/a", "/b"))

    if then == "the disk is back":
        carry(files, "/b", "/unused")
        carry(files, "/elsewhere", "/b")
        expected = [b"%d" % away]
    else:
        expected = []
    if then == "an empty folder is made":
        files.make_directory(f"/b/orders-{away}")
    async with home.running() as user:
        if then == "the topic is deleted":
            await user.delete_topic("orders")
            await user.create_topic("orders", partitions=2)
        await until_led(user, "orders", away)
        assert await user.values("orders", partition=away) == expected
        await user.produce("orders", b"new", partition=away)
        assert await user.values("orders", partition=away) == [*expected, b"new"]


async def test_the_half_copy_of_a_log_whose_directory_is_away_is_shown_and_not_served() -> None:
    files = MemoryFiles()
    home = Home(data_dir="/a,/b", files=files)
    async with home.running() as user:
        await user.create_topic("orders", partitions=2)
    away = next(p for p in range(2) if files.exists(f"/b/orders-{p}"))
    files.rename(f"/b/orders-{away}", f"/a/orders-{away}.{'5' * 32}-future")

    async with Home(data_dir="/a", files=files).running() as user:
        answer = await user.try_to_produce("orders", b"x", partition=away)
        assert answer.error_code == 56  # KAFKA_STORAGE_ERROR
        topics = [DescribableLogDirTopic(topic="orders", partitions=[away])]
        [directory] = (await user.send(DescribeLogDirsRequest(topics=topics), 4)).results
    [partition] = directory.topics[0].partitions
    assert (partition.partition_index, partition.is_future_key, partition.offset_lag) == (away, True, -1)


async def test_the_metadata_log_may_have_a_folder_of_its_own() -> None:
    home = Home({"metadata.log.dir": "/meta"})
    for value in (b"one", b"two"):
        async with home.running() as user:
            if not await user.topics():
                await user.create_topic("orders")
            await user.produce("orders", value)
    assert home.files.exists(f"/meta/{METADATA_FOLDER}")
    assert home.files.exists("/meta/.kafka_cleanshutdown")
    assert home.files.exists(f"{DATA}/orders-0")
    assert meta(home.files, "/meta") == meta(home.files, DATA)
    async with home.running() as user:
        assert await user.values("orders") == [b"one", b"two"]
        with pytest.raises(LogDirError, match=r"Failed to acquire lock on file \.lock in /meta"):
            await (
                Home({"metadata.log.dir": "/meta"}, data_dir="/other", files=home.files).new_broker().start()
            )


async def test_a_folder_that_cannot_be_used_is_left_out_unless_it_has_the_metadata() -> None:
    files = MemoryFiles()
    home = Home(data_dir="/a,/b", files=files)
    async with home.running() as user:
        for number in range(2):
            await user.create_topic(f"topic-{number}")
            await user.produce(f"topic-{number}", b"%d" % number)
    in_b = next(path for path in files.directories if path.startswith("/b/topic"))
    lost = in_b.removeprefix("/b/").removesuffix("-0")
    kept = {"topic-0": "topic-1", "topic-1": "topic-0"}[lost]

    files.fail("make_directory", errno.EIO, path="/b")
    async with home.running() as user:
        assert len(await user.values(kept)) == 1
        assert (await user.try_to_produce(lost, b"x")).error_code == 56  # KAFKA_STORAGE_ERROR
        await user.create_topic("new")
        await user.produce("new", b"x")
    assert not files.exists(f"/a/{lost}-0"), "an empty log must not stand in for the one that is away"

    async with home.running() as user:
        assert await user.values(lost) == [lost[-1:].encode()]
        assert await user.values("new") == [b"x"]

    files.fail("make_directory", errno.EIO, path="/a")
    with pytest.raises(LogDirError, match=r"Cannot start on the log directories \(/a: Input/output error\)"):
        await home.new_broker().start()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (bytes((FRAME_VERSION, 99, 0)), "metadata record type 99 is unknown"),
        (bytes((2, 2, 0)), "metadata frame version 2 is unknown"),
        (bytes((FRAME_VERSION, 2, 0)) + b"\x05ab", "a metadata record cannot be read: "),
        (
            encode_record(m.FeatureLevelRecord(name="metadata.version", feature_level=31), 30),
            "the cluster has metadata.version at level 31, this version serves 7 to 30",
        ),
        (
            encode_record(m.FeatureLevelRecord(name="teleport.version", feature_level=1), 30),
            "the cluster has teleport.version at level 1, this version does not know it",
        ),
    ],
    ids=["record type", "frame version", "garbage", "metadata.version", "feature"],
)
async def test_metadata_of_a_later_version_is_refused(value: bytes, reason: str) -> None:
    home = await used_home()
    append_to_metadata(home, value)
    before = metadata_files(home)

    with pytest.raises(LogDirError) as refused:
        await home.new_broker().start()

    text = str(refused.value)
    assert text.startswith(f"The metadata log in {DATA}/__cluster_metadata-0 cannot be used: {reason}")
    assert text.endswith(
        "Start the version of the software that wrote it, or restore the folder from a backup."
    )
    assert metadata_files(home) == before
    assert home.files.locked == set()


@pytest.mark.parametrize(
    ("voter_id", "reason"),
    [
        (1, "it knows node 1 by another directory.id than that of meta.properties. "),
        (2, r"node 1 finds the voters \[2\] in its metadata log: it can serve a quorum of itself alone. "),
    ],
)
async def test_a_metadata_log_of_other_voters_is_refused(voter_id: int, reason: str) -> None:
    home = await used_home()
    storage = metadata_log(home)
    voter = control.VotersRecordVoter(
        voter_id=voter_id,
        voter_directory_id=bytes(range(16)),
        endpoints=[],
        kraft_version_feature=control.KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
    )
    storage.append_control([control.VotersRecord(version=0, voters=[voter])], epoch=9, now_ms=0)
    storage.log.close()
    with pytest.raises(LogDirError, match=reason):
        await home.new_broker().start()


async def test_topics_that_a_lost_metadata_log_does_not_know_keep_their_data(
    caplog: pytest.LogCaptureFixture,
) -> None:
    home = await used_home()
    log = home.files.read_file(f"{DATA}/orders-0/00000000000000000000.log")
    for path in list(home.files.inodes):
        if METADATA_FOLDER in path and not path.endswith(".checkpoint"):
            del home.files.inodes[path]

    async with home.running() as user:
        assert await user.topics() == {}
        await user.create_topic("orders")
        assert await user.values("orders") == []

    [aside] = [path for path in home.files.directories if path.endswith("-stray")]
    assert home.files.read_file(f"{aside}/00000000000000000000.log") == log
    [line] = [r.message for r in caplog.records if "The metadata does not know" in r.message]
    assert line == f"The metadata does not know {DATA}/orders-0: kept as {aside}"
    async with home.running() as user:
        assert list(await user.topics()) == ["orders"]
    assert home.files.exists(aside)


async def test_a_log_whose_topic_has_another_id_by_now_is_a_stray_too() -> None:
    home = await used_home()
    home.files.write_file(
        f"{DATA}/orders-0/partition.metadata", b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw", sync=False
    )
    async with home.running() as user:
        assert await user.values("orders") == []
    assert [path for path in home.files.directories if path.endswith("-stray")]


async def test_a_lost_partition_metadata_does_not_make_a_stray() -> None:
    home = await used_home()
    home.files.remove(f"{DATA}/orders-0/partition.metadata")
    async with home.running() as user:
        assert await user.values("orders") == [b"one"]
    assert home.files.exists(f"{DATA}/orders-0/partition.metadata")


async def test_no_failing_disk_operation_of_a_start_leaves_anything_behind() -> None:
    """Every call that a start makes fails once; the next start works, whatever came of it."""
    home = await used_home()
    trial = home.killed()
    async with trial.running():
        pass
    operations = trial.files.calls
    assert len(operations) > 20
    for number, (operation, path) in enumerate(operations):
        broken = home.killed()
        earlier = operations[:number].count((operation, path))
        broken.files.fail(operation, errno.EIO, path=path, skip=earlier)
        broker = broken.new_broker()
        try:
            await broker.start()
        except Exception as error:
            assert "Input/output error" in f"{error} {error.__cause__}", (operation, path)
        else:
            await broker.stop()
        assert broken.files.locked == set(), (operation, path)
        assert home.clock.pending_timers == 0, (operation, path)
        broken.files.heal()
        async with broken.running() as user:
            assert await user.values("orders") == [b"one"], (operation, path)


def test_a_properties_file_may_name_the_metadata_folder() -> None:
    config = load_config(overrides=["metadata.log.dir=/meta"], data_dir="/a")
    assert config.metadata_log_dir == "/meta"


@pytest.mark.parametrize("kept_bytes", [0, 1000, 2000])
async def test_a_metadata_log_that_was_cut_goes_on_from_the_snapshot_that_reaches_further(
    kept_bytes: int,
) -> None:
    home = Home({"metadata.log.max.record.bytes.between.snapshots": "1500"})
    async with home.running() as user:
        topic_ids = {f"topic-{number}": await user.create_topic(f"topic-{number}") for number in range(20)}
        await user.produce("topic-3", b"one")
        await home.pass_time(1_000)
    snapshots = [
        path for path in home.files.inodes if path.endswith(".checkpoint") and METADATA_FOLDER in path
    ]
    covered = int(max(snapshots).rpartition("/")[2][:20])
    [log] = [path for path in home.files.inodes if path.endswith(".log") and METADATA_FOLDER in path]
    del home.files.inodes[log].data[kept_bytes:]

    for _ in range(2):
        async with home.running() as user:
            found = await user.topics()
            assert found.items() <= topic_ids.items()
            assert len(found) > 10
            assert home.broker.node.image.offset >= covered
            assert await user.values("topic-3") == [b"one"]


async def test_the_metadata_log_rolls_by_its_own_keys_and_early() -> None:
    home = await used_home()
    assert metadata_log(home).log.state.config.segment_bytes == 64 * 1024 * 1024
    home.overrides = {"metadata.log.segment.bytes": "8388608", "metadata.log.segment.ms": "5000"}
    config = metadata_log(home).log.state.config
    assert (config.segment_bytes, config.segment_ms) == (8388608, 5000)
