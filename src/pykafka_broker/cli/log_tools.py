"""`log`: look into the data of a broker, and mend what can be mended while it does not run.

`log dump` is `dump-log`. The others take log directories or single partition folders. If a running broker
uses a folder, `verify` and `stats` say so, and up to which offset they have read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import TypeVar

import click

from pykafka_broker.cli import Group, progress
from pykafka_broker.cli.dump_log import dump_log
from pykafka_broker.cli.log_report import PartitionStats, Report, Verified, stats_line, stats_table
from pykafka_broker.cli.output import Form, Output, json_option
from pykafka_broker.log.check.accept_loss import accept, losses
from pykafka_broker.log.check.findings import CheckResult, Remedy
from pykafka_broker.log.check.mend import mend
from pykafka_broker.log.check.partition_check import check_partition, open_segments, segment_offsets
from pykafka_broker.log.disk.directories import LogDirError
from pykafka_broker.log.disk.files import FileLockedError, OsFileSystem, lock_holder
from pykafka_broker.log.disk.names import (
    CLEAN_SHUTDOWN_FILE,
    LOCK_FILE,
    LOG_START_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    parse_partition_folder,
)
from pykafka_broker.system.processes import described

Found = TypeVar("Found")

#: The number of attempts to read a partition whose files a broker replaces meanwhile.
ATTEMPTS = 5
#: The files by which a log directory is recognised, besides partitions.
LOG_DIRECTORY_FILES = frozenset(
    {META_PROPERTIES, CLEAN_SHUTDOWN_FILE, RECOVERY_POINT_CHECKPOINT, LOG_START_CHECKPOINT}
)
#: The files by which a partition's folder is recognised: one of a segment, or one that describes the
#: partition.
_PARTITION_FILE = re.compile(r"\d{20}\.|partition\.metadata$|leader-epoch-checkpoint$")


@click.group(cls=Group)
def log() -> None:
    """Look into the data of a broker: dump, verify, count; of a stopped one, repair."""


log.add_command(dump_log, "dump")

_paths = click.argument("paths", nargs=-1, required=True, metavar="FOLDER…", type=click.Path(exists=True))
_show_all = click.option(
    "--all", "show_all", is_flag=True, help="On a terminal: every partition, not only what matters most."
)


@log.command()
@_paths
@_show_all
@json_option(Verified, streams=True)
def verify(paths: tuple[str, ...], show_all: bool, output: Output) -> int:
    """Read every byte, and name what is wrong. Exit status 1 if anything is.

    FOLDER is a log directory or the folder of a partition. A broker may be running there: then the last
    segment of each partition is read as far as it has been written.
    """
    _check_is_kafkas(paths)
    in_use = _told_in_use(paths, output)
    problems = 0
    report = Report(output)
    for folder, checked in _checked(paths, in_use, output):
        problems += sum(finding.remedy is not Remedy.START for finding in checked.findings)
        report.add(folder, checked, in_use=_log_directory(folder) in in_use)
    report.end(show_all=show_all)
    return 1 if problems else 0


@log.command()
@_paths
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option(
    "--accept-loss",
    "accepts_loss",
    is_flag=True,
    help="For single partitions: let readers pass over lost records, for good.",
)
@_show_all
@json_option(Verified, streams=True)
def repair(paths: tuple[str, ...], dry_run: bool, accepts_loss: bool, show_all: bool, output: Output) -> int:
    """Mend what `verify` finds, as far as that can be; the broker must not run.

    Damaged records are fenced off, never removed: reads of their offsets are answered with CORRUPT_MESSAGE,
    everything before and behind is served. Exit status 1 if something is left that cannot be mended here.

    If records of a partition of __consumer_offsets or __transaction_state are fenced off, its coordinator
    serves nothing of the partition. With --accept-loss the records are gone: their bytes are removed, readers
    pass over their offsets, and the coordinator goes by what is left. Keep a copy of the folder.
    """
    _check_is_kafkas(paths)
    if accepts_loss and any(_log_directory(path) == os.path.abspath(path) for path in paths):
        raise click.UsageError("--accept-loss is for the folders of partitions, not for a log directory.")
    left = 0
    files = OsFileSystem()
    report = Report(output)
    with ExitStack() as locks:
        # Once each, even if a link leads to it: a lock of this process excludes this process too.
        for directory in {os.path.realpath(path): path for path in map(_log_directory, paths)}.values():
            _lock(directory, locks)
        for folder, checked in _checked(paths, {}, output):
            report.add(folder, checked, in_use=False)
            if not dry_run:
                report.add_mended(folder, mend(files, checked.findings))
            findings = checked.findings
            if accepts_loss:
                lost = losses(checked.findings)
                for path, damages in lost.items():
                    for damage in damages:
                        output.note(
                            f"{path}: offsets {damage.first_offset} to {damage.next_offset - 1} "
                            + ("would be" if dry_run else "are")
                            + f" accepted as lost ({damage.end_position - damage.position} bytes)"
                        )
                if not dry_run:
                    accept(files, folder, checked.totals, lost)
                    findings = check_partition(files, folder).findings
            left += sum(finding.remedy is Remedy.NONE for finding in findings)
    report.end(show_all=show_all)
    return 1 if left else 0


@log.command()
@_paths
@_show_all
@json_option(PartitionStats, streams=True)
def stats(paths: tuple[str, ...], show_all: bool, output: Output) -> int:
    """Count segments, bytes, batches and records of every partition, without a look into the records."""
    _check_is_kafkas(paths)
    in_use = _told_in_use(paths, output)
    counted = []
    for folder, found in _each(paths, in_use, output, _counted):
        found = found._replace(in_use=_log_directory(folder) in in_use)
        counted.append(found)
        if output.form is not Form.TABLES:
            output.show(found, [stats_line(found)])
    if output.form is Form.TABLES:
        output.show(counted, (), [stats_table(counted, show_all=show_all)])
    return 0


def _counted(folder: str, advance: Callable[[int], object], is_last_look: bool) -> PartitionStats:
    """The statistics of a partition, from its batch headers."""
    from pykafka_broker.log.segment.header_walk import walk_headers

    opened = open_segments(OsFileSystem(), folder)
    segments = [(segment.base_offset, segment.size) for segment in opened]
    codecs: dict[str, int] = {}
    end_offset = segments[-1][0] if segments else 0
    batches = records = 0
    oldest = newest = -1
    for segment in opened:
        for _, header in walk_headers(segment.file.pread, 0, segment.size):
            batches += 1
            records += header.records_count
            end_offset = header.next_offset
            if header.max_timestamp >= 0:
                oldest = header.max_timestamp if oldest < 0 else min(oldest, header.max_timestamp)
                newest = max(newest, header.max_timestamp)
            codec = header.codec.name.lower()
            codecs[codec] = codecs.get(codec, 0) + 1
        advance(segment.size)
    return PartitionStats(
        partition=os.path.basename(folder),
        segments=len(segments),
        bytes=sum([size for _, size in segments]),
        start_offset=segments[0][0] if segments else 0,
        end_offset=end_offset,
        batches=batches,
        records=records,
        oldest_timestamp=oldest,
        newest_timestamp=newest,
        codecs=codecs,
        in_use=False,
    )


def _check_is_kafkas(paths: Iterable[str]) -> None:
    """Refuse a path that is neither a log directory nor a partition's folder, before anything is changed.

    Raises:
        LogDirError: there is nothing of Kafka in it.
    """
    for path in paths:
        if parse_partition_folder(os.path.basename(os.path.abspath(path))) is not None:
            is_kafkas = _is_partition(path)
        else:
            with os.scandir(path) as entries:
                is_kafkas = any(_is_log_directorys(entry) for entry in entries)
        if not is_kafkas:
            raise LogDirError(
                f"{path} is no log directory and no partition: there are no files of Kafka in it."
            )


def _is_partition(folder: str) -> bool:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        return any(_PARTITION_FILE.match(entry.name) for entry in entries)
    return False  # a broker has just removed it


def _is_log_directorys(entry: os.DirEntry[str]) -> bool:
    if entry.is_dir():
        return parse_partition_folder(entry.name) is not None and _is_partition(entry.path)
    return entry.name in LOG_DIRECTORY_FILES


def _told_in_use(paths: tuple[str, ...], output: Output) -> dict[str, int]:
    """The log directories that a running process uses, and its id; prints a note for each."""
    found = {}
    for directory in dict.fromkeys(map(_log_directory, paths)):
        process_id = lock_holder(os.path.join(directory, LOCK_FILE))
        if process_id is not None:
            found[directory] = process_id
            who = f" (process {process_id})" if process_id else ""
            output.note(
                f"A broker is running on {directory}{who}: what it is writing is read as far as it goes"
            )
    return found


def _log_directory(path: str) -> str:
    """The log directory: `path` itself, or the one that a partition folder lies in."""
    path = os.path.abspath(path)
    return path if parse_partition_folder(os.path.basename(path)) is None else os.path.dirname(path)


def _checked(
    paths: tuple[str, ...], in_use: Mapping[str, int], output: Output
) -> Iterator[tuple[str, CheckResult]]:
    """Every partition with the findings in it."""
    files = OsFileSystem()

    def check(folder: str, advance: Callable[[int], object], is_last_look: bool) -> CheckResult:
        is_in_use = _log_directory(folder) in in_use
        return check_partition(files, folder, advance, is_in_use=is_in_use, is_last_look=is_last_look)

    yield from _each(paths, in_use, output, check)


def _each(
    paths: tuple[str, ...],
    in_use: Mapping[str, int],
    output: Output,
    look: Callable[[str, Callable[[int], object], bool], Found],
) -> Iterator[tuple[str, Found]]:
    """Look into every partition, and show the progress. If a broker replaces files while they are read, the
    look is repeated; `look` is told whether the attempt is the last. A folder that a broker has removed is
    left out.
    """
    from pykafka_broker.system.event_loop import raise_open_file_limit

    raise_open_file_limit()  # a partition may have more segments than the usual 1024
    folders = list(_partitions(paths))
    how = progress.shown(results_come=output.form is not Form.TABLES)
    with progress.progress("Reading", how, sum(map(_size_of, folders))) as telling:
        for folder in folders:
            for attempt in range(ATTEMPTS):
                try:
                    yield folder, look(folder, telling.advance, attempt == ATTEMPTS - 1)
                    break
                except FileNotFoundError:
                    if _log_directory(folder) not in in_use:
                        raise
                    if not os.path.exists(folder):
                        break


def _size_of(folder: str) -> int:
    """Bytes of the segments in a folder; 0 if it was removed meanwhile."""
    with suppress(FileNotFoundError):
        return sum([size for _, size in segment_offsets(OsFileSystem(), folder)])
    return 0


def _partitions(paths: tuple[str, ...]) -> Iterator[str]:
    """The partition folders that are meant: one, or all in service of a log directory."""
    for path in map(os.path.normpath, paths):
        if parse_partition_folder(os.path.basename(os.path.abspath(path))) is not None:
            yield path
            continue
        for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
            folder = parse_partition_folder(entry.name)
            if entry.is_dir() and folder is not None and not folder.state:
                yield entry.path


def _lock(directory: str, locks: ExitStack) -> None:
    """Keep brokers out of a log directory."""
    try:
        locks.callback(OsFileSystem().lock(os.path.join(directory, LOCK_FILE)).release)
    except FileLockedError as error:
        holder = described(error.process_id)
        raise LogDirError(f"A broker is running on {directory} ({holder}): stop it first.") from None
