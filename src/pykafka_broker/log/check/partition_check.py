"""Looking through the files of a partition: what is wrong with them, and what can be done about it.

`check_partition` reads everything and changes nothing; `mend` does what a finding offers, and nobody else
may have the folder then. Blocking.

A folder that a broker is using can be checked too. Its last segment is being written, and is read as far as
it holds whole batches; what the broker has under way (replaced segments, files to be deleted) is no finding.
All segments are opened before the first is read, so what the broker removes meanwhile can be read to the end.

| found | offered |
|---|---|
| damage before good batches or another segment | fenced (`.damaged`): reads there get CORRUPT_MESSAGE |
| the last segment ends in half a batch | cut off, as a start after a crash would |
| an index that does not fit its log | removed; the broker makes it anew when it needs it |
| an unreadable snapshot, window or leader epochs | removed; rebuilt from the log at the next start |
| partition.metadata missing or unreadable | nothing: the broker does, when the metadata knows the topic |
| `.cleaned`, `.swap`, `.deleted`, `.tmp` | nothing: the next start finishes or removes them |
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import NamedTuple

from pykafka_broker.log.disk.checkpoints import (
    MalformedFile,
    decode_epochs,
    decode_offsets,
    decode_partition_metadata,
)
from pykafka_broker.log.disk.files import FileSystem, directory_name, join
from pykafka_broker.log.disk.names import (
    CLEANED_SUFFIX,
    CLEANER_CHECKPOINT,
    DAMAGED_SUFFIX,
    DELETED_SUFFIX,
    DENSE_SUFFIX,
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    METADATA_TOPIC,
    PARTITION_METADATA,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TEMPORARY_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    WINDOW_SUFFIX,
    offset_file,
    parse_offset_file,
    parse_partition_folder,
)
from pykafka_broker.log.partition.density import noted_offset
from pykafka_broker.log.partition.leader_epochs import LeaderEpochs
from pykafka_broker.log.partition.producers import CorruptSnapshotError, read_snapshot, restore_windows
from pykafka_broker.log.segment.aborted_txns import read_aborted_txns
from pykafka_broker.log.segment.batch_walk import Scan, no_epoch_known
from pykafka_broker.log.segment.damage import Damage
from pykafka_broker.log.segment.index import InvalidIndexError, OffsetIndex, TimeIndex
from pykafka_broker.log.segment.scan import is_dense_but_for, survey
from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.log.segment.segment_files import SegmentFiles
from pykafka_broker.log.segment.trust import Trust

#: How often a folder is listed anew whose segments are removed between the listing and the opening: each time
#: a broker has removed one within a millisecond or so.
LISTINGS = 1_000
_LEFTOVERS = (CLEANED_SUFFIX, SWAP_SUFFIX, DELETED_SUFFIX, TEMPORARY_SUFFIX)


class Remedy(Enum):
    """What `mend` would do."""

    NONE = "nothing that can be done here"
    START = "the next start of the broker sees to it"
    FENCE = "fence it off: reads of these offsets get CORRUPT_MESSAGE, all others are served"
    CUT = "cut it off"
    REMOVE = "remove the file: it is made anew from the log"
    FENCED = "fenced off already"


class Finding(NamedTuple):
    """Something wrong with a file."""

    path: str
    text: str
    remedy: Remedy
    #: Of damage and torn ends: where it lies.
    damage: Damage | None = None


class Partition(NamedTuple):
    """What was gone through."""

    segments: int
    bytes: int
    batches: int
    records: int
    #: Where the log ends, or ended when it was read.
    end_offset: int = 0


class Checked(NamedTuple):
    """The outcome of one partition."""

    partition: Partition
    findings: Sequence[Finding]


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
) -> Checked:
    """Read every byte of a partition's folder. `on_bytes` hears how many bytes of the logs have been read.

    Raises:
        FileNotFoundError: there is no such folder; or of one in use, what was read looks odd, but the broker
            has replaced it meanwhile: look again. A last look leaves out what was found in replaced segments.
    """
    findings: list[Finding] = []
    names = {entry.name for entry in files.entries(directory) if not entry.is_directory}
    present = {join(directory, name) for name in names}
    findings += [
        Finding(join(directory, name), "is left over from work that was cut short", Remedy.START)
        for name in sorted(names)
        if name.endswith(_LEFTOVERS) and not name.endswith(DENSE_SUFFIX) and not is_in_use
    ]
    epochs, problem = _read_epochs(files, directory)
    findings += [
        finding
        for finding in (*_check_metadata(files, directory), *problem)
        if finding.path in present or not _is_new_metadata_log(directory, names)
    ]
    whole = open_segments(files, directory)
    segments = [(segment.base_offset, segment.size) for segment in whole]
    batches = records = end_offset = 0
    found = survey(whole, epochs.epoch_for_offset)
    may_have_gaps = found.has_gaps or _was_cleaned(files, directory)
    epoch_of = epochs.epoch_for_offset
    if found.contradicts_epochs:
        epoch_of = no_epoch_known
        path = join(directory, LEADER_EPOCH_CHECKPOINT)
        findings.append(Finding(path, "contradicts the log", Remedy.REMOVE))
    for number, (base_offset, size) in enumerate(segments):
        following = segments[number + 1][0] if number + 1 < len(segments) else None
        segment = whole[number]
        pread = _metered(segment.file.pread, on_bytes)
        scan = Scan(
            pread,
            size,
            base_offset,
            epoch_of=epoch_of,
            gaps_allowed=may_have_gaps or is_in_use,
            following_offset=following,
        )
        places: dict[int, int] = {}
        timestamps: dict[int, int] = {}
        for position, header in scan:
            batches += 1
            records += header.records_count
            places[position] = header.last_offset
            timestamps[header.last_offset] = header.max_timestamp
        end_offset = scan.next_offset
        is_written = is_in_use and following is None
        is_short = scan.valid_end == size and following is not None and end_offset < following
        is_hole = False
        if is_short and following is not None:
            # Read now: a cleaner at work has raised it before what was just read.
            noted = noted_offset(entry.name for entry in files.entries(directory))
            if noted is not None and found.last_gap < noted:
                is_hole = following > noted
            else:
                is_hole = not may_have_gaps and is_dense_but_for(segment, whole)
        findings += _judge_scan(segment, scan, following, names, is_written=is_written, is_hole=is_hole)
        if not is_written:
            with _vanishing(is_in_use):
                findings += _check_indexes(files, segment, names, places, timestamps)
    findings += _check_snapshots(files, directory, names, is_in_use=is_in_use)
    if is_in_use and findings:
        replaced = set(segments[:-1]).difference(segment_offsets(files, directory))
        if replaced and not is_last_look:
            raise FileNotFoundError(errno.ENOENT, "Segments were compacted meanwhile", directory)
        gone = {base_offset for base_offset, _ in replaced}
        findings = [finding for finding in findings if _base_offset(finding.path) not in gone]
    total = sum([size for _, size in segments])
    return Checked(Partition(len(segments), total, batches, records, end_offset), findings)


@contextmanager
def _vanishing(is_in_use: bool) -> Iterator[None]:
    """Files that a broker removes before they are read, with the segment they belong to, are no finding."""
    try:
        yield
    except FileNotFoundError:
        if not is_in_use:
            raise


def _base_offset(path: str) -> int | None:
    """The offset that a file is named by."""
    parsed = parse_offset_file(path[len(directory_name(path)) + 1 :])
    return None if parsed is None else parsed[0]


def _was_cleaned(files: FileSystem, directory: str) -> bool:
    """Whether the cleaner has left a note of it; taken for granted where its notes are not readable."""
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
    """The same, and tell of what is read for the first time."""
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
    """Whether this is the metadata log as formatting leaves it, without segments and what describes them."""
    folder = parse_partition_folder(directory.rsplit("/", 1)[-1])
    is_metadata_log = folder is not None and folder.topic == METADATA_TOPIC
    return is_metadata_log and not any(name.endswith(LOG_SUFFIX) for name in names)


def _check_metadata(files: FileSystem, directory: str) -> Iterator[Finding]:
    path = join(directory, PARTITION_METADATA)
    try:
        decode_partition_metadata(files.read_file(path))
    except FileNotFoundError:
        yield Finding(path, "is missing", Remedy.START)
    except MalformedFile as error:
        yield Finding(path, f"is not readable: {error}", Remedy.START)


def _read_epochs(files: FileSystem, directory: str) -> tuple[LeaderEpochs, list[Finding]]:
    path = join(directory, LEADER_EPOCH_CHECKPOINT)
    try:
        return LeaderEpochs(decode_epochs(files.read_file(path))), []
    except FileNotFoundError:
        return LeaderEpochs(), [Finding(path, "is missing", Remedy.START)]
    except MalformedFile as error:
        return LeaderEpochs(), [Finding(path, f"is not readable: {error}", Remedy.REMOVE)]


def _judge_scan(
    segment: Segment,
    scan: Scan,
    following: int | None,
    names: set[str],
    *,
    is_written: bool,
    is_hole: bool,
) -> Iterator[Finding]:
    path = segment.path + LOG_SUFFIX
    known: tuple[Damage, ...] = ()
    if offset_file(segment.base_offset, DAMAGED_SUFFIX) in names:
        try:
            segment.trust.load_damages()
            known = segment.trust.damages
        except FileNotFoundError:  # a broker has removed it together with the segment
            known = ()
        except (ValueError, TypeError):
            yield Finding(segment.path + DAMAGED_SUFFIX, "is not readable", Remedy.REMOVE)
    damages = list(scan.damages)
    if scan.valid_end < segment.size and not is_written:
        if following is None:
            torn = scan.tail_damage(scan.next_offset)
            text = f"ends in {segment.size - scan.valid_end} bytes that are no batch, at offset {torn[2]}"
            # The start of a broker knows how far the log was synced, and decides.
            remedy = Remedy.START if _is_sound_at(segment, scan.valid_end) else Remedy.CUT
            yield Finding(path, text, remedy, torn)
        else:
            damages.append(scan.tail_damage(following))
    elif following is not None and (missing := scan.tail_damage(following)) in known:
        damages.append(missing)
    elif is_hole and following is not None:
        text = f"offsets {missing.first_offset} to {missing.next_offset - 1} are missing behind it"
        yield Finding(path, text, Remedy.NONE, missing)
    for damage in damages:
        yield Finding(
            path,
            f"offsets {damage.first_offset} to {damage.next_offset - 1} are damaged "
            f"(bytes {damage.position} to {damage.end_position})",
            Remedy.FENCED if damage in known else Remedy.FENCE,
            damage,
        )


def _is_sound_at(segment: Segment, position: int) -> bool:
    """Whether a batch with the right checksum begins there, be its offset or epoch what they may."""
    scan = Scan(
        segment.file.pread, segment.size, segment.base_offset, gaps_allowed=True, start_position=position
    )
    return next(iter(scan), (None, None))[0] == position


def _check_indexes(
    files: FileSystem,
    segment: Segment,
    names: set[str],
    places: dict[int, int],
    timestamps: dict[int, int],
) -> Iterator[Finding]:
    def read(suffix: str) -> bytes | None:
        present = offset_file(segment.base_offset, suffix) in names
        return files.read_file(segment.path + suffix) if present else None

    base_offset = segment.base_offset
    if (data := read(INDEX_SUFFIX)) is not None:
        try:
            for offset, position in OffsetIndex.from_bytes(data, base_offset, max(segment.size, 1)):
                if places.get(position) != offset:
                    raise InvalidIndexError(
                        f"position {position} does not hold a batch up to offset {offset}"
                    )
        except InvalidIndexError as error:
            yield Finding(segment.path + INDEX_SUFFIX, str(error), Remedy.REMOVE)
    if (data := read(TIME_INDEX_SUFFIX)) is not None:
        try:
            for timestamp, offset in TimeIndex.from_bytes(data, base_offset):
                if timestamps.get(offset) != timestamp:
                    raise InvalidIndexError(f"no batch up to offset {offset} has timestamp {timestamp}")
        except InvalidIndexError as error:
            yield Finding(segment.path + TIME_INDEX_SUFFIX, str(error), Remedy.REMOVE)
    if (data := read(TXN_INDEX_SUFFIX)) is not None:
        try:
            read_aborted_txns(data)
        except InvalidIndexError as error:
            yield Finding(segment.path + TXN_INDEX_SUFFIX, str(error), Remedy.NONE)


def _check_snapshots(
    files: FileSystem, directory: str, names: set[str], *, is_in_use: bool
) -> Iterator[Finding]:
    for name in sorted(names):
        parsed = parse_offset_file(name)
        if parsed is not None and parsed[1] == SNAPSHOT_SUFFIX:
            with _vanishing(is_in_use):
                yield from _check_snapshot(files, directory, parsed[0], names)


def _check_snapshot(files: FileSystem, directory: str, offset: int, names: set[str]) -> Iterator[Finding]:
    path = join(directory, offset_file(offset, SNAPSHOT_SUFFIX))
    try:
        states = read_snapshot(files.read_file(path))
    except CorruptSnapshotError as error:
        yield Finding(path, str(error), Remedy.REMOVE)
        return
    window = offset_file(offset, WINDOW_SUFFIX)
    if window in names:
        try:
            restore_windows(states, files.read_file(join(directory, window)))
        except CorruptSnapshotError as error:
            yield Finding(join(directory, window), str(error), Remedy.REMOVE)


def mend(files: FileSystem, findings: Sequence[Finding]) -> int:
    """Do what is offered; how many findings that concerned. The folder must be nobody else's."""
    done = 0
    fences: dict[str, list[Damage]] = {}
    for finding in findings:
        if finding.remedy is Remedy.REMOVE:
            files.remove(finding.path)
        elif finding.remedy is Remedy.CUT:
            assert finding.damage is not None
            file = files.open(finding.path)
            file.truncate(finding.damage.position)
            file.sync()
        elif finding.remedy in (Remedy.FENCE, Remedy.FENCED):
            assert finding.damage is not None
            fences.setdefault(finding.path, []).append(finding.damage)
            if finding.remedy is Remedy.FENCED:
                continue
        else:
            continue
        done += 1
    for path, damages in fences.items():
        base = path[: -len(LOG_SUFFIX)]
        trust = Trust(SegmentFiles(files, base))
        trust.damages = tuple(sorted(damages))
        trust.save_damages()
    return done
