"""`topics profile`: what is in a topic, as lines, as tables and as JSON, from a broker or a log directory."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click import BadParameter

from pykafka_broker.arrow.core.profile.results import TopicProfile
from pykafka_broker.cli.offsets import parse_since_ms
from pykafka_broker.log.disk.names import LOG_SUFFIX
from pykafka_broker.protocol.records.batch import BatchFields, Codec, build_batch
from pykafka_broker.testing.processes import environment
from tests.cli.conftest import Run

NOW = 1_769_860_800_000


def folder_with(path: Path, partitions: int) -> str:
    """A log directory with partitions of `wide`: the first one has most of the records."""
    for partition in range(partitions):
        folder = path / f"wide-{partition}"
        folder.mkdir(parents=True)
        headers = [(f"name-{number}", b"") for number in range(12)]
        records = [
            (NOW + 1_000 * number, b"key\t%d" % number, b'{"number": 1}', headers)
            for number in range(400 if partition == 0 else 4)
        ]
        (folder / f"{0:020d}{LOG_SUFFIX}").write_bytes(build_batch(records, BatchFields(codec=Codec.GZIP)))
    return str(path)


def test_lines_have_every_field(run: Run) -> None:
    run("topics", "create", "profiled", "--partitions", "2")
    run("produce", "profiled", "--key-separator", ":", "alice:10", "bob:20", "alice:30")
    lines = run("topics", "profile", "profiled").out.splitlines()

    names = [line.partition(":")[0] for line in lines if not line.startswith("\t")]
    assert tuple(names) == TopicProfile._fields
    assert lines[:2] == ["topic: profiled", "records: 3"]
    assert "\tkey: alice\tis_whole: true\trecords: 2\terror: 0" in lines
    [codec] = [line for line in lines if line.startswith("\tcodec:")]
    assert codec.startswith("\tcodec: none\tbatches: ")
    assert sum(line.startswith("\tpartition: ") and "\ttimes.behind: 0\t" in line for line in lines) == 2


def test_progress_is_told_where_it_is_asked_for(run: Run, tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "logs", 1)
    told = run("topics", "profile", "wide", "--folder", folder, "--progress").err
    assert re.match(r"wide: 400 records, \d+/s, ", told)


def test_a_selection_is_counted(run: Run) -> None:
    run("topics", "create", "chosen", "--partitions", "2")
    run("produce", "chosen", "--partition", "1", "a", "b")
    found = json.loads(run("topics", "profile", "chosen", "-p", "1", "--since", "1h", "--json").out)

    assert [(each["partition"], each["records"]) for each in found["partitions"]] == [(1, 2)]
    later = run("topics", "profile", "chosen", "--since", "2100-01-01", "--json").out
    assert json.loads(later)["records"] == 0


def test_a_log_directory_is_counted_without_a_broker(run: Run, tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "logs", 2)
    found = json.loads(run("topics", "profile", "wide", "--folder", folder, "--json").out)

    assert [each["records"] for each in found["partitions"]] == [400, 4]
    lines = run("topics", "profile", "wide", "--folder", folder).out.splitlines()
    assert "\tkey: key\\t0\tis_whole: true\trecords: 2\terror: 0" in lines
    assert found["codecs"][0]["codec"] == "gzip"


def test_tables_show_the_largest_partitions_and_say_what_they_leave_out(
    run: Run, terminal: Callable[[int], None], tmp_path: Path
) -> None:
    folder = folder_with(tmp_path / "logs", 23)
    terminal(100)
    out = run("topics", "profile", "wide", "--folder", folder, "--keys", "1").out

    assert "(3 smaller partitions with --json)" in out
    assert "(2 more with --json)" in out
    assert "Any other key is in at most 23 records." in out
    assert r"key\t0" in out
    assert "longest silence: 1 s from" in out


def test_what_cannot_be_profiled_is_refused(run: Run, tmp_path: Path) -> None:
    unknown = run("topics", "profile", "ordres")
    assert (unknown.status, unknown.err) == (1, "Error: Topic 'ordres' does not exist.\n")
    late = run(
        "topics", "profile", "orders", "--since", "9" * 18, "--folder", folder_with(tmp_path / "logs", 1)
    )
    assert (late.status, "are after the year 9999" in late.err) == (2, True)
    nowhere = run("topics", "profile", "orders", "--folder", str(tmp_path / "nothing"))
    assert nowhere.status == 2
    assert "There is no folder" in nowhere.err
    both = run("topics", "profile", "orders", "--folder", str(tmp_path), "--bootstrap-server", "here:9092")
    assert (both.status, "Only one of --folder, --bootstrap-server." in both.err) == (2, True)


@pytest.mark.parametrize(
    ("text", "since_ms"),
    [("90s", NOW - 90_000), ("30m", NOW - 1_800_000), ("1h", NOW - 3_600_000), ("7d", NOW - 604_800_000)],
)
def test_since_is_how_long_ago(text: str, since_ms: int) -> None:
    assert parse_since_ms(text, NOW) == since_ms


def test_since_is_a_time() -> None:
    assert parse_since_ms("1970-01-01T00:00:01+00:00", NOW) == 1_000
    assert parse_since_ms(str(NOW), NOW + 5) == NOW
    for wrong in ("1w", "h", "999999d"):
        with pytest.raises(BadParameter):
            parse_since_ms(wrong, NOW)


def test_without_numpy_the_command_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['numpy'] = None; from pykafka_broker.cli import main;"
        "main(['topics', 'profile', 'orders'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment()
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: topics profile needs numpy: python3 -m pip install 'pykafka-broker[arrow]'\n"
    )
