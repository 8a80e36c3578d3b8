"""Judging one segment: its batches by the scan of them, its indexes by where the scan has found batches."""

from __future__ import annotations

from collections.abc import Iterator

from pykafka_broker.log.check.findings import Finding, Remedy
from pykafka_broker.log.disk.files import FileSystem
from pykafka_broker.log.disk.names import (
    DAMAGED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_file,
)
from pykafka_broker.log.segment.aborted_txns import read_aborted_txns
from pykafka_broker.log.segment.batch_scan import BatchScan
from pykafka_broker.log.segment.damage import Damage
from pykafka_broker.log.segment.index import InvalidIndexError, OffsetIndex, TimeIndex
from pykafka_broker.log.segment.segment import Segment


def check_log(
    segment: Segment,
    scan: BatchScan,
    following: int | None,
    names: set[str],
    *,
    is_written: bool,
    is_hole: bool,
) -> Iterator[Finding]:
    """The findings of a finished scan.

    `following` is the base offset of the next segment, `names` the files of the folder. `is_written`: a
    broker is appending to the segment. `is_hole`: offsets that are missing at the end were lost.
    """
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
    """Whether a batch with the right checksum begins there, whatever its offset and epoch."""
    scan = BatchScan(
        segment.file.pread, segment.size, segment.base_offset, gaps_allowed=True, start_position=position
    )
    return next(iter(scan), (None, None))[0] == position


def check_indexes(
    files: FileSystem,
    segment: Segment,
    names: set[str],
    places: dict[int, int],
    timestamps: dict[int, int],
) -> Iterator[Finding]:
    """Index entries that do not point to a batch: `places` has the last offset of the batch at each position,
    `timestamps` the greatest timestamp of the batch that ends with each offset.
    """

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
