"""kill -9 while idempotent producers write and their partitions move from one log directory to the other and
back, all the time.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import threading
import time
from pathlib import Path

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from pykafka_broker.testing import User
from tests.torture.clients import TOPIC, Load, create_ledger, read_at_the_end
from tests.torture.files import Plan
from tests.torture.harness import PARTITIONS, TOPIC_CONFIG, TorturedBroker, tell
from tests.torture.history import anomalies

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("TORTURE_ROUNDS", "6"))
#: So many times as many rounds are run at most, until enough moves were seen.
PATIENCE = 3
RECORDS_A_ROUND = 1_000
#: Kills that a round sees during moves at least, on the average. The logs grow from round to round, and with
#: them the time of a move: late moves go on over several kills.
RESUMED_A_ROUND = 1
#: A move takes a while, so that a kill finds one under way.
SLOWLY = {"replica.alter.log.dirs.io.max.bytes.per.second": "6000000"}
UNEXPECTED = {ErrorCode.LOG_DIR_NOT_FOUND, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR}


class Mover:
    """An administrator that moves every partition to another directory, again and again, in a thread."""

    def __init__(self, address: str, directories: list[Path], dice: random.Random) -> None:
        self._address = address
        self._directories = [str(directory) for directory in directories]
        self._dice = dice
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._move()))
        self.unexpected: list[ErrorCode] = []

    def __enter__(self) -> Mover:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    async def _move(self) -> None:
        while not self._stop.is_set():
            try:
                async with await User.connect(self._address) as client:
                    while not self._stop.is_set():
                        await self._ask(client)
                        await asyncio.sleep(self._dice.uniform(0.01, 0.2))
            except (OSError, EOFError):
                await asyncio.sleep(0.05)

    async def _ask(self, client: User) -> None:
        partition, path = self._dice.randrange(PARTITIONS), self._dice.choice(self._directories)
        topics = [AlterReplicaLogDirTopic(name=TOPIC, partitions=[partition])]
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])
        answer = await client.send(request, 2)
        error = ErrorCode(answer.results[0].partitions[0].error_code)
        if error in UNEXPECTED:
            self.unexpected.append(error)


def wait_for_a_move(directories: list[Path]) -> None:
    """Until a copy is being filled; at most for as long as several moves take."""
    deadline = time.monotonic() + 20
    while not any(any(directory.glob("*-future")) for directory in directories):
        if time.monotonic() > deadline:
            return
        time.sleep(0.001)


def moves_of(said: str) -> tuple[int, int]:
    """How many moves a broker has begun, and how many it went on with after a kill, by what it said."""
    return len(re.findall(rf"{TOPIC}-\d is moved from", said)), len(re.findall("Going on to move", said))


def seen_enough(broker: TorturedBroker) -> bool:
    moves, resumed = moves_of(broker.log_file.read_text())
    return moves > PARTITIONS and resumed >= RESUMED_A_ROUND * ROUNDS


@pytest.mark.timeout(600 + 60 * ROUNDS)
def test_kills_during_moves_cost_nothing_that_was_acknowledged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(1)
    directories = [tmp_path / "a", tmp_path / "b"]
    broker = TorturedBroker(tmp_path, SLOWLY)
    broker.data_dir = Path(",".join(str(directory) for directory in directories))
    try:
        broker.run(Plan())
        create_ledger(broker.address, PARTITIONS, **TOPIC_CONFIG)
        with Load(broker.address, PARTITIONS) as load:
            with Mover(broker.address, directories, dice) as mover:
                for number in range(PATIENCE * ROUNDS):
                    if number >= ROUNDS and seen_enough(broker):
                        break
                    load.wait_for(dice.randrange(RECORDS_A_ROUND // 2, RECORDS_A_ROUND))
                    wait_for_a_move(directories)
                    broker.kill()
                    time.sleep(dice.uniform(0, 0.1))
                    broker.run(Plan())
                load.wait_for(RECORDS_A_ROUND)
            load.wait_for(100)
        broker.stop()
        broker.run(Plan())
        read_at_the_end(broker.address, load.history)
        broker.stop()
    finally:
        broker.kill()
    said = broker.log_file.read_text()
    moves, resumed = moves_of(said)
    told = f"{number} kills, {moves} moves, {resumed} of them over a kill"
    tell(capsys, f"{told}, {load.acknowledged} acknowledged")
    assert anomalies(load.history) == {}
    assert mover.unexpected == []
    assert seen_enough(broker), told
    assert "Traceback" not in said
    folders = [path.name for directory in directories for path in directory.glob(f"{TOPIC}-?")]
    assert sorted(folders) == [f"{TOPIC}-{partition}" for partition in range(PARTITIONS)]
