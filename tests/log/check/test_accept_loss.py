"""A loss that is accepted is a gap that every reader passes over, whenever the power fails meanwhile."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from pykafka_broker.log.check.accept_loss import accept, losses
from pykafka_broker.log.check.mend import mend
from pykafka_broker.log.check.partition_check import check_partition
from pykafka_broker.log.disk.names import DAMAGED_SUFFIX, offset_file
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import iter_batches
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import FOLDER, NOW, names, new_log, reopened
from tests.log.partition.test_density import COMPACT, fill, keyed

BATCHES = 30


class PowerCut(Exception):
    pass


def closed_log(**settings: object) -> tuple[MemoryFiles, list[int]]:
    """A log on stable storage, and where its segments begin."""
    files = MemoryFiles()
    log = new_log(files, **{**COMPACT, **settings})
    fill(log, range(BATCHES))
    bases = [segment.base_offset for segment in log.state.segments]
    assert log.close()
    for folder in (FOLDER, "/logs", "/"):
        files.sync_directory(folder)
    return files.power_cut(), bases


def with_damage(files: MemoryFiles, base_offset: int, number: int) -> list[int]:
    """Spoil a batch of a segment; the offsets of the others."""
    data = files.inodes[f"{FOLDER}/{offset_file(base_offset, '.log')}"].data
    position, header = list(iter_batches(bytes(data)))[number]
    data[position + 70] ^= 1
    files.inodes[f"{FOLDER}/{offset_file(base_offset, '.log')}"].synced = bytes(data)
    return [offset for offset in range(BATCHES) if offset != header.base_offset]


def without_segment(files: MemoryFiles, bases: list[int], number: int) -> list[int]:
    """Empty a segment; the offsets that are left."""
    inode = files.inodes[f"{FOLDER}/{offset_file(bases[number], '.log')}"]
    del inode.data[:]
    inode.synced = b""
    return [offset for offset in range(BATCHES) if not bases[number] <= offset < bases[number + 1]]


def passed_through(log: PartitionLog) -> list[int]:
    """The offsets that a reader of the whole log gets.

    Raises:
        KafkaError: it does not get to the end.
    """
    found: list[int] = []
    offset = 0
    while offset < log.state.log_end_offset:
        data = log.reader.plan_read(offset, 1 << 20).read()
        for _, header in iter_batches(data):
            found.append(header.base_offset)
            offset = header.next_offset
        assert data
    return found


def as_served(files: MemoryFiles, **settings: object) -> PartitionLog:
    ends = {"recovery_point": BATCHES, "high_watermark": BATCHES}
    return reopened(files, clean=True, **{**COMPACT, **settings, **ends})


def repaired(files: MemoryFiles) -> None:
    checked = check_partition(files, FOLDER)
    mend(files, checked.findings)
    accept(files, FOLDER, checked.totals, losses(checked.findings))


@pytest.mark.parametrize("policy", ["compact", "delete"])
@pytest.mark.parametrize("loss", ["batch", "two batches", "segment", "both"])
def test_what_is_left_is_read_from_beginning_to_end(policy: str, loss: str) -> None:
    settings = {"cleanup_policy": frozenset({policy})}
    files, bases = closed_log(**settings)
    left = set(range(BATCHES))
    if loss != "segment":
        left &= set(with_damage(files, bases[1], 1))
    if loss == "two batches":
        left &= set(with_damage(files, bases[1], 0))
    if loss in ("segment", "both"):
        left &= set(without_segment(files, bases, 3))
    with pytest.raises(KafkaError) as refusal:
        passed_through(as_served(files.killed(), **settings))
    assert refusal.value.code is ErrorCode.CORRUPT_MESSAGE

    repaired(files)

    log = as_served(files, **settings)
    assert passed_through(log) == sorted(left)
    assert not [name for name in names(files) if name.endswith((DAMAGED_SUFFIX, ".tmp"))]
    log.writer.append(keyed(1), leader_epoch=0, now_ms=NOW)
    log.state.advance_high_watermark(log.state.log_end_offset)
    assert passed_through(log) == [*sorted(left), BATCHES]
    assert log.close()
    assert check_partition(files, FOLDER).findings == []


def test_a_loss_behind_the_accepted_one_is_still_one() -> None:
    files, bases = closed_log()
    without_segment(files, bases, 2)
    repaired(files)
    without_segment(files, bases, 4)
    with pytest.raises(KafkaError) as refusal:
        passed_through(as_served(files))
    assert refusal.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_power_cut_at_any_moment_leaves_the_loss_refused_or_accepted() -> None:
    dice = random.Random(3)
    outcomes = set()
    for step in range(60):
        files, bases = closed_log()
        left = sorted(set(with_damage(files, bases[1], 1)) & set(without_segment(files, bases, 3)))
        operations = 0

        def cut_after(operation: str, path: str, step: int = step) -> None:
            nonlocal operations
            operations += operation not in ("read_file", "pread")
            if operations > step:
                raise PowerCut

        files.meanwhile = cut_after
        with suppress(PowerCut):
            repaired(files)
        files.meanwhile = None
        after = files.power_cut(dice)
        try:
            found = passed_through(as_served(after))
        except KafkaError as error:
            assert error.code is ErrorCode.CORRUPT_MESSAGE
            outcomes.add("refused")
            repaired(after)
            found = passed_through(as_served(after))
        else:
            outcomes.add("accepted")
        assert found == left
    assert outcomes == {"refused", "accepted"}
