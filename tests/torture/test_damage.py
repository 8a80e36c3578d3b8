"""Bits flipped and files cut, in every kind of file a broker keeps: it starts or refuses in a clear line, and
never serves a wrong byte.

One broker lives and stops in order, or is killed; each variant damages one file of what it left. What can be
made again from the logs must not cost a record. Where a file has no checksum and nothing else says the same
(`meta.properties`, `partition.metadata`, the log start offsets), a changed digit is believed: then records
may be hidden or set aside, never changed. Damage of a log costs the batches it touches. That the checks can
fail is shown by planted bugs.
"""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from pykafka_broker.log.disk.checkpoints import EpochEntry, MalformedFile, decode_epochs, decode_offsets
from pykafka_broker.log.disk.directories import LogDirError
from pykafka_broker.log.partition import producer_snapshots as producer_files
from pykafka_broker.log.partition import producers
from pykafka_broker.log.partition.producers import ProducerState
from pykafka_broker.log.partition.stored_checks import StoredChecks
from pykafka_broker.log.recovery import found_log
from pykafka_broker.log.recovery import offset_checkpoints as offset_files
from pykafka_broker.log.segment.batch_scan import BatchScan
from pykafka_broker.log.segment.damage import Damage as Damaged
from pykafka_broker.log.segment.index import OffsetIndex
from pykafka_broker.log.segment.index_pair import IndexPair
from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.records.batch import BatchHeader, Record, iter_batches, read_records
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.raft.format import StorageFormatError
from pykafka_broker.testing.clock import NOW
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.memory_files import MemoryFiles
from pykafka_broker.testing.user import EARLIEST, User
from tests.torture.files import kind
from tests.torture.harness import tell

pytestmark = pytest.mark.slow

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
    #: The idempotent producer that wrote it.
    identity: dict[str, int]


class Damage(NamedTuple):
    """What was done to a copy of the files."""

    files: MemoryFiles
    what: str
    #: The offsets of the batches that a damaged log has lost; None if that cannot be told.
    spoiled: frozenset[int] | None


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
                await user.produce(topic, *values(number), **details(number), **identity)
        for number in range(20):
            await user.alter_topic("orders", retention_ms=str(10**12 + number))
        await user.commit("readers", "orders", 7)
        written = {topic: rows(await user.records(topic)) for topic in TOPICS}
        await delete_records(user, "trimmed", 20)
        await home.pass_time(70_000)
        killed = home.files.killed()
    files = home.files if stopped else killed
    return Left(files, written, {"orders": 0, "trimmed": 20}, 7, identity)


def values(number: int) -> list[bytes]:
    """The values of a batch."""
    return [b"%d.%d" % (number, part) + bytes(40) for part in range(3)]


def details(number: int) -> dict[str, int]:
    """Its sequence number and timestamp."""
    return {"base_sequence": 3 * number, "timestamp": NOW + 1000 * number}


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


def offsets_in(data: bytearray, start: int, end: int) -> frozenset[int]:
    """The offsets of the batches that lie between two positions, or touch them."""
    return frozenset(
        offset
        for position, header in iter_batches(bytes(data))
        if position < end and position + header.size_in_bytes > start
        for offset in range(header.base_offset, header.next_offset)
    )


def damaged(left: Left, path: str, dice: random.Random, flips: bool) -> Damage:
    files = left.files.killed()
    files.now_ms = left.files.now_ms
    data = files.inodes[path].data
    is_log = kind(path) == ".log"
    spoiled = frozenset[int]() if kind(path) in REBUILT else None
    if flips:
        position, bit = dice.randrange(len(data)), dice.randrange(8)
        spoiled = offsets_in(data, position, position + 1) if is_log else spoiled
        data[position] ^= 1 << bit
        return Damage(files, f"bit {bit} of byte {position} of {len(data)} in {path}", spoiled)
    size = dice.randrange(len(data))
    what = f"{path} cut to {size} of {len(data)} bytes"
    spoiled = offsets_in(data, size, len(data)) if is_log else spoiled
    del data[size:]
    return Damage(files, what, spoiled)


async def check(left: Left, path: str, damage: Damage) -> str:
    """What came of a start: it is refused, everything is served, or some of it."""
    home = Home(SETTINGS, files=damage.files)
    try:
        broker = home.new_broker()
        await broker.start()
    except (LogDirError, StorageFormatError) as refusal:
        assert str(refusal)
        assert "\n" not in str(refusal)
        assert damage.spoiled is None, refusal
        return "refused"
    user = await User.connect(broker.bootstrap_servers)
    try:
        outcome = "all served"
        for topic, written in left.written.items():
            found, corrupt = await served(user, topic, max(written) + 1)
            assert found.items() <= written.items(), "a wrong byte"
            expected = {offset: row for offset, row in written.items() if offset >= left.log_starts[topic]}
            if not expected.items() <= found.items():
                gone = expected.keys() - found.keys()
                spoiled = damage.spoiled if f"/{topic}-0/" in path or damage.spoiled is None else ()
                assert spoiled is None or gone <= set(spoiled), f"{topic}: {sorted(gone)} are gone"
                outcome = "some fenced" if corrupt else "some gone"
        if kind(path) in REBUILT:
            assert await user.committed("readers") == {("orders", 0): left.committed}
            for number in (9, 11):
                again = await user.produce("orders", *values(number), **details(number), **left.identity)
                assert again == 3 * number, "a retry was not recognised"
            assert await user.produce("orders", b"goes on") == 36
            for number in range(12):
                assert await user.offset_for("orders", NOW + 1000 * number) == 3 * number
        if damage.spoiled is not None:
            offset = await user.produce("orders", b"goes on again")
            assert (await user.records("orders", offset=offset))[0].value == b"goes on again"
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
            damage = damaged(left, path, dice, flips=number % 2 == 0)
            try:
                outcomes[name][await check(left, path, damage)] += 1
            except BaseException as error:
                error.add_note(damage.what)
                raise
    tell(
        capsys,
        *(
            f"  {name}: {', '.join(f'{count} {what}' for what, count in sorted(counts.items()))}"
            for name, counts in sorted(outcomes.items())
        ),
    )


# --- planted bugs ---------------------------------------------------------------------------------


class Planted(NamedTuple):
    """A bug, and the kind of file whose damage must show it."""

    plant: Callable[[pytest.MonkeyPatch], None]
    kind: str
    stopped: bool = True


def believe_any_offset_index(patch: pytest.MonkeyPatch) -> None:
    def from_bytes(cls: type[OffsetIndex], data: bytes, base_offset: int, log_bytes: int) -> OffsetIndex:
        index = cls(base_offset)
        for at in range(0, len(data) - len(data) % 8, 8):
            index.relative_offsets.append(int.from_bytes(data[at : at + 4], "big", signed=True))
            index.positions.append(int.from_bytes(data[at + 4 : at + 8], "big", signed=True))
        return index

    patch.setattr(OffsetIndex, "from_bytes", classmethod(from_bytes))
    patch.setattr(Segment, "locate_cached", lambda self, offset: None)
    patch.setattr(StoredChecks, "check_segment", lambda self, segment, next_base_offset: False)


def believe_any_time_index(patch: pytest.MonkeyPatch) -> None:
    """Its last entry says which segments a search passes over, the others where it begins."""
    patch.setattr(IndexPair, "is_newest", lambda self, log, timestamp, offset: True)
    patch.setattr(Segment, "carries", lambda self, timestamp, offset: True)


def stop_at_an_unreadable_producer_snapshot(patch: pytest.MonkeyPatch) -> None:
    def read(data: bytes) -> list[ProducerState]:
        try:
            return producers.read_snapshot(data)
        except producers.CorruptSnapshotError as error:
            raise StorageFormatError(str(error)) from error

    patch.setattr(producer_files, "read_snapshot", read)


def forget_all_but_the_last_batch_of_a_producer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(producer_files, "restore_windows", lambda states, data: True)


def refuse_a_start_over_a_garbled_checkpoint(patch: pytest.MonkeyPatch) -> None:
    def read(data: bytes) -> dict[PartitionKey, int]:
        try:
            return decode_offsets(data)
        except MalformedFile as error:
            raise LogDirError(str(error)) from error

    patch.setattr(offset_files, "decode_offsets", read)


def cut_a_log_where_it_is_damaged(patch: pytest.MonkeyPatch) -> None:
    """As Apache Kafka does: what follows the damage goes too."""
    good_batches, tail_damage = BatchScan.__iter__, BatchScan.tail_damage

    def up_to_the_damage(self: BatchScan) -> Iterator[tuple[int, BatchHeader]]:
        for batch in good_batches(self):
            if self.damages:
                self.damages.clear()
                return
            yield batch

    def all_of_it(self: BatchScan, next_base_offset: int) -> Damaged:
        return tail_damage(self, next_base_offset)._replace(position=0, first_offset=0)

    patch.setattr(BatchScan, "__iter__", up_to_the_damage)
    patch.setattr(BatchScan, "tail_damage", all_of_it)


def stop_at_unreadable_leader_epochs(patch: pytest.MonkeyPatch) -> None:
    def read(data: bytes) -> list[EpochEntry]:
        try:
            return decode_epochs(data)
        except MalformedFile as error:
            raise StorageFormatError(str(error)) from error

    patch.setattr(found_log, "decode_epochs", read)


PLANTED = {
    bug.plant.__name__: bug
    for bug in (
        Planted(believe_any_offset_index, ".index"),
        Planted(believe_any_time_index, ".timeindex"),
        Planted(stop_at_an_unreadable_producer_snapshot, ".snapshot"),
        Planted(forget_all_but_the_last_batch_of_a_producer, ".window"),
        Planted(refuse_a_start_over_a_garbled_checkpoint, "recovery-point-offset-checkpoint"),
        Planted(cut_a_log_where_it_is_damaged, ".log", stopped=False),
        Planted(stop_at_unreadable_leader_epochs, "leader-epoch-checkpoint"),
    )
}


@pytest.mark.parametrize("name", PLANTED)
async def test_a_planted_bug_is_caught_by_damage(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = PLANTED[name]
    left = await lived(stopped=bug.stopped)
    paths = sorted(path for path, inode in left.files.inodes.items() if inode.data and kind(path) == bug.kind)
    bug.plant(monkeypatch)
    dice = random.Random(7)
    found = []
    for number in range(40):
        path = dice.choice(paths)
        try:
            await check(left, path, damaged(left, path, dice, flips=number % 2 == 0))
        except Exception as error:
            found.append(error)
            break
    assert found, "40 damaged files, and nothing was noticed"
