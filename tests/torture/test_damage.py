"""Bits flipped and files cut, in every kind of file a broker keeps: it starts or refuses in a clear line, and
never serves a wrong byte.

One broker lives and stops in order, or is killed; each variant damages one file of what it left. What can be
made again from the logs must not cost a record. Where a file has no checksum and nothing else says the same
(`meta.properties`, `partition.metadata`, the log start offsets), a changed digit is believed: then records
may be hidden or set aside, never changed. CI takes a sample; `make torture` a larger one.
"""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from typing import NamedTuple

import pytest

from pykafka_broker.log.directories import LogDirError
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.records.batch import Record, iter_batches, read_records
from pykafka_broker.raft.format import StorageFormatError
from tests.support.broker import EARLIEST, Home, User
from tests.support.memory_files import MemoryFiles
from tests.torture.files import kind

#: Variants of each kind of file: half of them flips, half of them cuts.
VARIANTS = int(os.environ.get("TORTURE_ROUNDS", "20"))
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "metadata.log.max.record.bytes.between.snapshots": "1500",
}
TOPICS = ("orders", "trimmed")
#: Kinds whose loss costs nothing: the logs say it all.
REBUILT = (
    ".index",
    ".timeindex",
    ".snapshot",
    ".window",
    "leader-epoch-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    ".kafka_cleanshutdown",
    "metadata .index",
    "metadata .timeindex",
    "metadata .snapshot",
    "metadata .window",
    "metadata leader-epoch-checkpoint",
    "metadata partition.metadata",
)
Rows = dict[int, tuple[bytes | None, bytes | None, int]]


class Left(NamedTuple):
    """What a broker left on its disk, and what was in its topics."""

    files: MemoryFiles
    written: dict[str, Rows]
    log_starts: dict[str, int]
    committed: int


def row(record: Record) -> tuple[bytes | None, bytes | None, int]:
    key, value = (None if part is None else bytes(part) for part in (record.key, record.value))
    return key, value, record.timestamp


def rows(records: list[Record]) -> Rows:
    return {record.offset: row(record) for record in records}


async def lived(*, stopped: bool) -> Left:
    """A life with everything that makes files."""
    home = Home(SETTINGS)
    async with home.running() as user:
        identity = {"producer_id": await user.new_producer_id(), "producer_epoch": 0}
        for topic in TOPICS:
            await user.create_topic(topic, internal_segment_bytes="1200", index_interval_bytes="100")
            for number in range(12):
                values = [b"%d.%d" % (number, part) + bytes(40) for part in range(3)]
                await user.produce(topic, *values, base_sequence=3 * number, **identity)
        for number in range(20):
            await user.alter_topic("orders", retention_ms=str(10**12 + number))
        await user.commit("readers", "orders", 7)
        written = {topic: rows(await user.records(topic)) for topic in TOPICS}
        await delete_records(user, "trimmed", 20)
        await home.pass_time(70_000)
        killed = home.files.killed()
    return Left(home.files if stopped else killed, written, {"orders": 0, "trimmed": 20}, 7)


async def delete_records(user: User, topic: str, offset: int) -> None:
    from pykafka_broker.protocol.messages import delete_records as deletion

    partition = deletion.DeleteRecordsPartition(partition_index=0, offset=offset)
    asked = deletion.DeleteRecordsTopic(name=topic, partitions=[partition])
    answer = await user.send(deletion.DeleteRecordsRequest(topics=[asked], timeout_ms=1000), 2)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE


async def served(user: User, topic: str, end: int) -> tuple[Rows, int]:
    """Every record that can be read, and how many offsets answered CORRUPT_MESSAGE."""
    found: Rows = {}
    corrupt = 0
    if topic not in await user.topics():
        return found, corrupt
    start = offset = await user.offset_for(topic, EARLIEST)
    while offset < end:
        answer = await user.fetch(topic, offset)
        code = ErrorCode(answer.error_code)
        data = bytes(answer.records or b"")
        if code is ErrorCode.CORRUPT_MESSAGE:
            corrupt += 1
            offset += 1
        elif code is not ErrorCode.NONE or not data:
            assert code in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE), code
            break
        else:
            batches = list(iter_batches(data))
            assert batches, f"half a batch for offset {offset}"
            for position, header in batches:
                for record in read_records(data[position : position + header.size_in_bytes]):
                    if record.offset >= start:
                        found[record.offset] = row(record)
                offset = max(offset, header.next_offset)
    return found, corrupt


def damaged(left: Left, path: str, dice: random.Random, flips: bool) -> tuple[MemoryFiles, str]:
    files = left.files.killed()
    files.now_ms = left.files.now_ms
    data = files.inodes[path].data
    if flips:
        position, bit = dice.randrange(len(data)), dice.randrange(8)
        data[position] ^= 1 << bit
        return files, f"bit {bit} of byte {position} of {len(data)} in {path}"
    size = dice.randrange(len(data))
    what = f"{path} cut to {size} of {len(data)} bytes"
    del data[size:]
    return files, what


async def check(left: Left, path: str, files: MemoryFiles) -> str:
    """What came of a start: it is refused, everything is served, or some of it."""
    home = Home(SETTINGS, files=files)
    try:
        broker = home.new_broker()
        await broker.start()
    except (LogDirError, StorageFormatError) as refusal:
        assert str(refusal)
        assert "\n" not in str(refusal)
        assert kind(path) not in REBUILT, refusal
        return "refused"
    user = await User.connect(broker.bootstrap_servers)
    try:
        outcome = "all served"
        for topic, written in left.written.items():
            found, corrupt = await served(user, topic, max(written) + 1)
            assert found.items() <= written.items(), "a wrong byte"
            expected = {offset: row for offset, row in written.items() if offset >= left.log_starts[topic]}
            if not expected.items() <= found.items():
                assert kind(path) not in REBUILT, (
                    f"{topic}: {sorted(expected.keys() - found.keys())} are gone"
                )
                outcome = "some fenced" if corrupt else "some gone"
        if kind(path) in REBUILT:
            assert await user.committed("readers") == {("orders", 0): left.committed}
            assert await user.produce("orders", b"goes on") == 36
        return outcome
    finally:
        await user.close()
        await broker.stop()


@pytest.mark.timeout(60 + 10 * VARIANTS)
@pytest.mark.parametrize("stopped", [True, False], ids=["after a clean stop", "after a kill"])
async def test_no_damage_of_any_file_makes_a_broker_serve_a_wrong_byte(
    stopped: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    left = await lived(stopped=stopped)
    kinds = defaultdict(list)
    for path, inode in sorted(left.files.inodes.items()):
        if inode.data and kind(path) != ".lock":
            kinds[kind(path)].append(path)
    assert {
        ".log",
        ".index",
        ".timeindex",
        ".snapshot",
        "meta.properties",
        "metadata quorum-state",
    } <= kinds.keys()
    dice = random.Random(7)
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for name, paths in kinds.items():
        for number in range(VARIANTS):
            path = dice.choice(paths)
            files, what = damaged(left, path, dice, flips=number % 2 == 0)
            try:
                outcomes[name][await check(left, path, files)] += 1
            except BaseException as error:
                error.add_note(what)
                raise
    with capsys.disabled():
        print()
        for name, counts in sorted(outcomes.items()):
            print(f"  {name}: {', '.join(f'{count} {what}' for what, count in sorted(counts.items()))}")
