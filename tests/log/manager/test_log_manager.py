"""All logs of a broker: locks, identity, clean and unclean stops, creation, deletion, failing directories."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import pytest

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.directories import LogDir, LogDirError, LogDirs
from pykafka_broker.log.manager.directory_failures import WARNING_INTERVAL_MS
from pykafka_broker.log.manager.log_folders import WantedLog
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.log.manager.settings import (
    DEFAULT_LOG_SETTINGS,
    WORKERS_IN_THREADS,
    Intervals,
    LogSettings,
    LogWorkers,
)
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.machine.threads import RunBlocking
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.testing.clock import VirtualClock, settle
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import NOW, TOPIC_ID, append, batch, log_of_orders, one_pool, values

OTHER_ID = bytes(16 - n for n in range(16))


class Broker:
    """A manager with a clock that stands still."""

    def __init__(
        self,
        files: MemoryFiles,
        *dirs: str,
        metadata_dir: str | None = None,
        run_long: RunBlocking | None = None,
        config_for: Callable[[str], LogConfig] = lambda topic: LogConfig(),
        settings: LogSettings = DEFAULT_LOG_SETTINGS,
        workers: LogWorkers = WORKERS_IN_THREADS,
        on_dir_failure: Callable[[LogDir], None] = lambda log_dir: None,
    ) -> None:
        self.files = files
        self.config_for = config_for
        self.clock = VirtualClock()
        threads = one_pool(self.run_blocking)
        self.manager = LogManager(
            files,
            LogDirs(files, list(dirs or ("/data",)), metadata_dir),
            threads if run_long is None else threads._replace(run_long=run_long),
            clock=self.clock,
            settings=settings,
            workers=workers,
            on_dir_failure=on_dir_failure,
        )

    async def run_blocking(self, function: Callable[[], Any]) -> Any:
        await asyncio.sleep(0)
        return function()

    async def start(self, node_id: int = 1, cluster_id: str = "cluster") -> LogManager:
        ids = iter(range(100, 200))
        self.manager.dirs.lock()
        self.manager.dirs.check_meta(
            node_id=node_id, cluster_id=cluster_id, new_directory_id=lambda: next(ids).to_bytes(16, "big")
        )
        await self.manager.open_all(self.config_for)
        return self.manager

    async def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.advance(1_000)
            await self.manager.tick()
            for _ in range(5):  # what it has begun
                await asyncio.sleep(0)


async def started(files: MemoryFiles, *dirs: str, **settings: Any) -> LogManager:
    return await Broker(files, *dirs, **settings).start()


def folders(files: MemoryFiles, directory: str = "/data") -> list[str]:
    return sorted(entry.name for entry in files.entries(directory) if entry.is_directory)


async def test_logs_are_found_again_after_a_clean_stop_without_recovery() -> None:
    files = MemoryFiles()
    manager = await started(files)
    append(manager.create("orders", 0, TOPIC_ID, LogConfig()), b"a", b"b")
    append(manager.create("orders", 1, TOPIC_ID, LogConfig()), b"c")
    await manager.close(broker_epoch=9)
    assert files.read_file("/data/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":9}'
    assert files.read_file("/data/recovery-point-offset-checkpoint") == b"0\n2\norders 0 2\norders 1 1\n"
    assert files.read_file("/data/replication-offset-checkpoint") == b"0\n2\norders 0 2\norders 1 1\n"
    assert files.read_file("/data/log-start-offset-checkpoint") == b"0\n0\n"

    again = await started(files)

    assert (again.previous_broker_epoch, len(again)) == (9, 2)
    log = log_of_orders(again)
    assert (log.topic_id, log.state.high_watermark, values(log)) == (TOPIC_ID, 2, [b"a", b"b"])
    assert not files.exists("/data/.kafka_cleanshutdown")


async def test_a_process_that_died_leaves_no_marker_and_everything_is_recovered() -> None:
    files = MemoryFiles()
    manager = await started(files)
    for partition in range(5):
        append(manager.create("orders", partition, TOPIC_ID, LogConfig()), b"%d" % partition)

    again = await started(files.killed())

    assert again.previous_broker_epoch == -1
    assert [values(log_of_orders(again, n)) for n in range(5)] == [[b"%d" % n] for n in range(5)]


async def test_the_log_start_offset_survives_by_its_checkpoint() -> None:
    files = MemoryFiles()
    broker = Broker(files)
    manager = await broker.start()
    log = manager.create("orders", 0, TOPIC_ID, LogConfig())
    append(log, b"a", b"b", b"c")
    log.trimmer.delete_records(2)
    await broker.pass_time(62)

    again = await started(files.killed())

    assert log_of_orders(again).state.log_start_offset == 2


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_topic_made_anew_owes_nothing_to_the_checkpoints_of_the_one_before_it(
    restarted: bool,
) -> None:
    """Its records lay below the old log start offset, and a crash took them."""
    files = MemoryFiles()
    broker = Broker(files)
    manager = await broker.start()
    log = manager.create("orders", 0, TOPIC_ID, LogConfig(segment_bytes=200))
    append(manager.create("users", 0, TOPIC_ID, LogConfig()), b"u")
    for n in range(6):
        append(log, b"%d" % n)
    log.trimmer.delete_records(5)
    await broker.pass_time(62)
    manager.delete("orders", 0)
    await broker.pass_time(1)
    if restarted:
        files = files.killed()
        manager = await started(files)

    log = manager.create("orders", 0, OTHER_ID, LogConfig(segment_bytes=200))
    assert files.read_file("/data/recovery-point-offset-checkpoint") == b"0\n1\nusers 0 0\n"
    append(log, b"new")

    again = log_of_orders(await started(files.killed()))
    assert (again.state.log_start_offset, again.state.recovery_point, values(again)) == (0, 0, [b"new"])


async def test_a_new_log_waits_until_the_checkpoints_have_forgotten_the_old_one() -> None:
    files = MemoryFiles()
    broker = Broker(files)
    manager = await broker.start()
    append(manager.create("orders", 0, TOPIC_ID, LogConfig()), b"a")
    await broker.pass_time(62)
    manager.delete("orders", 0)
    await broker.pass_time(1)
    files.fail("write_file", errno.ENOSPC, path="-checkpoint")

    with pytest.raises(KafkaError) as refused:
        manager.create("orders", 0, OTHER_ID, LogConfig())
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert manager.create("orders", 0, OTHER_ID, LogConfig()).state.log_end_offset == 0


async def test_checkpoints_are_written_when_something_changed_and_only_then() -> None:
    files = MemoryFiles()
    broker = Broker(files)
    manager = await broker.start()
    log = manager.create("orders", 0, TOPIC_ID, LogConfig())
    append(log, b"a")
    await broker.pass_time(6)
    assert files.read_file("/data/replication-offset-checkpoint") == b"0\n1\norders 0 1\n"

    await broker.pass_time(120)
    files.calls.clear()
    await broker.pass_time(120)
    assert files.calls == []


async def test_a_full_disk_does_not_stop_the_checkpoints_for_good() -> None:
    files = MemoryFiles()
    broker = Broker(files)
    manager = await broker.start()
    append(manager.create("orders", 0, TOPIC_ID, LogConfig()), b"a")
    files.free_bytes = 0
    await broker.pass_time(12)
    files.heal()
    await broker.pass_time(6)

    assert files.read_file("/data/replication-offset-checkpoint") == b"0\n1\norders 0 1\n"
    assert manager.dirs.of_partitions[0].is_online


async def test_a_second_broker_on_the_same_directory_is_refused_before_it_touches_anything() -> None:
    files = MemoryFiles()
    await started(files)
    files.calls.clear()

    with pytest.raises(LogDirError, match=r"Failed to acquire lock on file .lock in /data"):
        await started(files)

    assert all(operation == "make_directory" for operation, _ in files.calls)


@pytest.mark.parametrize(
    "identity, complaint",
    [({"node_id": 2}, "belongs to node 1"), ({"cluster_id": "x"}, "belongs to cluster")],
)
async def test_the_directory_of_another_node_or_cluster_is_refused(
    identity: dict[str, Any], complaint: str
) -> None:
    files = MemoryFiles()
    await (await started(files)).close()

    with pytest.raises(LogDirError, match=complaint):
        await Broker(files).start(**identity)


async def test_a_copied_directory_is_refused() -> None:
    files = MemoryFiles()
    await (await started(files, "/a")).close()
    files.make_directory("/b")
    files.write_file("/b/meta.properties", files.read_file("/a/meta.properties"), sync=False)

    with pytest.raises(LogDirError, match=r"same directory\.id"):
        await started(files, "/a", "/b")


async def test_meta_properties_gain_what_older_versions_left_out() -> None:
    files = MemoryFiles()
    files.make_directory("/data")
    files.write_file(
        "/data/meta.properties", b"# old\nversion=0\nbroker.id=1\ncluster.id=cluster\n", sync=False
    )

    manager = await started(files)

    assert manager.dirs.of_partitions[0].directory_id == (100).to_bytes(16, "big")
    assert files.read_file("/data/meta.properties") == (
        b"#\ncluster.id=cluster\ndirectory.id=AAAAAAAAAAAAAAAAAAAAZA\nnode.id=1\nversion=1\n"
    )


async def test_a_deleted_log_is_renamed_in_a_worker_thread_and_removed_after_the_delay() -> None:
    files = MemoryFiles()
    broker = Broker(files)
    manager = await broker.start()
    log = manager.create("orders", 0, TOPIC_ID, LogConfig(file_delete_delay_ms=5000))
    append(log, b"a")
    plan = log.reader.plan_read(0, 100)
    woken: list[bool] = []
    log.on_advance.append(lambda moved: woken.append(moved.closed))

    assert manager.delete("orders", 0) is True

    assert manager.get("orders", 0) is None
    assert folders(files) == ["orders-0"]
    for _ in range(10):
        await asyncio.sleep(0)
    [folder] = folders(files)
    assert folder.startswith("orders-0.") and folder.endswith("-delete")
    assert woken == [True]
    assert plan.read() != b""
    with pytest.raises(KafkaError) as refused:
        append(log, b"b")
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    await broker.pass_time(6)
    assert folders(files) == []


async def test_a_file_that_cannot_be_removed_keeps_no_other_file(caplog: pytest.LogCaptureFixture) -> None:
    """Before, the other removals that were due at that moment were left to the next start."""
    files = MemoryFiles()
    broker = Broker(files)
    manager = await broker.start()
    for partition in range(3):
        log = manager.create("orders", partition, TOPIC_ID, LogConfig(file_delete_delay_ms=0))
        append(log, b"a")
        log.roller.roll()
        log.trimmer.delete_records(1)
        log.trimmer.apply_retention(NOW)
    await settle()
    files.fail("remove", errno.EPERM, path="orders-0/")

    await broker.pass_time(1)

    left = {path.split("/")[2] for path in files.inodes if path.endswith(".deleted")}
    assert left == {"orders-0"}
    assert "Operation not permitted" in caplog.text


async def test_the_folders_above_a_new_log_directory_survive_a_power_cut() -> None:
    files = MemoryFiles()
    await started(files, "/srv/kafka/data")
    assert {"/srv/kafka", "/srv/kafka/data"} <= files.power_cut().directories


async def test_a_long_start_says_how_far_it_is(caplog: pytest.LogCaptureFixture) -> None:
    files = MemoryFiles()
    manager = await started(files)
    for number in range(5):
        append(manager.create("orders", number, TOPIC_ID, LogConfig()), b"a")
    broker = Broker(files.killed())
    unopened: list[int] = []

    def pass_time(operation: str, path: str) -> None:
        if operation == "pread":
            broker.clock.advance(2_000)
            unopened.append(len(broker.manager.dirs.metadata.unopened))

    broker.files.meanwhile = pass_time
    caplog.set_level("INFO")
    await broker.start()
    lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("Recovered")]
    assert lines
    assert lines[0] == "Recovered 1 of 5 logs in /data (20 %, remaining.logs: 4)"
    assert unopened[0] == 5
    assert len(broker.manager.dirs.metadata.unopened) == 0


async def test_some_new_logs_stay_open_for_their_first_records_until_they_are_found_idle() -> None:
    opened: list[str] = []

    class Files(MemoryFiles):
        def open(self, path: str, **details: Any) -> Any:
            opened.append(path)
            return super().open(path, **details)

    broker = Broker(Files())
    manager = await broker.start()
    manager.keep_open(3)

    async def opened_by_a_record(*partitions: int) -> list[int]:
        logs = await manager.create_all([WantedLog("orders", n, TOPIC_ID, LogConfig()) for n in partitions])
        opened.clear()
        for log in logs:
            assert isinstance(log, PartitionLog)
            append(log, b"v")
        return [int(path.split("/")[2].removeprefix("orders-")) for path in opened]

    assert await opened_by_a_record(0, 1, 2, 3, 4) == [3, 4]
    assert await opened_by_a_record(5) == [5]
    await broker.pass_time(130)
    assert await opened_by_a_record(0, 3, 6, 7, 8, 9) == [0, 3, 9]


async def test_many_logs_are_spread_over_the_directories_and_one_that_cannot_be_made_is_told() -> None:
    files = MemoryFiles()
    manager = await started(files, "/data", "/more")
    manager.create("first", 0, TOPIC_ID, LogConfig())
    files.fail("create", errno.ENOSPC, path="orders-2/")
    wanted = [WantedLog("orders", n, TOPIC_ID, LogConfig()) for n in range(5)]

    made = await manager.create_all([*wanted, WantedLog("first", 0, TOPIC_ID, LogConfig(segment_ms=5))])

    assert [log.directory for log in made if isinstance(log, PartitionLog)] == [
        "/more/orders-0",
        "/data/orders-1",
        "/data/orders-3",
        "/more/orders-4",
        "/data/first-0",
    ]
    refused = made[2]
    assert isinstance(refused, KafkaError)
    assert refused.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert manager.get("orders", 2) is None
    first = manager.get("first", 0)
    assert first is not None
    assert first.state.config.segment_ms == 5
    assert len(manager) == 5


async def test_file_work_left_over_from_a_deleted_log_does_not_touch_its_successor() -> None:
    files = MemoryFiles()
    manager = await started(files)
    log = manager.create("orders", 0, TOPIC_ID, LogConfig(segment_bytes=150, retention_ms=1000))
    for n in range(5):
        append(log, b"%d" % n)
    log.trimmer.apply_retention(
        NOW + 60_000
    )  # its renames, and the flush of the rolled segments, wait for a thread

    manager.delete("orders", 0)
    successor = manager.create("orders", 0, OTHER_ID, LogConfig())
    append(successor, b"new")
    for _ in range(10):
        await asyncio.sleep(0)

    assert manager.dirs.of_partitions[0].is_online
    assert sorted(entry.name for entry in files.entries("/data/orders-0")) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert values(log_of_orders(await started(files.killed()))) == [b"new"]


async def test_a_topic_may_be_created_again_while_its_old_files_still_lie_there() -> None:
    files = MemoryFiles()
    manager = await started(files)
    append(manager.create("orders", 0, TOPIC_ID, LogConfig()), b"old")
    manager.delete("orders", 0)

    log = manager.create("orders", 0, OTHER_ID, LogConfig())

    assert (values(log), log.topic_id) == ([], OTHER_ID)
    assert len(folders(files)) == 2
    await manager.close()
    again = await started(files)
    assert log_of_orders(again).topic_id == OTHER_ID


async def test_a_log_of_a_deleted_and_recreated_topic_is_not_mixed_with_the_new_one() -> None:
    files = MemoryFiles()
    manager = await started(files)
    append(manager.create("orders", 0, TOPIC_ID, LogConfig()), b"old")

    assert values(manager.create("orders", 0, OTHER_ID, LogConfig())) == []


async def test_a_lost_partition_metadata_is_written_again_when_the_metadata_names_the_topic() -> None:
    files = MemoryFiles()
    manager = await started(files)
    append(manager.create("orders", 0, TOPIC_ID, LogConfig()), b"a")
    await manager.close()
    files.remove("/data/orders-0/partition.metadata")

    again = await started(files)
    log = again.create("orders", 0, TOPIC_ID, LogConfig())

    assert values(log) == [b"a"]
    assert files.read_file("/data/orders-0/partition.metadata") == (
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    )


async def test_a_log_that_lost_its_topic_id_is_not_taken_for_a_later_topics_where_others_have_all() -> None:
    files = MemoryFiles()
    manager = await started(files)
    append(manager.create("orders", 0, TOPIC_ID, LogConfig()), b"old")
    await manager.close()
    files.remove("/data/orders-0/partition.metadata")

    again = await started(files)
    log = again.create("orders", 0, OTHER_ID, LogConfig(), may_begin_anew=True)

    assert (values(log), log.state.high_watermark, log.topic_id) == ([], 0, OTHER_ID)
    [aside] = [name for name in folders(files) if name.endswith("-stray")]
    assert files.inodes[f"/data/{aside}/00000000000000000000.log"].data


async def test_logs_that_the_metadata_does_not_know_are_set_aside_with_their_data() -> None:
    files = MemoryFiles()
    manager = await started(files)
    manager.create("orders", 0, TOPIC_ID, LogConfig())
    append(manager.create("gone", 0, OTHER_ID, LogConfig()), b"a")

    strays = manager.set_strays_aside(lambda log: log.topic_id == TOPIC_ID)

    assert ([log.topic for log in strays], [log.topic for log in manager]) == (["gone"], ["orders"])
    [aside] = [name for name in folders(files) if name.endswith("-stray")]
    assert aside.startswith("gone-0.")
    assert files.exists(f"/data/{aside}/00000000000000000000.log")
    assert [log.topic for log in await started(files.killed())] == ["orders"]


async def test_leftovers_of_deletions_are_removed_and_foreign_folders_left_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = MemoryFiles()
    for name in (
        "gone-0.0123456789abcdef0123456789abcdef-delete",
        "away-1.0123456789abcdef0123456789abcdef-stray",
        "lost+found",
        "pictures",
        "remote-log-index-cache",
        "__cluster_metadata-0",
    ):
        files.make_directory(f"/data/{name}")
    broker = Broker(files)

    manager = await broker.start()
    await broker.pass_time(1)

    assert len(manager) == 0
    assert folders(files) == [
        "__cluster_metadata-0",
        "away-1.0123456789abcdef0123456789abcdef-stray",
        "lost+found",
        "pictures",
        "remote-log-index-cache",
    ]
    assert [r.getMessage() for r in caplog.records if r.levelname == "WARNING"] == [
        "pictures in /data is no partition's folder; it is left alone"
    ]


@pytest.mark.parametrize(
    "name",
    ["recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint"],
)
@pytest.mark.parametrize("garbage", [b"\xff\xff", b"7\n", b"0\n5\na 1 2\n", b"0\n1\na b c\n"])
async def test_a_garbled_checkpoint_is_set_aside_and_the_broker_starts(name: str, garbage: bytes) -> None:
    files = MemoryFiles()
    manager = await started(files)
    append(manager.create("orders", 0, TOPIC_ID, LogConfig()), b"a")
    await manager.close()
    files.write_file(f"/data/{name}", garbage, sync=False)

    again = await started(files)

    assert values(log_of_orders(again)) == [b"a"]
    assert files.read_file(f"/data/{name}.bad") == garbage


async def test_new_logs_go_to_the_directory_with_the_fewest_or_where_the_controller_says() -> None:
    files = MemoryFiles()
    manager = await started(files, "/a", "/b")

    for partition in range(4):
        manager.create("orders", partition, TOPIC_ID, LogConfig())
    chosen = manager.create(
        "chosen", 0, OTHER_ID, LogConfig(), directory_id=manager.dirs.of_partitions[1].directory_id
    )

    assert [len(manager.logs_in(log_dir)) for log_dir in manager.dirs.of_partitions] == [2, 3]
    assert manager.dir_of(chosen).path == "/b"


async def test_a_failing_disk_takes_only_its_own_logs_out_of_service() -> None:
    files = MemoryFiles()
    told: list[str] = []
    manager = await started(files, "/a", "/b", on_dir_failure=lambda log_dir: told.append(log_dir.path))
    broken, good = (manager.create("orders", n, TOPIC_ID, LogConfig()) for n in range(2))
    append(broken, b"a")
    files.fail("pwrite", errno.EIO, path="/a/")

    for _ in range(2):
        with pytest.raises(KafkaError) as refused:
            append(broken, b"b")
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    await asyncio.sleep(0)

    assert told == ["/a"]
    assert append(good, b"c").first_offset == 0
    assert manager.create("orders", 2, TOPIC_ID, LogConfig()).directory == "/b/orders-2"
    await manager.close()
    assert not files.exists("/a/.kafka_cleanshutdown")
    assert files.exists("/b/.kafka_cleanshutdown")


async def test_a_directory_that_cannot_be_used_at_start_is_skipped_unless_it_has_the_metadata() -> None:
    files = MemoryFiles()
    files.fail("make_directory", errno.EACCES, path="/b")
    manager = await started(files, "/a", "/b")
    assert [log_dir.is_online for log_dir in manager.dirs.of_partitions] == [True, False]

    files.fail("make_directory", errno.EACCES, path="/c")
    with pytest.raises(LogDirError, match=r"Cannot start on the log directories \(/c: Permission denied\)"):
        await started(files, "/c", "/d")


async def test_running_out_of_descriptors_is_no_disk_failure_and_gives_some_back() -> None:
    files = MemoryFiles()
    manager = await started(files)
    logs = [manager.create("orders", n, TOPIC_ID, LogConfig(segment_bytes=150)) for n in range(3)]
    for log in logs:
        append(log, b"a")
        append(log, b"b")
    files.fail("create", errno.EMFILE)

    with pytest.raises(KafkaError) as refused:
        append(logs[0], b"c")

    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not any(segment.holds_resources for log in logs for segment in log.state.segments)
    assert manager.dirs.of_partitions[0].is_online
    assert [append(log, b"c").first_offset for log in logs] == [2, 2, 2]


async def test_what_many_logs_warn_of_at_once_is_one_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    files = MemoryFiles()
    broker = Broker(files)
    manager = await broker.start()
    logs = [manager.create("orders", n, TOPIC_ID, LogConfig(segment_bytes=150)) for n in range(3)]

    async def without_descriptors() -> None:
        """Roll all logs, of which not one can be flushed; then fail to roll them."""
        files.fail("sync", errno.EMFILE, times=3)
        for log in logs:
            log.roller.roll()
            append(log, b"a")
        await settle()
        files.heal()
        files.fail("create", errno.EMFILE, times=3)
        for log in logs:
            with pytest.raises(KafkaError):
                log.roller.roll()
        files.heal()

    for log in logs:
        append(log, b"a")
    caplog.clear()
    await without_descriptors()
    unflushed = (
        "orders-0: the rolled segment is not flushed yet: KAFKA_STORAGE_ERROR: "
        "Error while appending records to orders-0: Too many open files"
    )
    closing = "Too many open files: closing those of all logs; raise the limit (ulimit -n)"
    assert caplog.messages == [unflushed, closing]
    broker.clock.advance(WARNING_INTERVAL_MS)
    await without_descriptors()
    again = " (2 more of these since the last such line)"
    assert caplog.messages == [unflushed, closing, unflushed + again, closing + again]


async def test_a_stop_that_could_not_flush_leaves_no_clean_marker() -> None:
    files = MemoryFiles()
    manager = await started(files)
    append(manager.create("orders", 0, TOPIC_ID, LogConfig()), b"a")
    files.fail("sync", errno.EIO, path=".log")

    await manager.close()

    assert not files.exists("/data/.kafka_cleanshutdown")
    assert values(log_of_orders(await started(files.killed()))) == [b"a"]


async def test_retention_runs_at_its_interval_over_all_logs() -> None:
    files = MemoryFiles()
    broker = Broker(files, settings=LogSettings(Intervals(retention_check_ms=10_000, initial_delay_ms=5_000)))
    manager = await broker.start()
    log = manager.create("orders", 0, TOPIC_ID, LogConfig(retention_ms=1000))

    for seconds, offset in ((5, 0), (2, 1), (8, 1), (2, 2), (8, 2), (2, 3)):
        if log.state.log_start_offset == log.state.log_end_offset:
            append(log, b"a")
        await broker.pass_time(seconds)
        assert log.state.log_start_offset == offset


async def test_flush_ms_flushes_in_the_background() -> None:
    files = MemoryFiles()
    broker = Broker(files)
    manager = await broker.start()
    lazy = manager.create("lazy", 0, TOPIC_ID, LogConfig())
    timed = manager.create("timed", 0, OTHER_ID, LogConfig(flush_ms=3000))
    for log in (lazy, timed):
        append(log, b"a")

    await broker.pass_time(10)

    assert (lazy.state.recovery_point, timed.state.recovery_point) == (0, 1)
    manager.delete("timed", 0)
    again = manager.create("timed", 0, TOPIC_ID, LogConfig(flush_ms=3000))
    append(again, b"b")
    await broker.pass_time(3)
    assert again.state.recovery_point == 0  # its own time counts, not that of the topic before it
    await broker.pass_time(1)
    assert again.state.recovery_point == 1


async def test_a_wall_clock_that_is_set_back_delays_no_flush_no_checkpoint_and_no_removal() -> None:
    files = MemoryFiles()
    intervals = Intervals(recovery_point_checkpoint_ms=5_000, initial_delay_ms=5_000)
    broker = Broker(files, settings=LogSettings(intervals))
    manager = await broker.start()
    append(manager.create("timed", 0, OTHER_ID, LogConfig(flush_ms=3_000)), b"a")
    manager.create("orders", 0, TOPIC_ID, LogConfig(file_delete_delay_ms=5_000))
    manager.delete("orders", 0)
    await broker.pass_time(1)

    broker.clock.set_wall_clock(-3_600_000)
    await broker.pass_time(6)

    assert folders(files) == ["timed-0"]
    assert files.read_file("/data/recovery-point-offset-checkpoint") == b"0\n1\ntimed 0 1\n"


async def test_rolled_segments_are_flushed_by_a_worker_and_need_no_recovery() -> None:
    files = MemoryFiles()
    broker = Broker(files)
    manager = await broker.start()
    log = manager.create("orders", 0, TOPIC_ID, LogConfig(segment_bytes=150))
    for n in range(5):
        log.writer.append(batch(b"%d" % n), leader_epoch=0, now_ms=NOW)
    assert log.state.recovery_point == 0

    for _ in range(10):
        await asyncio.sleep(0)
    assert log.state.recovery_point == 4
    await broker.pass_time(62)
    assert files.read_file("/data/recovery-point-offset-checkpoint") == b"0\n1\norders 0 4\n"
