"""Our data folder through Apache Kafka's own `DumpLogSegments`: every segment, record for record.

The tool reads each `.log` file with Kafka's own classes and checks each `.index` and `.timeindex` against it.
What it prints of batches and records (offsets, times, sizes, header names, checksums, producer ids, codecs)
is compared with what our own reader finds in the same bytes, and every line with what our `dump-log` prints,
where `__consumer_offsets`, `__transaction_state` and `__cluster_metadata` are decoded as what they are. The
broker must be stopped.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

from pykafka_broker.cli.wording import harmless
from pykafka_broker.protocol.records.batch import iter_batches, read_records
from pykafka_broker.testing.apache.tools import run_tool

DUMP = "org.apache.kafka.tools.DumpLogSegments"
#: Linux takes no argument longer than 128 KiB.
MAX_ARGUMENT_BYTES = 100_000

#: A line of the tool for a batch and for a record of it; the fields in between vary with the kind of batch.
BATCH = re.compile(
    r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) baseSequence: (-?\d+) .*producerId: (-?\d+) "
    r"producerEpoch: (-?\d+) partitionLeaderEpoch: (-?\d+) isTransactional: (\w+) isControl: (\w+).*"
    r" position: (\d+) \w+: (-?\d+) size: (\d+) magic: 2 compresscodec: (\w+) crc: (\d+)"
)
RECORD = re.compile(
    r"^\| offset: (\d+) \w+: (-?\d+) keySize: (-?\d+) valueSize: (-?\d+) "
    r"sequence: -?\d+ headerKeys: \[(.*?)\]"
)

#: The tool's complaints about files that it reads.
COMPLAINTS = ("isvalid: false", "Mismatches in", "non-consecutive", "Could not", "Exception", "out of order")

Rows = list[tuple[object, ...]]


def segments(data_dir: Path) -> Iterator[Path]:
    for folder in sorted(data_dir.iterdir()):
        if folder.is_dir() and re.fullmatch(r".+-\d+", folder.name):
            yield from sorted(folder.glob("*.log"))


def as_we_read_it(log: Path) -> Rows:
    rows: Rows = []
    data = log.read_bytes()
    for position, header in iter_batches(data):
        rows.append(
            (
                *(header.base_offset, header.last_offset, header.records_count, header.base_sequence),
                *(header.producer_id, header.producer_epoch, header.partition_leader_epoch),
                *(header.is_transactional, header.is_control, position, header.max_timestamp),
                *(header.size_in_bytes, header.codec.name.lower(), header.crc),
            )
        )
        for record in read_records(memoryview(data)[position : position + header.size_in_bytes]):
            names = ",".join(name for name, _ in record.headers)
            rows.append((record.offset, record.timestamp, size(record.key), size(record.value), names))
    return rows


def size(part: bytes | memoryview | None) -> int:
    return -1 if part is None else len(part)


def dump(options: Iterable[str], files: Iterable[Path | str]) -> str:
    """The output of the tool for files; each JVM gets as many as fit into one argument."""
    portions: list[list[str]] = [[]]
    length = 0
    for file in map(str, files):
        if length + len(file) >= MAX_ARGUMENT_BYTES:
            portions.append([])
            length = 0
        portions[-1].append(file)
        length += len(file) + 1
    return "".join(run_tool(DUMP, *options, "--files", ",".join(each), timeout_s=600) for each in portions)


def as_apache_reads_them(logs: list[Path]) -> dict[Path, Rows]:
    """The tool prints each segment after a line with its name."""
    printed = dump(["--print-data-log"], logs)
    found: dict[Path, Rows] = {log: [] for log in logs}
    rows: Rows = []
    for line in printed.splitlines():
        if line.startswith("Dumping "):
            rows = found[Path(line.removeprefix("Dumping ").strip())]
        elif batch := BATCH.match(line):
            numbers = [int(batch[n]) for n in (1, 2, 3, 4, 5, 6, 7)]
            flags = [batch[n] == "true" for n in (8, 9)]
            rows.append(
                (*numbers, *flags, int(batch[10]), int(batch[11]), int(batch[12]), batch[13], int(batch[14]))
            )
        elif record := RECORD.match(line):
            rows.append((*(int(record[n]) for n in (1, 2, 3, 4)), record[5]))
    return found


def complaints(printed: str) -> list[str]:
    return [line for line in printed.splitlines() if any(text in line for text in COMPLAINTS)]


def same_lines(data_dir: Path, report: Callable[[str], None]) -> list[str]:
    """Compare the output of our `dump-log` for every kind of file with the tool's own lines."""
    failures = []
    for options, patterns in (
        (("--print-data-log",), ("[!_]*/*.log",)),
        ((), ("*/*.index", "*/*.timeindex", "*/*.txnindex", "*/*.snapshot")),
        (("--offsets-decoder",), ("__consumer_offsets-*/*.log",)),
        (("--transaction-log-decoder",), ("__transaction_state-*/*.log",)),
        (
            ("--cluster-metadata-decoder",),
            ("__cluster_metadata-0/*.log", "__cluster_metadata-0/*.checkpoint", "bootstrap.checkpoint"),
        ),
    ):
        found = [path for pattern in patterns for path in sorted(data_dir.glob(pattern))]
        files = [str(path) for path in found if path.stat().st_size]
        if not files:
            continue
        # Ours has escapes in the place of control characters, also of line ends within a key or a value.
        theirs = harmless(dump(options, files)).replace("\\n", "\n").splitlines()
        ours = dumped_by_us(*options, "--show-secrets", *files).replace("\\n", "\n").splitlines()
        different = [pair for pair in zip_longest(theirs, ours) if pair[0] != pair[1]]
        what = f"dump {' '.join(options) or 'of indexes and snapshots'}"
        failures += [f"{what}: Apache {theirs_}, we {ours_}" for theirs_, ours_ in different[:3]]
        report(f"{what}: {len(theirs)} lines of {len(files)} files: {'FAIL' if different else 'ok'}")
    return failures


def dumped_by_us(*arguments: str) -> str:
    command = [sys.executable, "-m", "pykafka_broker", "dump-log", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=600).stdout


def check(data_dir: Path, report: Callable[[str], None]) -> list[str]:
    failures: list[str] = []
    logs = list(segments(data_dir))
    # The metadata log mixes its records with raft's control records; Apache's decoder for it is used below.
    plain = [log for log in logs if not log.parent.name.startswith("__cluster_metadata")]
    theirs = as_apache_reads_them(plain)
    records = 0
    for log in plain:
        ours = as_we_read_it(log)
        records += sum(len(row) == 5 for row in ours)
        if ours != theirs[log]:
            pairs = zip(ours, theirs[log], strict=False)
            first = next((pair for pair in pairs if pair[0] != pair[1]), "none but the number")
            failures.append(
                f"{log.parent.name}/{log.name}: we read {len(ours)} rows, Apache {len(theirs[log])}; "
                f"the first difference: {first}"
            )
    report(f"{len(plain)} segments, {records} records: {'ok' if not failures else 'FAIL'}")

    failures += same_lines(data_dir, report)
    for title, chosen, decoder in (
        (
            "indexes",
            [index for log in logs for index in log.parent.glob(f"{log.stem}.*index")],
            "--index-sanity-check",
        ),
        (
            "committed offsets",
            [log for log in logs if log.parent.name.startswith("__consumer_offsets")],
            "--offsets-decoder",
        ),
        (
            "cluster metadata",
            [
                file
                for folder in data_dir.glob("__cluster_metadata-0")
                for file in (*sorted(folder.glob("*.log")), *sorted(folder.glob("*.checkpoint")))
            ],
            "--cluster-metadata-decoder",
        ),
    ):
        if not chosen:
            continue
        found = complaints(dump([decoder], chosen))
        failures += [f"{title}: {line}" for line in found]
        report(f"{len(chosen)} files of {title}: {'ok' if not found else 'FAIL'}")
    return failures
