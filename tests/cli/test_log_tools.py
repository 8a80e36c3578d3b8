"""`log verify`, `log repair` and `log stats` on folders that are whole, damaged in every way, and in use."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from pykafka_broker.cli import progress
from pykafka_broker.cli.log_report import LARGEST
from pykafka_broker.cli.wording import human_size
from pykafka_broker.log.check import partition_check as checking
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import FileSystem, OsFileSystem, lock_holder
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.load_partition import open_log
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import BatchFields, Codec, build_batch, iter_batches
from tests.cli.conftest import Output, Result, run_command

NOW = 1_700_000_000_000
FIRST, SECOND = "00000000000000000000", "00000000000000000007"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A closed partition: two segments of batches with two records, one in three compressed."""
    directory = tmp_path / "data" / "orders-0"
    config = LogConfig(index_interval_bytes=0)
    log = create_log(
        Environment(OsFileSystem()), LogIdentity(str(directory), "orders", 0, bytes(range(16))), config
    )
    for number in range(10):
        records = [(NOW + number, b"k", b"%d" % number * 20, ())] * (1 if number == 3 else 2)
        codec = Codec.GZIP if number % 3 == 0 else Codec.NONE
        batch = build_batch(records, BatchFields(codec=codec))
        log.writer.append(bytearray(batch), leader_epoch=0, now_ms=NOW)
        if number == 3:
            log.roller.roll()
    assert log.close()
    return directory


def opened(folder: Path, *, clean: bool) -> PartitionLog:
    log = open_log(
        Environment(OsFileSystem()),
        LogIdentity(str(folder), "orders", 0, bytes(range(16))),
        LogConfig(),
        clean=clean,
    )
    log.state.advance_high_watermark(log.state.log_end_offset)
    return log


def run(*arguments: object) -> Result:
    return run_command("log", *map(str, arguments))


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x40
    path.write_bytes(data)


def lines(result: Result) -> list[str]:
    return [line.strip() for line in result.out.splitlines()[1:]]


def test_a_whole_folder_is_ok_by_itself_and_among_others(folder: Path) -> None:
    assert run("verify", folder) == (0, f"{folder}: 19 records in 2 segments: ok\n", "")
    assert run("verify", folder.parent) == (0, f"{folder}: 19 records in 2 segments: ok\n", "")
    told = json.loads(run("verify", "--json", folder).out)
    assert told == {
        "partition": "orders-0",
        "segments": 2,
        "bytes": sum(path.stat().st_size for path in folder.glob("*.log")),
        "batches": 10,
        "records": 19,
        "end_offset": 19,
        "in_use": False,
        "findings": [],
    }


def batch_at(folder: Path, number: int) -> tuple[int, int]:
    """Where a batch of the first segment begins and ends."""
    data = (folder / f"{FIRST}.log").read_bytes()
    at, header = list(iter_batches(data))[number]
    return at, at + header.size_in_bytes


def test_damage_in_a_closed_segment_is_named_and_fenced_and_the_rest_is_served(folder: Path) -> None:
    start, end = batch_at(folder, 1)
    flip(folder / f"{FIRST}.log", end - 3)
    text = f"{FIRST}.log offsets 2 to 3 are damaged (bytes {start} to {end})"
    fence = "(fence it off: reads of these offsets get CORRUPT_MESSAGE, all others are served)"
    found = run("verify", folder)
    assert (found.status, lines(found)[0]) == (1, f"{text} {fence}")
    before = (folder / f"{FIRST}.log").read_bytes()
    assert run("repair", "--dry-run", folder).status == 0
    assert not (folder / f"{FIRST}.damaged").exists()

    repaired = run("repair", folder)

    assert repaired.status == 0
    assert repaired.out.endswith("mended\n")
    assert (folder / f"{FIRST}.log").read_bytes() == before
    assert lines(run("verify", folder)) == [f"{text} (fenced off already)"]
    log = opened(folder, clean=True)
    for offset in (2, 3):
        with pytest.raises(KafkaError) as refused:
            log.reader.plan_read(offset, 1000).read()
        assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert [next(iter_batches(log.reader.plan_read(o, 1).read()))[1].base_offset for o in (0, 4, 6, 7)] == [
        0,
        4,
        6,
        7,
    ]


def test_the_end_of_a_closed_segment_is_damaged_and_that_of_the_last_one_torn(folder: Path) -> None:
    closed, last = folder / f"{FIRST}.log", folder / f"{SECOND}.log"
    start, end = batch_at(folder, 3)
    closed.write_bytes(closed.read_bytes()[: end - 5])
    whole = last.read_bytes()
    last.write_bytes(whole + whole[:30])
    found = run("verify", folder)
    assert found.status == 1
    assert lines(found)[0].startswith(f"{FIRST}.log offsets 6 to 6 are damaged (bytes {start} to {end - 5})")
    assert f"{SECOND}.log ends in 30 bytes that are no batch, at offset 19 (cut it off)" in lines(found)
    assert run("repair", folder).status == 0
    assert last.read_bytes() == whole
    assert opened(folder, clean=False).state.log_end_offset == 19


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        (f"{FIRST}.index", lambda path: flip(path, 3)),
        (f"{FIRST}.timeindex", lambda path: flip(path, 7)),
        (f"{SECOND}.snapshot", lambda path: flip(path, 4)),
        ("leader-epoch-checkpoint", lambda path: path.write_text("nonsense")),
    ],
)
def test_side_files_that_are_wrong_are_removed_and_made_anew(
    folder: Path, name: str, damage: Callable[[Path], None]
) -> None:
    damage(folder / name)
    found = run("verify", folder)
    assert found.status == 1
    assert lines(found)[0].startswith(name)
    assert run("repair", folder).status == 0
    assert not (folder / name).exists()
    log = opened(folder, clean=True)
    assert (log.state.log_end_offset, log.state.latest_epoch) == (19, 0)
    found_offset = log.reader.search_timestamp(NOW + 5, "high_watermark")()
    assert found_offset is not None
    assert found_offset.offset == 9


def test_leftovers_and_lost_metadata_are_for_the_broker(folder: Path) -> None:
    (folder / f"{FIRST}.log.cleaned").write_bytes(b"half")
    (folder / "partition.metadata").unlink()
    found = run("verify", folder)
    assert found.status == 0
    assert lines(found) == [
        f"{FIRST}.log.cleaned is left over from work that was cut short "
        "(the next start of the broker sees to it)",
        "partition.metadata is missing (the next start of the broker sees to it)",
    ]


def test_nothing_is_repaired_while_a_broker_runs(folder: Path) -> None:
    lock = OsFileSystem().lock(str(folder.parent / ".lock"))
    try:
        for path in (folder, folder.parent):
            refused = run("repair", path)
            assert (refused.status, refused.err) == (
                1,
                f"Error: A broker is running on {folder.parent} (this very process ({os.getpid()})): "
                "stop it first.\n",
            )
    finally:
        lock.release()
    assert run("repair", folder).status == 0


@pytest.fixture
def other_process(folder: Path) -> Iterator[int]:
    """The id of a process that has the folder's log directory, as a broker would."""
    program = "import sys; from pykafka_broker.log.disk.files import OsFileSystem; " + (
        "lock = OsFileSystem().lock(sys.argv[1]); print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(folder.parent / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield process.pid
        process.kill()


def test_a_folder_in_use_is_read_as_far_as_it_goes_and_said_to_be_in_use(
    folder: Path, other_process: int
) -> None:
    """Half a batch at the end, an index that is not saved yet, segments under replacement: all in order."""
    with (folder / f"{SECOND}.log").open("ab") as log:
        log.write((folder / f"{FIRST}.log").read_bytes()[:70])
    (folder / f"{SECOND}.index").write_bytes(b"")
    (folder / f"{FIRST}.log.cleaned").write_bytes(b"")
    told = (
        f"A broker is running on {folder.parent} (process {other_process}): "
        "what it is writing is read as far as it goes\n"
    )
    assert run("verify", folder) == (
        0,
        f"{folder}: 19 records in 2 segments, read up to offset 19: ok\n",
        told,
    )
    assert run("stats", folder.parent).err == told
    for command in ("verify", "stats"):
        shown = json.loads(run(command, "--json", folder).out)
        assert (shown["in_use"], shown["end_offset"], shown["records"]) == (True, 19, 19)

    flip(folder / f"{FIRST}.log", 100)
    found = run("verify", folder)
    assert found.status == 1
    assert "offsets 2 to 3 are damaged" in found.out
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert run("repair", folder).status == 1
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_asking_which_process_locks_a_folder_leaves_the_lock_in_place(
    folder: Path, other_process: int
) -> None:
    lock = str(folder.parent / ".lock")
    assert lock_holder(lock) == other_process
    os.kill(other_process, signal.SIGKILL)
    while lock_holder(lock) is not None:
        time.sleep(0.01)
    held = OsFileSystem().lock(lock)
    assert lock_holder(lock) == os.getpid()
    held.release()
    assert lock_holder(lock) is None
    assert lock_holder(str(folder / ".lock")) is None


def test_files_that_a_broker_removes_meanwhile_are_looked_for_again(
    folder: Path, other_process: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention takes the first segment between the look at the folder and the look at the file."""
    original = checking.segment_offsets
    gone: list[str] = []

    def segment_offsets(files: FileSystem, directory: str) -> list[tuple[int, int]]:
        found = original(files, directory)
        if not gone:
            (folder / f"{FIRST}.log").unlink()
        gone.append(directory)
        return found

    monkeypatch.setattr(checking, "segment_offsets", segment_offsets)
    shown = json.loads(run("stats", "--json", folder).out)
    assert (shown["start_offset"], shown["end_offset"], shown["segments"]) == (7, 19, 1)
    assert len(gone) == 2


def test_a_terminal_is_shown_how_far_long_work_has_come(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Output, "isatty", lambda self: True, raising=False)
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", 0)
    size = sum(path.stat().st_size for path in folder.glob("*.log"))
    for command in ("verify", "stats", "repair"):
        shown = run(command, folder).err
        assert "Reading" in shown
        assert f"{size / 1000:.1f}" in shown


def test_a_person_sees_the_largest_partitions_and_totals_and_all_if_asked_for(
    folder: Path, terminal: Callable[[int], None]
) -> None:
    copies = [folder.with_name(f"copy-{number}") for number in range(LARGEST)]
    for copy in copies:
        shutil.copytree(folder, copy)
    empty = folder.with_name("empty-0")
    create_log(
        Environment(OsFileSystem()), LogIdentity(str(empty), "empty", 0, bytes(16)), LogConfig()
    ).close()
    terminal(100)
    newest = datetime.fromtimestamp(NOW // 1000).isoformat(" ", "seconds")
    size = human_size(sum(path.stat().st_size for path in folder.glob("*.log")))
    row = f"  {size}       19       10         2     0-19  {newest}  4 gzip, 6 none"
    total = human_size(21 * sum(path.stat().st_size for path in folder.glob("*.log")))
    totals = f"22 partitions (1 without records), 399 records in 210 batches, 43 segments, {total}"
    short = shown(run("stats", str(folder.parent)))
    assert short[0].split("  ")[0] == "PARTITION"
    assert short[1] == f"copy-0   {row}"
    assert short[-2:] == [totals, "(the largest 20 are shown, all with --all)"]
    assert len(short) == 1 + LARGEST + 2
    shutil.rmtree(copies[0])
    assert shown(run("stats", str(folder.parent)))[-1] == "(those with records are shown, all with --all)"
    shutil.copytree(folder, copies[0])
    everything = shown(run("stats", "--all", str(folder.parent)))
    assert [line.split()[0] for line in everything[1:-1]] == sorted(
        ["empty-0", "orders-0", *(copy.name for copy in copies)]
    )
    assert everything[-1] == totals


def test_a_person_sees_what_is_wrong_and_totals_and_all_if_asked_for(
    folder: Path, terminal: Callable[[int], None]
) -> None:
    terminal(100)
    size = human_size(sum(path.stat().st_size for path in folder.glob("*.log")))
    totals = f"1 partition, 19 records in 2 segments, {size}"
    assert shown(run("verify", str(folder))) == [f"{totals}: ok"]
    assert shown(run("verify", "--all", str(folder)))[:2] == [
        "PARTITION    SIZE  RECORDS  BATCHES  SEGMENTS  END OFFSET  VERDICT",
        f"orders-0   {size}       19       10         2          19  ok",
    ]
    (folder / f"{FIRST}.log.cleaned").write_bytes(b"half")
    found = run("verify", str(folder))
    assert found.status == 0
    assert shown(found)[0].split() == ["FILE", "PROBLEM", "REMEDY"]
    assert shown(found)[-1] == f"{totals}: 1 problem"
    (folder / "leader-epoch-checkpoint").write_text("nonsense")
    assert shown(run("repair", str(folder)))[-1] == f"{totals}: 2 problems, 1 mended"


def shown(result: Result) -> list[str]:
    return [line.rstrip() for line in result.out.splitlines() if line]


def test_stats_count_what_is_there(folder: Path) -> None:
    size = sum(path.stat().st_size for path in folder.glob("*.log"))
    assert run("stats", folder.parent) == (
        0,
        f"orders-0: offsets 0 to 19, 19 records in 10 batches (4 gzip, 6 none), 2 segments, {size} bytes\n",
        "",
    )
    assert json.loads(run("stats", "--json", folder).out) == {
        "partition": "orders-0",
        "segments": 2,
        "bytes": size,
        "start_offset": 0,
        "end_offset": 19,
        "batches": 10,
        "records": 19,
        "oldest_timestamp": NOW,
        "newest_timestamp": NOW + 9,
        "codecs": {"gzip": 4, "none": 6},
        "in_use": False,
    }


def test_dump_is_dump_log(folder: Path) -> None:
    path = folder / f"{FIRST}.log"
    assert run("dump", path) == run_command("dump-log", str(path))


def test_what_apache_wrote_is_ok() -> None:
    assert run("verify", Path(__file__).parent / "apache" / "f-demo-0").status == 0


@pytest.mark.parametrize("command", ["verify", "repair", "stats"])
def test_a_folder_that_is_not_kafkas_is_refused_and_left_as_it_is(tmp_path: Path, command: str) -> None:
    (tmp_path / "polkit-1").mkdir()
    (tmp_path / "polkit-1" / "rules").write_text("none of ours")
    for path in (tmp_path, tmp_path / "polkit-1"):
        refusal = f"Error: {path} is no log directory and no partition: there are no files of Kafka in it.\n"
        assert run(command, path) == (1, "", refusal)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "polkit-1",
        "polkit-1/rules",
    ]


def test_a_log_directory_without_partitions_is_one(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert run("verify", tmp_path) == (0, "", "")


def test_a_refusal_is_one_line_also_where_nothing_else_is_loaded(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pykafka_broker", "log", "repair", str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    refusal = f"Error: {tmp_path} is no log directory and no partition: there are no files of Kafka in it.\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", refusal)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_was_just_formatted_has_no_problem(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert run_command("format", "-d", str(data)).status == 0
    metadata = data / "__cluster_metadata-0"
    sound = (0, f"{metadata}: 0 records in 0 segments: ok\n", "")
    assert run_command("log", "verify", str(data)) == sound
    assert run_command("log", "repair", str(data)) == sound
    # With a segment, what describes it belongs there.
    (metadata / f"{FIRST}.log").touch()
    assert lines(run_command("log", "verify", str(metadata))) == [
        "partition.metadata is missing (the next start of the broker sees to it)",
        "leader-epoch-checkpoint is missing (the next start of the broker sees to it)",
    ]
