"""A compacted log says in the name of a file from where on it has no gaps, as long as that is certain."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from typing import Any

import pytest

from pykafka_broker.log.check.findings import Remedy
from pykafka_broker.log.check.partition_check import check_partition
from pykafka_broker.log.disk.names import DENSE_SUFFIX, offset_file
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import AppendOrigin
from pykafka_broker.log.segment.swap import steps_at_start
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import BatchFields, build_batch, iter_batches
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import FOLDER, NOW, names, new_log, records, reopened

COMPACT: dict[str, Any] = {"segment_bytes": 400, "cleanup_policy": frozenset({"compact"})}
BATCHES = 30


def notes(files: MemoryFiles) -> list[int]:
    return [int(name.split(".")[0]) for name in names(files) if name.endswith(DENSE_SUFFIX)]


def keyed(number: int, offset: int = 0) -> bytearray:
    return bytearray(
        build_batch([(NOW, b"%d" % number, bytes(40), ())], BatchFields(base_offset=offset, leader_epoch=0))
    )


def fill(log: PartitionLog, numbers: Iterable[int]) -> None:
    for number in numbers:
        log.writer.append(keyed(number), leader_epoch=0, now_ms=NOW)
    log.state.advance_high_watermark(log.state.log_end_offset)


def copied(log: PartitionLog, offsets: Iterable[int]) -> None:
    """Append as it stands in another log."""
    for offset in offsets:
        log.writer.append(keyed(offset, offset), leader_epoch=-1, now_ms=NOW, origin=AppendOrigin.REPLICATION)


def written(**settings: Any) -> tuple[MemoryFiles, list[int]]:
    """A compacted log of several segments, and where they begin."""
    files = MemoryFiles()
    log = new_log(files, **COMPACT, **settings)
    fill(log, range(BATCHES))
    return files, [segment.base_offset for segment in log.state.segments]


def lose(files: MemoryFiles, base_offset: int) -> MemoryFiles:
    """The disk without what a segment held."""
    disk = files.killed()
    del disk.inodes[f"{FOLDER}/{offset_file(base_offset, '.log')}"].data[:]
    return disk


def refused(log: PartitionLog) -> list[int]:
    found = []
    for offset in range(log.state.log_start_offset, log.state.log_end_offset):
        try:
            log.reader.plan_read(offset, 1, limit="log_end").read()
        except KafkaError as error:
            assert error.code is ErrorCode.CORRUPT_MESSAGE
            found.append(offset)
    return found


def test_a_new_compacted_log_is_dense_from_its_start() -> None:
    files, bases = written()
    assert notes(files) == [0]
    log = reopened(lose(files, bases[2]), **COMPACT)
    assert refused(log) == list(range(bases[2], bases[3]))


def test_other_logs_need_no_note() -> None:
    files = MemoryFiles()
    new_log(files)
    assert notes(files) == []


def test_below_the_note_a_gap_is_what_compaction_left() -> None:
    files, bases = written()
    disk = files.killed()
    log = reopened(disk, **COMPACT)
    log.density.allow_gaps_below(bases[3])
    assert notes(disk) == [bases[3]]
    assert notes(disk.power_cut()) == [bases[3]], "durable when it returns"
    assert refused(reopened(lose(disk, bases[2]), **COMPACT)) == []
    assert refused(reopened(lose(disk, bases[3]), **COMPACT)) == list(range(bases[3], bases[4]))


def test_without_a_note_nothing_is_judged_and_the_log_gets_one_for_what_follows() -> None:
    files, bases = written()
    files.remove(f"{FOLDER}/{offset_file(0, DENSE_SUFFIX)}")  # as Apache Kafka does when it opens the folder
    disk = lose(files, bases[2])
    log = reopened(disk, **COMPACT)
    assert refused(log) == []

    fill(log, range(BATCHES, 2 * BATCHES))
    log.compaction.dirt(NOW)
    log.compaction.dirt(NOW)
    assert notes(disk) == [BATCHES]
    later = [segment.base_offset for segment in log.state.segments if segment.base_offset > BATCHES]
    assert refused(reopened(lose(disk, later[1]), **COMPACT)) == list(range(later[1], later[2]))


def test_what_was_cleaned_without_a_note_is_not_vouched_for_later() -> None:
    files, _ = written()
    files.remove(f"{FOLDER}/{offset_file(0, DENSE_SUFFIX)}")
    log = reopened(files, **COMPACT)
    fill(log, range(BATCHES, 2 * BATCHES))
    files.fail("write_file", errno.ENOSPC)
    log.compaction.dirt(NOW)
    assert notes(files) == []
    end = log.state.segments[-1].base_offset
    log.density.allow_gaps_below(end)
    log.compaction.dirt(NOW)
    assert notes(files) == [end]


def test_a_note_that_the_log_contradicts_is_not_believed() -> None:
    files, bases = written()
    path = f"{FOLDER}/{offset_file(bases[2], '.log')}"
    data = files.read_file(path)
    [_, (second, _), *_] = iter_batches(data)
    files.write_file(path, data[second:], sync=False)
    disk = lose(files, bases[4])
    assert refused(reopened(disk, **COMPACT)) == []
    assert notes(disk) == []


@pytest.mark.parametrize("how", ["between batches", "by a roll", "by a new start"])
def test_a_copy_of_a_log_with_gaps_has_no_note(how: str) -> None:
    files = MemoryFiles()
    log = new_log(files, **COMPACT)
    copied(log, range(5))
    assert notes(files) == [0]
    if how == "between batches":
        copied(log, range(7, 9))
    elif how == "by a roll":
        log.trimmer.skip_to(9)
    else:
        log.trimmer.reset_to(9)
    assert notes(files) == notes(files.power_cut()) == []
    log.compaction.dirt(NOW)
    assert notes(files) == []

    log.density.ends_copying()
    log.compaction.dirt(NOW)
    assert notes(files) == [9]


def test_nothing_with_gaps_is_copied_while_the_note_cannot_be_removed() -> None:
    files = MemoryFiles()
    log = new_log(files, **COMPACT)
    copied(log, range(5))
    files.fail("remove", errno.EIO)
    with pytest.raises(KafkaError) as refusal:
        copied(log, [9])
    assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.state.log_end_offset == 5


def test_a_note_stays_over_clean_stops_and_whatever_the_policy_is() -> None:
    files, _ = written()
    for policy in ("delete", "compact", "compact,delete"):
        log = reopened(
            files,
            clean=True,
            recovery_point=BATCHES,
            segment_bytes=400,
            cleanup_policy=frozenset(policy.split(",")),
        )
        assert len(records(log)) == BATCHES
        assert log.close()
        assert notes(files) == [0]
    assert steps_at_start(names(files), lambda name: 0) == []


def test_what_a_closed_segment_has_lost_while_the_broker_was_down_is_refused_above_the_note() -> None:
    files, bases = written()
    log = reopened(lose(files, bases[2]), clean=True, recovery_point=BATCHES, **COMPACT)
    assert refused(log) == list(range(bases[2], bases[3]))


@pytest.mark.parametrize("clean", [False, True])
def test_what_is_lost_right_behind_a_cleaned_segment_is_refused(clean: bool) -> None:
    files, bases = written()
    log = reopened(files, **COMPACT)
    first = f"{FOLDER}/{offset_file(0, '.log')}"
    data = files.read_file(first)
    [_, (second, _), *_, (last, _)] = iter_batches(data)
    log.density.allow_gaps_below(bases[1])
    files.write_file(first, data[:second] + data[last:], sync=False)
    disk = lose(files, bases[1])
    disk.remove(f"{FOLDER}/{offset_file(bases[1], '.log')}")
    assert [f.text for f in check_partition(disk, FOLDER).findings if f.path == first] == [
        f"offsets {bases[1]} to {bases[2] - 1} are missing behind it"
    ]
    log = reopened(disk, clean=clean, recovery_point=BATCHES, **COMPACT)
    assert [o for o in refused(log) if o >= bases[1]] == list(range(bases[1], bases[2]))


def test_what_compaction_left_out_is_read_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    files, bases = written()
    reopened(files, **COMPACT).density.allow_gaps_below(bases[2])
    disk = lose(files, bases[1])
    log = reopened(disk, clean=True, recovery_point=BATCHES, **COMPACT)
    assert refused(log) == []
    assert caplog.text == ""
    disk = lose(files, bases[3])
    log = reopened(disk, clean=True, recovery_point=BATCHES, **COMPACT)
    assert refused(log) == list(range(bases[3], bases[4]))
    assert "does not hold what it should" in caplog.text


def test_a_log_of_few_segments_names_what_it_has_lost() -> None:
    files, bases = written()
    reopened(files, **COMPACT).trimmer.truncate_to(bases[2] + 1)
    disk = lose(files, bases[1])
    assert [f.text for f in check_partition(disk, FOLDER).findings if ".log" in f.path] == [
        f"offsets {bases[1]} to {bases[2] - 1} are missing behind it"
    ]


def test_the_tools_judge_alike() -> None:
    files, bases = written()
    assert check_partition(files, FOLDER).findings == []
    [finding] = [one for one in check_partition(lose(files, bases[2]), FOLDER).findings if ".log" in one.path]
    assert finding.text == f"offsets {bases[2]} to {bases[3] - 1} are missing behind it"
    assert finding.remedy is Remedy.NONE

    files.rename(
        f"{FOLDER}/{offset_file(0, DENSE_SUFFIX)}", f"{FOLDER}/{offset_file(bases[3], DENSE_SUFFIX)}"
    )
    assert [f for f in check_partition(lose(files, bases[2]), FOLDER).findings if ".log" in f.path] == []


def test_what_a_cleaner_replaces_while_it_is_checked_is_not_taken_for_damaged() -> None:
    files, bases = written()
    path = f"{FOLDER}/{offset_file(bases[1], '.log')}"
    data = files.read_file(path)

    def compact(_: int) -> None:
        end, _header = list(iter_batches(data))[1]
        files.write_file(path, data[:end], sync=False)

    with pytest.raises(FileNotFoundError, match="compacted meanwhile"):
        check_partition(files, FOLDER, compact, is_in_use=True)
