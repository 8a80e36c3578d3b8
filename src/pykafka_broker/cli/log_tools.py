"""`log`: look into the data of a broker, and mend what can be mended while it does not run.

`log dump` is `dump-log`. The others take log directories or single partition folders. Of a folder that a
running broker has, `verify` and `stats` say so, and tell how far they have read what is being written.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeVar

import click

from pykafka_broker.cli.dump_log import dump_log
from pykafka_broker.cli.record_json import compact_json
from pykafka_broker.log.checking import Checked, Remedy, check_partition, mend, open_segments, segment_offsets
from pykafka_broker.log.directories import LogDirError
from pykafka_broker.log.files import FileLockedError, OsFileSystem, lock_holder
from pykafka_broker.log.names import (
    CLEAN_SHUTDOWN_FILE,
    LOCK_FILE,
    LOG_START_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    parse_partition_folder,
)

Found = TypeVar("Found")

#: How often a partition is looked into whose files a broker replaces meanwhile.
ATTEMPTS = 5
#: What a log directory is known by, besides partitions.
LOG_DIRECTORY_FILES = frozenset(
    {META_PROPERTIES, CLEAN_SHUTDOWN_FILE, RECOVERY_POINT_CHECKPOINT, LOG_START_CHECKPOINT}
)
#: What a partition's folder is known by: a file of a segment, or one that describes the partition.
_PARTITION_FILE = re.compile(r"\d{20}\.|partition\.metadata$|leader-epoch-checkpoint$")


@click.group()
def log() -> None:
    """Look into the data of a broker: dump, verify, count; of a stopped one, repair."""


log.add_command(dump_log, "dump")

_paths = click.argument("paths", nargs=-1, required=True, metavar="FOLDER…", type=click.Path(exists=True))
_as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")


@log.command()
@_paths
@_as_json
def verify(paths: tuple[str, ...], as_json: bool) -> int:
    """Read every byte, and name what is wrong. Exit status 1 if anything is.

    FOLDER is a log directory or the folder of a partition. A broker may be running there: then the last
    segment of each partition is read as far as it has been written.
    """
    problems = 0
    _check_is_kafkas(paths)
    in_use = _told_in_use(paths)
    for folder, checked in _checked(paths, in_use):
        problems += sum(finding.remedy is not Remedy.START for finding in checked.findings)
        _tell(folder, checked, as_json, _log_directory(folder) in in_use)
    return 1 if problems else 0


@log.command()
@_paths
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@_as_json
def repair(paths: tuple[str, ...], dry_run: bool, as_json: bool) -> int:
    """Mend what `verify` finds, as far as that can be; the broker must not run.

    Damaged records are fenced off, never removed: reads of their offsets are answered with CORRUPT_MESSAGE,
    everything before and behind is served. Exit status 1 if something is left that cannot be mended here.
    """
    _check_is_kafkas(paths)
    left = 0
    files = OsFileSystem()
    with ExitStack() as locks:
        for path in paths:
            _lock(path, locks)
        for folder, checked in _checked(paths, {}):
            _tell(folder, checked, as_json, False)
            if not dry_run and (done := mend(files, checked.findings)) and not as_json:
                click.echo(f"{folder}: {done} mended")
            left += sum(finding.remedy is Remedy.NONE for finding in checked.findings)
    return 1 if left else 0


@log.command()
@_paths
@_as_json
def stats(paths: tuple[str, ...], as_json: bool) -> int:
    """Count segments, bytes, batches and records of every partition, without a look into the records."""
    _check_is_kafkas(paths)
    in_use = _told_in_use(paths)
    for folder, found in _each(paths, in_use, _counted):
        shown = {**found, "in_use": _log_directory(folder) in in_use}
        click.echo(compact_json(shown) if as_json else _stats_line(found))
    return 0


def _counted(folder: str, advance: Callable[[int], object], is_last_look: bool) -> dict[str, Any]:
    """What there is in a partition, by batch headers."""
    from pykafka_broker.log.recovery import walk

    opened = open_segments(OsFileSystem(), folder)
    segments = [(segment.base_offset, segment.size) for segment in opened]
    codecs: dict[str, int] = {}
    found: dict[str, Any] = {
        "partition": os.path.basename(folder),
        "segments": len(segments),
        "bytes": sum([size for _, size in segments]),
        "start_offset": segments[0][0] if segments else 0,
        "end_offset": segments[-1][0] if segments else 0,
        "batches": 0,
        "records": 0,
        "oldest_timestamp": -1,
        "newest_timestamp": -1,
        "codecs": codecs,
    }
    for segment in opened:
        for _, header in walk(segment.file.pread, 0, segment.size):
            found["batches"] += 1
            found["records"] += header.records_count
            found["end_offset"] = header.next_offset
            if header.max_timestamp >= 0:
                oldest = found["oldest_timestamp"]
                found["oldest_timestamp"] = min(oldest % (1 << 63), header.max_timestamp)
                found["newest_timestamp"] = max(found["newest_timestamp"], header.max_timestamp)
            codec = header.codec.name.lower()
            codecs[codec] = codecs.get(codec, 0) + 1
        advance(segment.size)
    return found


def _stats_line(found: dict[str, Any]) -> str:
    codecs = ", ".join([f"{count} {codec}" for codec, count in sorted(found["codecs"].items())])
    return (
        f"{found['partition']}: offsets {found['start_offset']} to {found['end_offset']}, "
        f"{found['records']} records in {found['batches']} batches ({codecs or 'none'}), "
        f"{found['segments']} segments, {found['bytes']} bytes"
    )


def _tell(folder: str, checked: Checked, as_json: bool, is_in_use: bool) -> None:
    partition, findings = checked
    if as_json:
        values = [
            {"path": finding.path, "problem": finding.text, "remedy": finding.remedy.name.lower()}
            for finding in findings
        ]
        name = os.path.basename(folder)
        shown = {"partition": name, **partition._asdict(), "in_use": is_in_use, "findings": values}
        click.echo(compact_json(shown))
        return
    verdict = "ok" if not findings else f"{len(findings)} problems"
    read = f", read up to offset {partition.end_offset}" if is_in_use else ""
    click.echo(f"{folder}: {partition.records} records in {partition.segments} segments{read}: {verdict}")
    for finding in findings:
        click.echo(f"  {os.path.basename(finding.path)} {finding.text} ({finding.remedy.value})")


def _check_is_kafkas(paths: Iterable[str]) -> None:
    """Refuse what is no log directory and no folder of a partition, before anything is done there.

    Raises:
        LogDirError: a folder has nothing of Kafka in it.
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


def _told_in_use(paths: tuple[str, ...]) -> dict[str, int]:
    """The log directories that a running process has, and its id; says so."""
    found = {}
    for directory in dict.fromkeys(map(_log_directory, paths)):
        process_id = lock_holder(os.path.join(directory, LOCK_FILE))
        if process_id is not None:
            found[directory] = process_id
            who = f" (process {process_id})" if process_id else ""
            click.echo(
                f"A broker is running on {directory}{who}: what it is writing is read as far as it goes",
                err=True,
            )
    return found


def _log_directory(path: str) -> str:
    """The log directory that is meant, or that a partition folder lies in."""
    path = os.path.abspath(path)
    return path if parse_partition_folder(os.path.basename(path)) is None else os.path.dirname(path)


def _checked(paths: tuple[str, ...], in_use: Mapping[str, int]) -> Iterator[tuple[str, Checked]]:
    """Every partition with what was found in it; on a terminal, with a bar that shows how far this is."""
    files = OsFileSystem()

    def check(folder: str, advance: Callable[[int], object], is_last_look: bool) -> Checked:
        is_in_use = _log_directory(folder) in in_use
        return check_partition(files, folder, advance, is_in_use=is_in_use, is_last_look=is_last_look)

    yield from _each(paths, in_use, check)


def _each(
    paths: tuple[str, ...],
    in_use: Mapping[str, int],
    look: Callable[[str, Callable[[int], object], bool], Found],
) -> Iterator[tuple[str, Found]]:
    """Look into every partition. Where a broker replaces what is just being read, the look is repeated, and
    `look` is told which is the last one; a folder that a broker has removed is left out.
    """
    from pykafka_broker.server.event_loop import raise_open_file_limit

    raise_open_file_limit()  # a partition may have more segments than the usual 1024
    folders = list(_partitions(paths))
    with _progress(sum(map(_size_of, folders))) as advance:
        for folder in folders:
            for attempt in range(ATTEMPTS):
                try:
                    yield folder, look(folder, advance, attempt == ATTEMPTS - 1)
                    break
                except FileNotFoundError:
                    if _log_directory(folder) not in in_use:
                        raise
                    if not os.path.exists(folder):
                        break


def _size_of(folder: str) -> int:
    """Bytes of the segments in a folder; none if it is gone by now."""
    with suppress(FileNotFoundError):
        return sum([size for _, size in segment_offsets(OsFileSystem(), folder)])
    return 0


@contextmanager
def _progress(total_bytes: int) -> Iterator[Callable[[int], object]]:
    """What to tell how many bytes were read; on a terminal it moves a bar."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = ("Reading", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total_bytes)
        yield lambda count: bar.advance(task, count)


def _partitions(paths: tuple[str, ...]) -> Iterator[str]:
    """The partition folders that are meant: one, or all of a log directory that are in service."""
    for path in map(os.path.normpath, paths):
        if parse_partition_folder(os.path.basename(os.path.abspath(path))) is not None:
            yield path
            continue
        for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
            folder = parse_partition_folder(entry.name)
            if entry.is_dir() and folder is not None and not folder.state:
                yield entry.path


def _lock(path: str, locks: ExitStack) -> None:
    """Keep brokers out of the log directory."""
    directory = _log_directory(path)
    try:
        locks.callback(OsFileSystem().lock(os.path.join(directory, LOCK_FILE)).release)
    except FileLockedError:
        raise LogDirError(f"A broker is running on {directory}: stop it first.") from None
