"""Accepting a loss: damaged or missing offsets are given up, and readers pass over them.

Before that they are fenced off, and a reader of the whole log stops there: a coordinator cannot load its
partition. `accept` turns a fenced range into a gap, as compaction leaves it:

1. the note of density is raised above the range (density.py), so that the gap is not taken for a new loss;
2. the `.damaged` file is removed: should the power fail now, the next check fences off the same again;
3. damaged bytes are cut out of the `.log` file, which is replaced as a whole;
4. the indexes, whose positions no longer fit, are removed: they are rebuilt when they are needed.

Each step is durable before the next begins. The folder must not be in use. Blocking.
"""

from __future__ import annotations

from collections.abc import Sequence

from pykafka_broker.log.check.findings import Finding, PartitionTotals, Remedy
from pykafka_broker.log.disk.files import FileSystem, directory_name, join, write_fully
from pykafka_broker.log.disk.names import (
    DAMAGED_SUFFIX,
    DENSE_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TEMPORARY_SUFFIX,
    TIME_INDEX_SUFFIX,
    offset_file,
)
from pykafka_broker.log.partition.density import noted_offset
from pykafka_broker.log.segment.damage import Damage

_PIECE_BYTES = 1 << 20
#: Remedies of findings about lost offsets.
_LOSSES = frozenset({Remedy.FENCE, Remedy.FENCED, Remedy.NONE})


def losses(findings: Sequence[Finding]) -> dict[str, list[Damage]]:
    """The lost ranges among the findings, by `.log` file, in order."""
    found: dict[str, list[Damage]] = {}
    for finding in findings:
        if finding.damage is not None and finding.remedy in _LOSSES:
            found.setdefault(finding.path, []).append(finding.damage)
    return {path: sorted(damages) for path, damages in found.items()}


def accept(files: FileSystem, directory: str, totals: PartitionTotals, lost: dict[str, list[Damage]]) -> None:
    """Turn these ranges of a partition that was checked just now into gaps."""
    if not lost:
        return
    _raise_note(files, directory, totals, max(damages[-1].next_offset for damages in lost.values()))
    for path, damages in lost.items():
        base = path[: -len(LOG_SUFFIX)]
        files.remove(base + DAMAGED_SUFFIX)
        files.sync_directory(directory)
        _cut_out(files, path, damages)
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            files.remove(base + suffix)
        files.sync_directory(directory)


def _raise_note(files: FileSystem, directory: str, totals: PartitionTotals, next_offset: int) -> None:
    """Note that offsets at or past `next_offset` are missing only if they were lost. A log without a note may
    have gaps anywhere, so its note starts at its end.
    """
    names = [entry.name for entry in files.entries(directory)]
    noted = noted_offset(names)
    raised = totals.end_offset if noted is None else max(noted, next_offset)
    if raised == noted:
        return
    files.write_file(join(directory, offset_file(raised, DENSE_SUFFIX)), b"", sync=True)
    for name in names:
        if name.endswith(DENSE_SUFFIX):
            files.remove(join(directory, name))
    files.sync_directory(directory)


def _cut_out(files: FileSystem, path: str, damages: Sequence[Damage]) -> None:
    """Replace a file by a copy without the damaged bytes."""
    file = files.open(path, writable=False)
    size, start = file.size(), 0
    kept: list[tuple[int, int]] = []
    for damage in damages:
        kept.append((start, min(damage.position, size)))
        start = max(start, damage.end_position)
    kept.append((start, size))
    if sum(max(0, end - begin) for begin, end in kept) == size:
        return
    temporary = path + TEMPORARY_SUFFIX
    files.remove(temporary)
    copy = files.open(temporary, create=True)
    written = 0
    for begin, end in kept:
        for position in range(begin, end, _PIECE_BYTES):
            piece = file.pread(min(_PIECE_BYTES, end - position), position)
            write_fully(copy, piece, written)
            written += len(piece)
    copy.sync()
    files.set_modified_ms(temporary, files.modified_ms(path))
    files.rename(temporary, path)
    files.sync_directory(directory_name(path))
