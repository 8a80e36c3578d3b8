"""Putting a cleaned segment in place of those it replaces, so that a crash at any moment loses nothing.

    1  *.cleaned          written and synced
    2  *.cleaned -> *.swap                      then the folder is synced: from here on the swap will happen
    3  files of the replaced -> *.deleted       then the folder is synced: nothing of them can come back
    4  *.swap -> the names in service, the log first, and the folder is synced

The names and the order are Apache Kafka's; the syncs between are ours, for a disk may keep renames in any
order. A start that finds `.cleaned` files was stopped before step 2 and removes them, with the `.swap` files
of the same or a later base offset; one that finds a `.log.swap` goes on at step 3, for every segment that
lies in its offsets. A `.swap` of another kind, without a `.log.swap`, means step 4.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Optional

from pykafka_broker.log.disk.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    DENSE_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TEMPORARY_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    WINDOW_SUFFIX,
    offset_file,
    parse_offset_file,
)
from pykafka_broker.system.named_tuple import NamedTuple

#: The files of a cleaned segment, in the order in which they get their names.
CLEANED_KINDS = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
_IN_PROGRESS = (DELETED_SUFFIX, CLEANED_SUFFIX, TEMPORARY_SUFFIX, SWAP_SUFFIX)
#: Files that belong to the first offset of a segment rather than to its records: they stay when the records
#: are replaced.
_OF_THE_OFFSET = (SNAPSHOT_SUFFIX, WINDOW_SUFFIX)


class Renaming(NamedTuple):
    """One step on a name; without `new` the file is removed."""

    old: str
    new: Optional[str]


def to_swap(base_offset: int) -> Iterator[Renaming]:
    """Step 2."""
    for kind in CLEANED_KINDS:
        name = offset_file(base_offset, kind)
        yield Renaming(name + CLEANED_SUFFIX, name + SWAP_SUFFIX)


def out_of_service(base_offset: int, replaced: Sequence[int]) -> Iterator[Renaming]:
    """Step 3; some of the files may not exist."""
    for offset in replaced:
        for kind in SEGMENT_SUFFIXES:
            if offset != base_offset or kind not in _OF_THE_OFFSET:
                name = offset_file(offset, kind)
                yield Renaming(name, name + DELETED_SUFFIX)


def into_service(base_offset: int) -> Iterator[Renaming]:
    """Step 4."""
    for kind in CLEANED_KINDS:
        name = offset_file(base_offset, kind)
        yield Renaming(name + SWAP_SUFFIX, name)


def undoing(names: Collection[str]) -> Iterator[Renaming]:
    """Step 2 taken back, of swaps in a folder with these files that have not got to step 3."""
    for name in names:
        parsed = _parse(name, SWAP_SUFFIX)
        if parsed is not None:
            log = offset_file(parsed[0], LOG_SUFFIX)
            if log in names and log + SWAP_SUFFIX in names:
                yield Renaming(name, name[: -len(SWAP_SUFFIX)] + CLEANED_SUFFIX)


def steps_at_start(names: Iterable[str], end_offset_of: Callable[[str], int]) -> list[Renaming]:
    """The steps that a start has to take in a folder with these files. `end_offset_of` reads where the
    offsets of a `.log.swap` end.
    """
    present = {name for name in names if not name.endswith(DENSE_SUFFIX)}
    if not any(name.endswith(_IN_PROGRESS) for name in present):
        return []
    steps = [
        Renaming(name, None)
        for name in sorted(present)
        if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, TEMPORARY_SUFFIX))
    ]
    unfinished = [offset for offset in map(_cleaned_offset, present) if offset is not None]
    swaps: dict[str, int] = {}
    for name in sorted(present):
        parsed = _parse(name, SWAP_SUFFIX)
        if parsed is None:
            continue
        is_undone = unfinished and parsed[0] >= min(unfinished)
        if is_undone and offset_file(parsed[0], LOG_SUFFIX) in present:  # else there is no other copy
            steps.append(Renaming(name, None))
        else:
            swaps[name] = parsed[0]
    for name, base_offset in swaps.items():
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            steps += _replaced(present, base_offset, end_offset_of(name))
    # The log gets its name first: until it has, another start takes the same steps.
    in_order = sorted(swaps, key=lambda name: (swaps[name], not name.endswith(LOG_SUFFIX + SWAP_SUFFIX)))
    steps += [Renaming(name, name[: -len(SWAP_SUFFIX)]) for name in in_order]
    return steps


def _replaced(present: set[str], base_offset: int, end_offset: int) -> Iterator[Renaming]:
    """Files in service that the swap replaces. One of the base offset without a `.swap` beside it is new."""
    for name in sorted(present):
        parsed = parse_offset_file(name)
        if parsed is None or parsed[1] not in SEGMENT_SUFFIXES or not base_offset <= parsed[0] < end_offset:
            continue
        if parsed[0] > base_offset or name + SWAP_SUFFIX in present:
            yield Renaming(name, None)


def _parse(name: str, suffix: str) -> tuple[int, str] | None:
    return parse_offset_file(name[: -len(suffix)]) if name.endswith(suffix) else None


def _cleaned_offset(name: str) -> int | None:
    parsed = _parse(name, CLEANED_SUFFIX)
    return None if parsed is None else parsed[0]
