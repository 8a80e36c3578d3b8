"""Where compaction was at work offsets jump, whatever the policy is now; where it was not, missing ones are
damage.
"""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.log.check.findings import Remedy
from pykafka_broker.log.check.mend import mend
from pykafka_broker.log.check.partition_check import check_partition
from pykafka_broker.log.check.scrubber import job_for, scrub
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import AppendOrigin
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import iter_batches
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import FOLDER, append, batch, new_log, records, reopened

SETTINGS: dict[str, Any] = {"segment_bytes": 400, "index_interval_bytes": 150}
EPOCHS = f"{FOLDER}/leader-epoch-checkpoint"


def cleaned() -> MemoryFiles:
    """What compaction left of a log, its last batch included, as a follower has it."""
    files = MemoryFiles()
    log = new_log(files, **SETTINGS)
    for n in range(30):
        sent = batch(b"%d" % n, base_offset=3 * n + 2, leader_epoch=0)
        log.writer.append(sent, leader_epoch=-1, now_ms=0, origin=AppendOrigin.REPLICATION)
    log.state.advance_high_watermark(log.state.log_end_offset)
    assert log.close()
    return files


def dense(batches: int = 30) -> MemoryFiles:
    files = MemoryFiles()
    log = new_log(files, **SETTINGS)
    for n in range(batches):
        append(log, b"%d" % n)
    assert log.close()
    return files


def path_of(log: PartitionLog, number: int) -> str:
    return log.state.segments[number].path + ".log"


def refused(log: PartitionLog, end: int) -> list[int]:
    found = []
    for offset in range(end):
        try:
            log.reader.plan_read(offset, 1, limit="log_end").read()
        except KafkaError as error:
            assert error.code is ErrorCode.CORRUPT_MESSAGE
            found.append(offset)
    return found


@pytest.mark.parametrize("how", ["clean", "killed", "killed, checkpoint lost"])
def test_a_log_that_was_compacted_is_whole_under_another_policy(how: str) -> None:
    files = cleaned()
    recovery_point = None if "lost" in how else 90
    log = reopened(files, clean=how == "clean", recovery_point=recovery_point, **SETTINGS)

    assert records(log) == [(3 * n + 2, b"%d" % n) for n in range(30)]
    assert refused(log, 90) == []
    job = job_for(log, only_unchecked=False)
    assert job is not None
    assert scrub(files, job, lambda count: None).odd == []
    assert not any(segment.trust.damages for segment in log.state.segments)


def test_a_flipped_offset_shows_where_the_batches_around_it_deny_it() -> None:
    files = cleaned()
    path = path_of(reopened(files.killed(), **SETTINGS), 2)
    [_, (start, header), *_] = iter_batches(files.read_file(path))
    files.inodes[path].data[start + 5] ^= 1
    log = reopened(files, clean=True, recovery_point=90, **SETTINGS)

    hit = header.base_offset
    assert refused(log, 90) == list(range(hit - 2, hit + 3))


def test_the_tools_find_nothing_wrong_with_gaps() -> None:
    files = cleaned()
    assert check_partition(files, FOLDER).findings == []


def test_the_tools_believe_the_log_when_the_leader_epochs_contradict_it() -> None:
    files = dense()
    files.write_file(EPOCHS, files.read_file(EPOCHS).replace(b"0 0\n", b"1 0\n"), sync=False)

    findings = check_partition(files, FOLDER).findings
    assert [(one.path, one.remedy) for one in findings] == [(EPOCHS, Remedy.REMOVE)]
    mend(files, findings)
    assert len(records(reopened(files, **SETTINGS))) == 30


@pytest.mark.parametrize("clean", [True, False])
def test_the_only_batch_of_a_log_is_believed_before_the_leader_epochs(clean: bool) -> None:
    files = dense(1)
    files.write_file(EPOCHS, files.read_file(EPOCHS).replace(b"0 0\n", b"1 0\n"), sync=False)

    assert records(reopened(files, clean=clean, recovery_point=1, **SETTINGS)) == [(0, b"0")]


@pytest.mark.parametrize("clean", [True, False])
def test_a_spoilt_epoch_in_the_only_batch_of_the_last_segment_does_not_make_the_log_read_only(
    clean: bool,
) -> None:
    files = MemoryFiles()
    log = new_log(files, **SETTINGS)
    while len(log.state.segments) < 4:
        append(log, b"x", epoch=3)
    path, last = path_of(log, 3), log.state.log_end_offset - 1
    assert log.close()
    files.inodes[path].data[12] ^= 1

    log = reopened(files, clean=clean, recovery_point=last + 1, **SETTINGS)

    assert log.state.epochs.entries == ((3, 0),)
    assert refused(log, last + 1) == [last]
    assert append(log, b"y", epoch=4).first_offset == last + 1


def test_a_spoilt_epoch_in_the_only_batch_of_a_log_does_not_make_it_read_only() -> None:
    files = dense(1)
    [path] = [path for path in files.inodes if path.endswith(".log")]
    files.inodes[path].data[12] ^= 1

    log = reopened(files, clean=True, recovery_point=1, **SETTINGS)

    assert refused(log, 1) == [0]
    assert append(log, b"y", epoch=1).first_offset == 1


def test_a_reader_is_not_led_past_damage_behind_an_emptied_segment() -> None:
    files = cleaned()
    log = reopened(files.killed(), **SETTINGS)
    emptied, damaged = path_of(log, 2), path_of(log, 3)
    *_, (_, last) = log.state.segments[1].headers(0)
    files.write_file(emptied, b"", sync=False)
    [_, (_, second), *_] = iter_batches(files.read_file(damaged))
    files.inodes[damaged].data[65] ^= 1

    log = reopened(files, clean=True, recovery_point=90, **SETTINGS)
    assert refused(log, 90) == list(range(last.next_offset, second.base_offset))


@pytest.mark.parametrize("what", ["cut", "emptied", "missing"])
def test_what_a_closed_segment_of_a_dense_log_has_lost_is_refused(what: str) -> None:
    files = dense()
    log = reopened(files.killed(), **SETTINGS)
    path, first, following = (
        path_of(log, 3),
        log.state.segments[3].base_offset,
        log.state.segments[4].base_offset,
    )
    data = files.read_file(path)
    if what == "missing":
        files.remove(path)
    else:
        files.write_file(
            path, b"" if what == "emptied" else data[: list(iter_batches(data))[-1][0]], sync=False
        )
    lost = list(range(following - 1 if what == "cut" else first, following))

    [finding] = [one for one in check_partition(files, FOLDER).findings if ".log" in one.path]
    assert finding.text == f"offsets {lost[0]} to {lost[-1]} are missing behind it"

    log = reopened(files, clean=True, recovery_point=30, **SETTINGS)
    assert refused(log, 30) == lost
    known = [one for one in check_partition(files, FOLDER).findings if ".log" in one.path]
    assert [one.remedy for one in known] == [Remedy.FENCED]


def test_missing_offsets_are_no_damage_where_the_cleaner_was() -> None:
    files = dense()
    path = path_of(reopened(files.killed(), **SETTINGS), 3)
    files.write_file(path, b"", sync=False)
    log = reopened(files, clean=True, recovery_point=30, cleaned_offset=20, **SETTINGS)
    assert refused(log, 30) == []
