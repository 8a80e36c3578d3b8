"""Every state a power cut may leave of the life of a compacted log, in `replicated` mode.

Records are appended, segments rolled and cleaned; before each disk operation dice decide what of all that was
not synced the disk has kept. Compaction leaves gaps, and a lost segment leaves one too. What must hold:

* what is served is what was written, at its offset;
* up to the first refusal, or the end, the newest record of every key is that of the log as it was written up
  to there: nothing that a key's state needs is missing in silence;
* nothing that was synced is refused, so no gap that compaction has left is taken for a loss.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from pykafka_broker.log.cleaner.cleaner import CleanerSettings
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.names import DENSE_SUFFIX
from pykafka_broker.log.manager.settings import LogSettings
from pykafka_broker.log.partition.density import Density
from pykafka_broker.log.partition.folder import LogFolder
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import NOW, TOPIC_ID, confirmed, end_transaction, served
from tests.log.manager.test_log_manager import Broker
from tests.log.manager.test_log_moves import begin, copy, finish
from tests.log.recovery.test_crash_states import Recorder

pytestmark = pytest.mark.acknowledged

ROUNDS = 4
BATCHES_A_ROUND = 12
KEYS = 5
POLICY = frozenset({"compact"})
COMPACT: dict[str, Any] = {
    "segment_bytes": 1000,
    "min_cleanable_dirty_ratio": 0.0,
    "delete_retention_ms": 1000,
}

Found = dict[int, tuple[bytes | None, bytes | None]]


class Life(NamedTuple):
    """What a test changes of the life of the log, round by round."""

    policies: tuple[frozenset[str], ...] = (POLICY,) * ROUNDS
    #: Before this round the partition moves to another log directory.
    moves_before: int = -1


class State(NamedTuple):
    """The disk after a power cut, what was synced by then, and what had been written."""

    moment: str
    disk: MemoryFiles
    synced_end: int
    written: Found
    config: LogConfig


def config_of(policy: frozenset[str]) -> LogConfig:
    return LogConfig(cleanup_policy=policy, **COMPACT)


async def a_broker(files: MemoryFiles, config: LogConfig) -> Broker:
    settings = LogSettings(cleaner=CleanerSettings(backoff_ms=1000))
    broker = Broker(files, "/data", "/b", config_for=lambda topic: config, settings=settings)
    await broker.start()
    return broker


class Moments(Recorder):
    """Tells of each moment before a change of the disk."""

    def __init__(self, seed: int, on_moment: Callable[[str], None]) -> None:
        super().__init__(seed, states_each=0)
        self._on_moment = on_moment

    def keep_states(self, moment: str) -> None:
        self._on_moment(moment)


class Compacted:
    """A compacted log on a disk that keeps the states it may be in before each of its changes: after a cut
    of the power, or if only the process is `killed`.
    """

    def __init__(self, seed: int, states_each: int, *, killed: bool = False) -> None:
        self.files = Moments(seed, self._keep_states)
        self._states_each = states_each
        self._dice = random.Random(seed)
        self._killed = killed
        self.states: list[State] = []
        self.written: Found = {}
        self.synced_end = 0
        self.config = config_of(POLICY)
        self.cleaned_bytes = 0

    def _keep_states(self, moment: str) -> None:
        for _ in range(self._states_each):
            disk = self.files.killed() if self._killed else self.files.power_cut(self._dice)
            self.states.append(State(moment, disk, self.synced_end, dict(self.written), self.config))

    async def live(self, life: Life) -> None:
        """Each round appends, with now and then a moment for the work in the background, then cleans."""
        self.config = config_of(life.policies[0])
        broker = await a_broker(self.files, self.config)
        self.files.is_recording = True
        first = broker.manager.dirs.of_partitions[0].directory_id
        log = broker.manager.create("orders", 0, TOPIC_ID, self.config, first)
        for number, policy in enumerate(life.policies):
            if number == life.moves_before:
                log = await self._move(broker, log)
            if policy != log.state.config.cleanup_policy:
                await self._change(broker, log, policy)
            for batch in range(BATCHES_A_ROUND):
                self._append(log, number * BATCHES_A_ROUND + batch)
                if batch % 5 == 4:
                    await self._pause(log)
            if number % 3 == 1:
                await broker.manager.writes.checkpoint_recovery_points()
                await broker.manager.writes.checkpoint_high_watermarks()
            size = log.state.size_bytes
            await broker.pass_time(2)
            while broker.manager.cleaner.is_at_work:
                await self._pause(log)
            await self._pause(log)
            self.cleaned_bytes += size - log.state.size_bytes
        self.files.is_recording = False

    async def _change(self, broker: Broker, log: PartitionLog, policy: frozenset[str]) -> None:
        """Another policy. A log that becomes compacted gets its note at the cleaner's next look."""
        self.config = config_of(policy)
        log.state.reconfigure(self.config)
        await broker.pass_time(2)
        await self._pause(log)
        log.flusher.flush()
        await self._pause(log)

    async def _move(self, broker: Broker, log: PartitionLog) -> PartitionLog:
        """The copy has the gaps of the log; it gets its note when it has taken its place."""
        move = await begin(broker.manager, "/b")
        while move.lag:
            await copy(move, steps=1)
        moved = await finish(broker.manager, move)
        assert moved.density.dense_from is None
        await broker.pass_time(2)
        await self._pause(moved)
        moved.flusher.flush()
        return moved

    async def _pause(self, log: PartitionLog) -> None:
        for _ in range(4):
            await asyncio.sleep(0)
            self.synced_end = max(self.synced_end, log.state.recovery_point)

    def _append(self, log: PartitionLog, number: int) -> None:
        """A batch of three records; or one of a transaction, which is then committed."""
        keys = [b"%d" % ((number + n * n) % KEYS) for n in range(3)]
        values = [None if (number + n) % 11 == 10 else b"%d" % (number + n) + bytes(60) for n in range(3)]
        offset = log.state.log_end_offset
        self.written |= {offset + n: pair for n, pair in enumerate(zip(keys, values, strict=True))}
        header: dict[str, Any] = {}
        guard = 0
        if number % 6 == 5:
            header = {"producer_id": 7, "producer_epoch": 0, "base_sequence": number // 6 * 3}
            header["transactional"] = True
            guard = confirmed(log, header)
        data = build_batch(
            [(NOW, k, v, ()) for k, v in zip(keys, values, strict=True)], BatchFields(**header)
        )
        log.writer.append(bytearray(data), leader_epoch=number // 30, now_ms=NOW, guard=guard)
        if header:
            end_transaction(log, 7, commit=True, epoch=number // 30)
        log.state.advance_high_watermark(log.state.log_end_offset)


def newest(records: Found, end_offset: int) -> dict[bytes | None, bytes]:
    """What a reader of all records below an offset knows in the end."""
    table = {key: value for offset, (key, value) in sorted(records.items()) if offset < end_offset}
    return {key: value for key, value in table.items() if value is not None}


async def check(state: State) -> bool:
    """Open the log and see that it keeps what is promised; whether anything is refused."""
    broker = await a_broker(state.disk, state.config)
    log = broker.manager.get("orders", 0)
    if log is None:
        assert state.synced_end == 0
        return False
    records, refused = served(log)
    found = {offset: (record.key, record.value) for offset, record in records.items()}
    assert found.items() <= state.written.items()
    assert log.state.log_end_offset >= state.synced_end
    assert min(refused, default=state.synced_end) >= state.synced_end
    first_refused = min(refused, default=log.state.log_end_offset)
    assert newest(found, first_refused) == newest(state.written, first_refused)
    end = log.state.log_end_offset
    data = build_batch([(NOW, b"k", b"goes on", ())])
    assert log.writer.append(bytearray(data), leader_epoch=9, now_ms=NOW).first_offset == end
    return bool(refused)


async def check_all(compacted: Compacted) -> int:
    """In how many states something was refused."""
    refused = 0
    for state in compacted.states:
        try:
            refused += await check(state)
        except BaseException as error:
            error.add_note(f"power cut before {state.moment}")
            raise
    return refused


LIVES = {
    "compact": Life(),
    "compact,delete": Life((frozenset({"compact", "delete"}),) * ROUNDS),
    "compact, delete, and back": Life(
        (POLICY, frozenset({"delete"}), POLICY, POLICY),
    ),
    "moved": Life(moves_before=2),
    "delete, compact": Life((frozenset({"delete"}), *(POLICY,) * (ROUNDS - 1))),
}


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
async def test_what_a_key_needs_is_there_or_its_loss_is_named(life: Life) -> None:
    compacted = Compacted(seed=1, states_each=1)
    await compacted.live(life)
    assert compacted.cleaned_bytes > 2000
    refused = await check_all(compacted)
    assert len(compacted.states) > 300
    assert refused > 10, "segments are lost from the middle of the log in some states"


async def test_nothing_is_refused_after_a_kill() -> None:
    compacted = Compacted(seed=1, states_each=1, killed=True)
    await compacted.live(Life(moves_before=2))
    assert await check_all(compacted) == 0


# --- planted bugs ---------------------------------------------------------------------------------


def no_note(state: State) -> State:
    """The folder as it is without notes of gaps."""
    for path in [path for path in state.disk.inodes if path.endswith(DENSE_SUFFIX)]:
        state.disk.remove(path)
    return state


async def test_without_the_note_a_lost_segment_goes_unnoticed() -> None:
    compacted = Compacted(seed=1, states_each=1)
    await compacted.live(Life())
    compacted.states = [no_note(state) for state in compacted.states]
    with pytest.raises(AssertionError):
        await check_all(compacted)


def not_raised(density: Density, offset: int) -> None:
    """A note that stays what it was when the log was made."""


def raised_and_not_synced(density: Density, offset: int) -> None:
    with pytest.MonkeyPatch.context() as unsynced:
        unsynced.setattr(LogFolder, "sync", lambda folder: None)
        ALLOW_GAPS_BELOW(density, offset)


ALLOW_GAPS_BELOW = Density.allow_gaps_below


@pytest.mark.parametrize("bug", [not_raised, raised_and_not_synced])
async def test_a_note_that_is_not_raised_in_time_is_caught(
    bug: Callable[[Density, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Density, "allow_gaps_below", bug)
    compacted = Compacted(seed=1, states_each=1)
    await compacted.live(Life())
    with pytest.raises(AssertionError):
        await check_all(compacted)
