"""New offset files for a checkpoint that its topics have left behind; each old one stays beside the new one.

If the newest batch is done, its file says where the next one begins, and is the only one that changes. If the
newest batch is not done, Spark runs it again, from the offsets of the previous file to those of its own. Both
files change. The batch keeps its number and the records that it can still read, so that a sink that has seen
the batch takes it for the same one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pykafka_broker.spark.checkpoint.comparison import SOUND, Standing, State
from pykafka_broker.spark.checkpoint.files import Batch, Checkpoint, Offsets, write_whole
from pykafka_broker.system.named_tuple import NamedTuple


class Rewrite(NamedTuple):
    """A file of offsets and its new text."""

    path: Path
    text: str


def plan(checkpoint: Checkpoint, states: Sequence[State]) -> list[Rewrite]:
    """The files that a repair writes; none if all is sound."""
    changed = [
        state for state in states if state.standing not in SOUND and state.standing is not Standing.DOUBTFUL
    ]
    if not changed:
        return []
    if checkpoint.is_done or checkpoint.before is None:
        return [_rewritten(checkpoint.last, changed, is_planned=False)]
    return [
        _rewritten(checkpoint.before, changed, is_planned=False),
        _rewritten(checkpoint.last, changed, is_planned=True),
    ]


def _rewritten(batch: Batch, changed: Iterable[State], *, is_planned: bool) -> Rewrite:
    sources = batch.kafka_sources()
    for state in changed:
        if state.source in sources:
            _move(sources[state.source], state, is_planned=is_planned)
    return Rewrite(batch.path, batch.with_offsets(sources))


def _move(offsets: Offsets, state: State, *, is_planned: bool) -> None:
    """Put the offset of one partition where the repair goes on.

    The end of a planned batch stays if it still follows the batch's start in the same log.
    """
    partition = (state.topic, state.partition)
    if state.repaired is None:
        offsets.pop(partition, None)
        return
    end = offsets.get(partition)
    if is_planned and end is not None and state.standing is Standing.OVERTAKEN:
        assert state.log_end is not None
        offsets[partition] = min(max(end, state.repaired), state.log_end)
    else:
        offsets[partition] = state.repaired


def carry_out(rewrites: Iterable[Rewrite]) -> list[Path]:
    """Write the new files; returns the copies of the old ones, which lie beside them.

    Raises:
        OSError: a file cannot be written. The files before it are written, each complete.
    """
    backups = []
    for path, text in rewrites:
        backup = _free_name(path)
        backup.write_bytes(path.read_bytes())
        write_whole(path, text)
        backups.append(backup)
    return backups


def _free_name(path: Path) -> Path:
    """A name beside the file; Spark looks for numbers, and passes over this name."""
    number = 1
    while (backup := path.with_name(f"{path.name}.before-repair-{number}")).exists():
        number += 1
    return backup
