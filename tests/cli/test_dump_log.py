"""`dump-log`, compared with what Apache Kafka's DumpLogSegments prints of the same files.

`apache/` holds files that Apache Kafka 4.3.1 wrote, and in `dumps.txt` what its own tool prints of them: a
line with `$` and the tool's arguments, then its output.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pykafka_broker.cli.record_json import decode_metadata, decode_offsets, redacted_metadata
from pykafka_broker.log.partition.producers import ProducerState, snapshot_bytes
from tests.cli.conftest import Result, run_command

APACHE = Path(__file__).parent / "apache"
LOG = "f-demo-0/00000000000000000000.log"
INDEX = "f-demo-0/00000000000000000000.index"
TIME_INDEX = "f-demo-0/00000000000000000000.timeindex"


def dumps() -> list[tuple[str, str]]:
    """The tool's arguments, and what it prints."""
    text = (APACHE / "dumps.txt").read_text()
    entries = [entry.partition("\n") for entry in text.split("$ ")[1:]]
    return [(arguments, output) for arguments, _, output in entries]


@pytest.fixture
def in_apache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(APACHE)


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the files of one partition, to be damaged."""
    folder = tmp_path / "f-demo-0"
    folder.mkdir()
    for file in (APACHE / "f-demo-0").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def dump(*arguments: str) -> Result:
    return run_command("dump-log", *arguments)


def as_json(*arguments: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in dump("--json", *arguments).out.splitlines()]


@pytest.mark.usefixtures("in_apache")
@pytest.mark.parametrize(("arguments", "output"), dumps(), ids=lambda value: value.split("\n")[0])
def test_the_dump_is_that_of_apache_kafkas_tool(arguments: str, output: str) -> None:
    assert dump(*arguments.split(), "--show-secrets") == (0, output, "")


@pytest.mark.usefixtures("in_apache")
def test_a_folder_stands_for_the_files_in_it() -> None:
    lines = dump("f-demo-0").out.splitlines()
    assert [line.split("/")[-1] for line in lines if line.startswith("Dumping")] == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000009.index",
        "00000000000000000009.log",
        "00000000000000000009.snapshot",
        "00000000000000000009.timeindex",
        "00000000000000000009.txnindex",
        "00000000000000000012.snapshot",
    ]


@pytest.mark.usefixtures("in_apache")
def test_records_can_be_had_as_json() -> None:
    title, batch, record, *_ = as_json(LOG, "--print-data-log")
    assert title == {"file": LOG, "kind": "log", "starting_offset": 0}
    assert (batch["kind"], batch["base_offset"], batch["is_valid"]) == ("batch", 0, True)
    assert record == {
        "file": LOG,
        "kind": "record",
        "offset": 0,
        "timestamp": 1700000000000,
        "key_size": 2,
        "value_size": 2,
        "sequence": -1,
        "header_keys": ["h", "h2"],
        "key": "k1",
        "payload": "v1",
    }


@pytest.mark.usefixtures("in_apache")
def test_every_kind_of_file_has_a_json_form() -> None:
    kinds = {str(item["kind"]) for item in as_json("f-demo-0")}
    assert kinds == {"log", "batch", "index entry", "time index entry", "aborted transaction", "producer"}


def test_a_damaged_batch_is_reported_and_the_rest_is_shown(copied: Path) -> None:
    file = copied / LOG
    data = bytearray(file.read_bytes())
    data[100] ^= 0xFF  # in the checksum of the second batch
    file.write_bytes(data)
    result = dump(LOG)
    assert result.status == 1
    assert [line.split()[-1] for line in result.out.splitlines()[2:]] == [
        "true",
        "false",
        "true",
        "true",
        "true",
    ]
    assert result.err == f"Corrupt batches in {LOG}\n  position: 80 base offset: 1\n"


@pytest.mark.parametrize(("at", "problem"), [(96, "Unreadable"), (88, "Unreadable"), (102, "Corrupt")])
def test_a_header_that_is_damaged_ends_no_dump_of_other_files(copied: Path, at: int, problem: str) -> None:
    """Of the second batch: its magic, its size, or the id of its codec."""
    file = copied / LOG
    data = bytearray(file.read_bytes())
    data[at] = 0xFF
    file.write_bytes(data)
    result = dump(LOG, TIME_INDEX, INDEX, "--deep-iteration")
    assert result.status == 1
    assert result.out.count("baseOffset:") == (5 if problem == "Corrupt" else 1)
    assert f"Dumping {INDEX}" in result.out
    assert f"{problem} batches in {LOG}\n  position: 80 " in result.err


def test_records_of_a_later_version_are_passed_over() -> None:
    later = decode_offsets(7, b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\x63")
    assert later == ("Error at offset 7, skipping. OffsetCommitValue has no version 99", None)
    of_metadata = b"\x01\x03\x63"
    assert decode_metadata(7, None, of_metadata) == (
        None,
        "Error at 7, skipping. PartitionRecord has no version 99",
    )
    assert redacted_metadata(7, None, of_metadata) == (None, "[redacted]")


def test_a_torn_end_is_reported_as_apache_kafka_reports_it(copied: Path) -> None:
    file = copied / LOG
    file.write_bytes(file.read_bytes()[:-28])
    result = dump(LOG)
    assert result.out.endswith("Found 46 invalid bytes at the end of 00000000000000000000.log\n")
    assert result.status == 1


def test_a_log_cut_anywhere_is_dumped_up_to_the_cut(copied: Path) -> None:
    file = copied / LOG
    data = file.read_bytes()
    ends = (80, 150, 220, 354, len(data))
    for cut in range(len(data)):
        file.write_bytes(data[:cut])
        result = dump(LOG, "--print-data-log")
        assert result.out.count("baseOffset:") == sum(cut >= end for end in ends), cut
        assert result.status == (0 if cut in (0, *ends) else 1), cut


def test_an_index_that_points_elsewhere_is_reported(copied: Path) -> None:
    (copied / INDEX).write_bytes((1).to_bytes(4, "big") + (150).to_bytes(4, "big"))
    result = dump(INDEX)
    assert result.out == f"Dumping {INDEX}\noffset: 1 position: 150\n"
    assert result.err == f"Mismatches in :{INDEX}\n  Index offset: 1, log offset: 2\n"
    assert result.status == 1


def test_zeros_at_the_end_of_a_preallocated_index_are_not_entries(copied: Path) -> None:
    for name in (INDEX, TIME_INDEX):
        file = copied / name
        file.write_bytes(file.read_bytes() + bytes(120))
        assert dump(name).status == 0


def test_wrong_times_of_a_time_index_are_reported(copied: Path) -> None:
    def entry(timestamp: int, offset: int) -> bytes:
        return timestamp.to_bytes(8, "big") + offset.to_bytes(4, "big")

    (copied / TIME_INDEX).write_bytes(
        entry(1700000002000, 2) + entry(1700000001000, 8) + entry(1700000009001, 5)
    )
    result = dump(TIME_INDEX, "--verify-index-only")
    assert result.out == f"Dumping {TIME_INDEX}\n"
    assert result.err == (
        f"Found timestamp mismatch in :{TIME_INDEX}\n"
        "  Index timestamp: 1700000001000, log timestamp: 1700000009000\n"
        f"Found out of order timestamp in :{TIME_INDEX}\n"
        "  Index timestamp: 1700000001000, Previously indexed timestamp: 1700000002000\n"
        f"The following indexed offsets are not found in :{TIME_INDEX}\n"
        "  Indexed offset: 5, found log offset: 7\n"
    )


def test_a_producer_that_has_left_only_a_marker_is_shown_without_a_batch(copied: Path) -> None:
    name = "f-demo-0/00000000000000000013.snapshot"
    (copied / name).write_bytes(snapshot_bytes([ProducerState(23, 1, 0, 1_795_316_767_462)]))
    assert dump(name).out == (
        f"Dumping {name}\n"
        "producerId: 23 producerEpoch: 1 coordinatorEpoch: 0 currentTxnFirstOffset: OptionalLong.empty "
        "lastTimestamp: 1795316767462\n"
    )


def test_a_damaged_snapshot_is_reported(copied: Path) -> None:
    name = "f-demo-0/00000000000000000012.snapshot"
    file = copied / name
    file.write_bytes(file.read_bytes()[:-1])
    result = dump(name)
    assert (result.status, result.err.splitlines()[0]) == (1, f"Unreadable producer snapshot {name}")


def test_records_that_are_not_what_a_decoder_expects_are_named_and_passed_over(copied: Path) -> None:
    result = dump(LOG, "--offsets-decoder")
    assert "| offset: 0 CreateTime" in result.out
    assert "key: Unknown record type 27441 at offset 0, skipping." in result.out
    assert "(message had a missing key)" in result.out
    assert "Error at 1, skipping." in dump(LOG, "--cluster-metadata-decoder").out
    assert result.status == 0


def test_an_unknown_file_is_passed_over(copied: Path) -> None:
    for name in ("notes.txt", "notes.log"):
        (copied / name).write_text("x")
        assert dump(name) == (0, f"Dumping {name}\n", f"Ignoring unknown file {name}\n")


def test_a_file_that_is_not_there_is_an_error(copied: Path) -> None:
    result = dump("gone.log")
    assert (result.status, result.err) == (1, "Error: No such file or directory: gone.log\n")


def test_a_file_that_a_broker_removes_after_its_folder_was_listed_is_passed_over(copied: Path) -> None:
    """A name that leads nowhere is listed, and not there when it is opened."""
    whole = dump(str(copied))
    gone = copied / "00000000000000000999.log"
    gone.symlink_to(copied / "nowhere")
    result = dump(str(copied))
    assert result.out == f"{whole.out}Dumping {gone}\n"
    assert result.err == f"{whole.err}{gone} has been removed meanwhile, as by a running broker\n"
    assert result.status == whole.status
    assert dump(str(gone)).status == 1


def test_an_empty_index_is_said_to_be_empty(copied: Path) -> None:
    for name in (INDEX, TIME_INDEX):
        (copied / name).write_bytes(b"")
    assert dump(INDEX) == (0, f"Dumping {INDEX}\n{INDEX} is empty.\n", "")
    # Of indexes of times Apache Kafka says nothing.
    assert dump(TIME_INDEX) == (0, f"Dumping {TIME_INDEX}\n", "")
