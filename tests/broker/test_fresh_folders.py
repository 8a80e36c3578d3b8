"""Folders that were formatted and never started on: ours and those of Apache Kafka's `kafka-storage format`.

The golden ones hold what Apache Kafka 4.3.1's tool wrote; where there is Java, the tool itself is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pykafka_broker.cluster.records import decode_record, encode_record
from pykafka_broker.log.disk.checkpoints import decode_meta_properties
from pykafka_broker.log.disk.directories import LogDirError
from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.protocol.messages.records import control
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.protocol.records.batch import iter_batches, read_records
from pykafka_broker.protocol.records.control import decode_raft_record
from pykafka_broker.raft.core.log_view import BOOTSTRAP_SNAPSHOT
from pykafka_broker.raft.format import METADATA_FOLDER
from pykafka_broker.raft.snapshots import decode_snapshot, encode_snapshot
from pykafka_broker.testing.apache.tools import run_tool
from pykafka_broker.testing.home import DATA, Home
from pykafka_broker.testing.memory_files import MemoryFiles
from pykafka_broker.testing.processes import free_port
from tests.cli.conftest import run_command
from tests.raft import apache_bytes as apache

#: A node whose voters stand in the configuration, and one whose voters stand in the metadata log.
COMMON = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "controller.listener.names": "CONTROLLER",
}
STATIC = {**COMMON, "controller.quorum.voters": "1@127.0.0.1:19093"}
DYNAMIC = {**COMMON, "controller.quorum.bootstrap.servers": "127.0.0.1:19093"}
LEVELS = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


def home_of(files: Any, settings: Mapping[str, str], data_dir: str = DATA) -> Home:
    return Home({**settings, "log.dirs": data_dir}, files=files, data_dir=None, listen=None)


def formatted_by_apache(*, dynamic: bool, bootstrap: bytes = apache.BOOTSTRAP_CHECKPOINT) -> MemoryFiles:
    """A folder as `kafka-storage format` leaves it."""
    files = MemoryFiles()
    files.write_file(f"{DATA}/meta.properties", apache.META_PROPERTIES, sync=True)
    files.write_file(f"{DATA}/bootstrap.checkpoint", bootstrap, sync=True)
    if dynamic:
        folder = f"{DATA}/{METADATA_FOLDER}"
        files.make_directory(folder)
        files.write_file(f"{folder}/{BOOTSTRAP_SNAPSHOT.file_name}", apache.FIRST_SNAPSHOT, sync=True)
    return files


class MetadataLog(NamedTuple):
    """What the first segment of a metadata log holds."""

    control_records: list[type]
    records: list[object]


def metadata_log(data: bytes) -> MetadataLog:
    control_records: list[type] = []
    records: list[object] = []
    for position, header in iter_batches(data):
        for record in read_records(data[position : position + header.size_in_bytes]):
            if header.is_control:
                control_records.append(type(decode_raft_record(record.key, record.value)))
            else:
                records.append(decode_record(record.value))
    return MetadataLog(control_records, records)


async def log_after_a_start(home: Home) -> MetadataLog:
    """Start on a folder, see that it is used and found again after a kill; what its metadata log holds."""
    async with home.running() as user:
        await user.create_topic("orders")
        await user.produce("orders", b"one")
        after = home.killed()
    async with after.running() as user:
        assert list(await user.topics()) == ["orders"]
        assert await user.produce("orders", b"two") == 1
    return metadata_log(home.files.read_file(f"{DATA}/{METADATA_FOLDER}/00000000000000000000.log"))


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "standalone"])
async def test_a_start_on_a_folder_fresh_from_apaches_tool_goes_by_its_feature_levels(
    dynamic: bool, caplog: pytest.LogCaptureFixture
) -> None:
    home = home_of(formatted_by_apache(dynamic=dynamic), DYNAMIC if dynamic else STATIC)
    log = await log_after_a_start(home)

    levels = [m.FeatureLevelRecord(name=name, feature_level=level) for name, level in LEVELS.items()]
    assert log.records[: len(levels) + 2] == [
        m.BeginTransactionRecord(name="Bootstrap records"),
        *levels,
        m.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
    ]
    voters = [control.KRaftVersionRecord, control.VotersRecord] if dynamic else []
    assert log.control_records == [control.LeaderChangeMessage, *voters]
    assert home.broker.node.image.features == LEVELS
    assert home.broker.node.broker.ports.metadata.kraft_version == (1 if dynamic else 0)
    kept = [r.getMessage() for r in caplog.records if "does not serve" in r.getMessage()]
    assert kept == []


async def test_scram_credentials_that_formatting_adds_are_kept() -> None:
    home = home_of(formatted_by_apache(dynamic=False, bootstrap=apache.BOOTSTRAP_WITH_SCRAM), STATIC)
    log = await log_after_a_start(home)
    [kept] = [record for record in log.records if isinstance(record, m.UserScramCredentialRecord)]
    bootstrap = decode_snapshot(apache.BOOTSTRAP_WITH_SCRAM)
    assert kept == decode_record(bootstrap.values[-1])
    assert (kept.name, kept.mechanism, kept.iterations) == ("alice", 1, 4096)


async def test_a_level_that_is_not_known_is_refused_before_anything_is_written() -> None:
    unknown = encode_record(m.FeatureLevelRecord(name="later.version", feature_level=1), 30)
    values = [*decode_snapshot(apache.BOOTSTRAP_CHECKPOINT).values, unknown]
    bootstrap = encode_snapshot(values, None, last_timestamp_ms=0, now_ms=0)
    files = formatted_by_apache(dynamic=False, bootstrap=bootstrap)
    with pytest.raises(LogDirError, match=r"later\.version at level 1, this version does not know it"):
        await home_of(files, STATIC).new_broker().start()
    assert not [path for path in files.inodes if path.endswith("quorum-state")]


async def test_a_metadata_log_that_was_lost_is_not_taken_for_a_fresh_folder() -> None:
    home = home_of(formatted_by_apache(dynamic=False), STATIC)
    await log_after_a_start(home)
    home.files.remove_tree(f"{DATA}/{METADATA_FOLDER}")
    with pytest.raises(LogDirError, match=r"the folder is missing although the directory was in use: it has"):
        await home.new_broker().start()
    assert not home.files.exists(f"{DATA}/{METADATA_FOLDER}")


async def test_a_metadata_log_without_its_segments_is_not_taken_for_a_new_one() -> None:
    home = home_of(formatted_by_apache(dynamic=False), STATIC)
    await log_after_a_start(home)
    folder = f"{DATA}/{METADATA_FOLDER}"
    for path in [path for path in home.files.inodes if path.startswith(folder) and path.endswith(".log")]:
        home.files.remove(path)
    with pytest.raises(LogDirError, match=r"no segment and no snapshot is left beside quorum-state"):
        await home.new_broker().start()


async def test_voters_in_the_configuration_stay_out_of_the_files_of_a_first_start() -> None:
    home = home_of(MemoryFiles(), STATIC)
    log = await log_after_a_start(home)
    assert log.control_records == [control.LeaderChangeMessage]
    assert not home.files.exists(f"{DATA}/{METADATA_FOLDER}/{BOOTSTRAP_SNAPSHOT.file_name}")
    assert b'"data_version":0' in home.files.read_file(f"{DATA}/{METADATA_FOLDER}/quorum-state")


async def test_a_first_start_with_voters_in_the_configuration_survives_a_power_cut() -> None:
    home = home_of(MemoryFiles(), STATIC)
    async with home.running() as user:
        await user.create_topic("orders")
        cut = home.files.power_cut()
    async with home_of(cut, STATIC).running() as user:
        assert list(await user.topics()) == ["orders"]


async def test_a_node_formatted_without_voters_says_where_they_belong() -> None:
    files = formatted_by_apache(dynamic=False)
    itself = f"127.0.0.1:{free_port()}"
    alone = {
        **DYNAMIC,
        "controller.quorum.bootstrap.servers": itself,
        "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://{itself}",
    }
    with pytest.raises(LogDirError, match=r"finds no voters .* controller\.quorum\.voters \(1@host:port\)"):
        await home_of(files, alone).new_broker().start()


# -- beside Apache Kafka's tool ----------------------------------------------------------------------------


class Formatted(NamedTuple):
    """What formatting left, without what differs from time to time: times and directory ids."""

    files: list[str]
    meta: list[tuple[str | None, int | None]]
    records: list[list[object]]
    voters: object


def formatted_folder(folder: Path) -> Formatted:
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    meta = [decode_meta_properties((folder / d / "meta.properties").read_bytes()) for d in ("a", "b")]
    bootstraps = [decode_snapshot((folder / d / "bootstrap.checkpoint").read_bytes()) for d in ("a", "b")]
    voters: object = None
    first = folder / "a" / METADATA_FOLDER / BOOTSTRAP_SNAPSHOT.file_name
    if first.exists():
        found = decode_snapshot(first.read_bytes()).voters
        assert found is not None
        voters = [
            (
                voter.key.node_id,
                "own" if voter.key.directory_id == meta[0].directory_id else voter.key.directory_id,
                voter.endpoints,
                voter.kraft_versions,
            )
            for voter in found.voters.values()
        ]
    records = [[decode_record(value) for value in bootstrap.values] for bootstrap in bootstraps]
    return Formatted(names, [(one.cluster_id, one.node_id) for one in meta], records, voters)


def format_with_apache(properties: Path, cluster_id: str, *options: str) -> None:
    run_tool("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties), *options)


def properties_file(folder: Path, settings: Mapping[str, str]) -> Path:
    """Settings of a node with two log directories in `folder`."""
    folder.mkdir()
    path = folder.with_suffix(".properties")
    written = {
        **settings,
        "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
        "log.dirs": f"{folder}/a,{folder}/b",
    }
    path.write_text("".join(f"{key}={value}\n" for key, value in written.items()))
    return path


EVERYWHERE = {"listeners": "CONTROLLER://0.0.0.0:9093", "process.roles": "controller"}
VOTERS = "1@one:9093:JEXY6aqzQY-32P5TStzaFg,2@[::1]:9094:MvDxzVmcRsaTz33bUuRU6A"
OTHER_VOTER = "2@two:9094:MvDxzVmcRsaTz33bUuRU6A"


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        (STATIC, []),
        (DYNAMIC, ["--standalone"]),
        (DYNAMIC, ["--no-initial-controllers"]),
        (DYNAMIC, ["--initial-controllers", VOTERS]),
        (DYNAMIC, ["--initial-controllers", OTHER_VOTER]),
        (DYNAMIC, ["--standalone", "--release-version", "4.0", "--feature", "group.version=0"]),
        ({**DYNAMIC, **EVERYWHERE}, ["--standalone"]),
    ],
    ids=["static", "standalone", "none", "voters", "another", "release", "every interface"],
)
def test_ours_leaves_the_files_that_apaches_tool_leaves(
    settings: Mapping[str, str], options: list[str], kafka_jars: Path, tmp_path: Path
) -> None:
    cluster_id = "any = text: #1"
    format_with_apache(properties_file(tmp_path / "apache", settings), cluster_id, *options)
    ours_file = properties_file(tmp_path / "ours", settings)
    done = run_command("format", "-c", str(ours_file), "-t", cluster_id, *options)
    assert done.status == 0, done.err
    ours, theirs = formatted_folder(tmp_path / "ours"), formatted_folder(tmp_path / "apache")
    assert ours == theirs


@pytest.mark.gate("the folder that Apache Kafka's own tool formats today")
async def test_ours_starts_on_a_folder_that_apaches_tool_has_just_formatted(
    kafka_jars: Path, tmp_path: Path
) -> None:
    scram = ("--add-scram", "SCRAM-SHA-256=[name=alice,password=secret]", "--release-version", "3.9")
    properties = properties_file(tmp_path / "node", STATIC)
    format_with_apache(properties, apache.CLUSTER_ID, *scram)
    home = home_of(OsFileSystem(), STATIC, f"{tmp_path}/node/a,{tmp_path}/node/b")
    async with home.running() as user:
        await user.create_topic("orders")
        assert home.broker.node.image.features["metadata.version"] == 21
    data = (tmp_path / "node" / "a" / METADATA_FOLDER / "00000000000000000000.log").read_bytes()
    names = [r.name for r in metadata_log(data).records if isinstance(r, m.UserScramCredentialRecord)]
    assert names == ["alice"]
