"""Checking all files of a partition: reads every byte and changes nothing. Blocking.

`findings.py` has the possible findings and their remedies, `mend.py` carries the remedies out.

A folder that a broker is using can be checked too. Its last segment is being written, and is read as far as
it holds whole batches; work that the broker has under way (replaced segments, files to be deleted) is no
finding. All segments are opened before the first is read, so a segment that the broker removes meanwhile can
be read to the end.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence

from pykafka_broker.log.check.findings import CheckResult, Finding, PartitionTotals, Remedy, vanishing
from pykafka_broker.log.check.segment_check import check_indexes, check_log
from pykafka_broker.log.check.side_file_check import (
    check_leftovers,
    check_metadata,
    check_snapshots,
    read_epochs,
)
from pykafka_broker.log.disk.checkpoints import MalformedFile, decode_offsets
from pykafka_broker.log.disk.files import FileSystem, directory_name, join
from pykafka_broker.log.disk.names import (
    CLEANER_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    METADATA_TOPIC,
    offset_file,
    parse_offset_file,
    parse_partition_folder,
)
from pykafka_broker.log.partition.density import noted_offset
from pykafka_broker.log.segment.batch_scan import BatchScan, no_epoch_known
from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.log.segment.survey import is_dense_but_for, survey
from pykafka_broker.system.named_tuple import NamedTuple

#: How often a folder is listed at most: again if a segment was removed in the millisecond between listing and
#: opening.
LISTINGS = 1_000


def segment_offsets(files: FileSystem, directory: str) -> list[tuple[int, int]]:
    """(base offset, bytes) of the segments in a folder."""
    found = []
    for entry in files.entries(directory, sizes_of=(LOG_SUFFIX,)):
        parsed = parse_offset_file(entry.name)
        if parsed is not None and parsed[1] == LOG_SUFFIX:
            found.append((parsed[0], entry.size))
    return sorted(found)


def open_segments(files: FileSystem, directory: str) -> list[Segment]:
    """The segments in a folder with their `.log` files open, so that they can be read even when a broker has
    removed them.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    for attempt in range(LISTINGS):
        segments = [
            Segment(files, join(directory, offset_file(base_offset, "")), base_offset, size, 4096)
            for base_offset, size in segment_offsets(files, directory)
        ]
        try:
            for segment in segments:
                segment.open_to_read()
            return segments
        except FileNotFoundError:
            if attempt == LISTINGS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def check_partition(
    files: FileSystem,
    directory: str,
    on_bytes: Callable[[int], object] = lambda count: None,
    *,
    is_in_use: bool = False,
    is_last_look: bool = False,
) -> CheckResult:
    """Read every byte of a partition's folder. `on_bytes` is called with the number of bytes just read.

    Raises:
        FileNotFoundError: there is no such folder; or a folder in use has findings, and the broker has
            replaced segments meanwhile: check again. The last check leaves out findings in replaced segments.
    """
    names = {entry.name for entry in files.entries(directory) if not entry.is_directory}
    findings = [] if is_in_use else [*check_leftovers(directory, names)]
    epochs, problem = read_epochs(files, directory)
    present = {join(directory, name) for name in names}
    findings += [
        finding
        for finding in (*check_metadata(files, directory), *problem)
        if finding.path in present or not _is_new_metadata_log(directory, names)
    ]
    segments = open_segments(files, directory)
    listed = [(segment.base_offset, segment.size) for segment in segments]
    found = survey(segments, epochs.epoch_for_offset)
    if found.contradicts_epochs:
        path = join(directory, LEADER_EPOCH_CHECKPOINT)
        findings.append(Finding(path, "contradicts the log", Remedy.REMOVE))
    folder = _Folder(
        files,
        directory,
        names,
        segments,
        no_epoch_known if found.contradicts_epochs else epochs.epoch_for_offset,
        last_gap=found.last_gap,
        may_have_gaps=found.has_gaps or _was_cleaned(files, directory),
        is_in_use=is_in_use,
    )
    batches = records = end_offset = 0
    for number in range(len(segments)):
        checked = folder.check(number, on_bytes)
        batches += checked.batches
        records += checked.records
        end_offset = checked.end_offset
        findings += checked.findings
    findings += check_snapshots(files, directory, names, is_in_use=is_in_use)
    if is_in_use and findings:
        replaced = set(listed[:-1]).difference(segment_offsets(files, directory))
        if replaced and not is_last_look:
            raise FileNotFoundError(errno.ENOENT, "Segments were compacted meanwhile", directory)
        gone = {base_offset for base_offset, _ in replaced}
        findings = [finding for finding in findings if _base_offset(finding.path) not in gone]
    total = sum([size for _, size in listed])
    return CheckResult(PartitionTotals(len(segments), total, batches, records, end_offset), findings)


class _CheckedSegment(NamedTuple):
    """The outcome of one segment."""

    batches: int
    records: int
    end_offset: int
    findings: Sequence[Finding]


class _Folder(NamedTuple):
    """The partition, as far as the check of a segment needs it."""

    files: FileSystem
    directory: str
    names: set[str]
    segments: Sequence[Segment]
    epoch_of: Callable[[int], int]
    #: See `Survey`.
    last_gap: int
    may_have_gaps: bool
    is_in_use: bool

    def check(self, number: int, on_bytes: Callable[[int], object]) -> _CheckedSegment:
        """Read the segment of this number."""
        segment = self.segments[number]
        is_last = number + 1 == len(self.segments)
        following = None if is_last else self.segments[number + 1].base_offset
        scan = BatchScan(
            _metered(segment.file.pread, on_bytes),
            segment.size,
            segment.base_offset,
            epoch_of=self.epoch_of,
            gaps_allowed=self.may_have_gaps or self.is_in_use,
            following_offset=following,
        )
        batches = records = 0
        places: dict[int, int] = {}
        timestamps: dict[int, int] = {}
        for position, header in scan:
            batches += 1
            records += header.records_count
            places[position] = header.last_offset
            timestamps[header.last_offset] = header.max_timestamp
        is_written = self.is_in_use and is_last
        is_hole = following is not None and self._is_hole(segment, scan, following)
        findings = [*check_log(segment, scan, following, self.names, is_written=is_written, is_hole=is_hole)]
        if not is_written:
            with vanishing(self.is_in_use):
                findings += check_indexes(self.files, segment, self.names, places, timestamps)
        return _CheckedSegment(batches, records, scan.next_offset, findings)

    def _is_hole(self, segment: Segment, scan: BatchScan, following: int) -> bool:
        """Whether offsets missing before the next segment were lost rather than compacted away."""
        if scan.valid_end != segment.size or scan.next_offset >= following:
            return False
        # Read now: a cleaner at work has raised it before the segment was read.
        noted = noted_offset(entry.name for entry in self.files.entries(self.directory))
        if noted is not None and self.last_gap < noted:
            return following > noted
        return not self.may_have_gaps and is_dense_but_for(segment, self.segments)


def _base_offset(path: str) -> int | None:
    """The offset that a file is named by."""
    parsed = parse_offset_file(path[len(directory_name(path)) + 1 :])
    return None if parsed is None else parsed[0]


def _was_cleaned(files: FileSystem, directory: str) -> bool:
    """Whether the cleaner's checkpoint has the partition; true if the checkpoint is not readable."""
    folder = parse_partition_folder(directory.rsplit("/", 1)[-1])
    try:
        cleaned = decode_offsets(files.read_file(join(directory_name(directory), CLEANER_CHECKPOINT)))
    except FileNotFoundError:
        return False
    except MalformedFile:
        return True
    return folder is None or (folder.topic, folder.partition) in cleaned


def _metered(
    pread: Callable[[int, int], bytes], on_bytes: Callable[[int], object]
) -> Callable[[int, int], bytes]:
    """The same `pread`; `on_bytes` is called with the number of bytes read for the first time."""
    furthest = 0

    def metered(size: int, position: int) -> bytes:
        nonlocal furthest
        data = pread(size, position)
        if (end := position + len(data)) > furthest:
            on_bytes(end - furthest)
            furthest = end
        return data

    return metered


def _is_new_metadata_log(directory: str, names: set[str]) -> bool:
    """Whether this is the metadata log as formatting leaves it, without segments and their side files."""
    folder = parse_partition_folder(directory.rsplit("/", 1)[-1])
    is_metadata_log = folder is not None and folder.topic == METADATA_TOPIC
    return is_metadata_log and not any(name.endswith(LOG_SUFFIX) for name in names)
