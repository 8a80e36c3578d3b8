"""Rounds: a broker under load dies as planned, starts again, and in the end everything is counted."""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pykafka_broker.protocol.records.batch import iter_batches
from pykafka_broker.testing.processes import BrokerError, PykafkaBroker
from tests.torture.clients import TOPIC, Load, create_ledger, read_at_the_end
from tests.torture.files import Plan
from tests.torture.history import History, anomalies

PARTITIONS = 3
#: Segments roll, indexes get entries and snapshots are written within a round.
TOPIC_CONFIG: dict[str, Any] = {"internal_segment_bytes": "100000", "index_interval_bytes": "1000"}
BROKER_CONFIG = {
    "offsets.topic.num.partitions": "1",
    "log.flush.offset.checkpoint.interval.ms": "500",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "300",
    "metadata.log.max.record.bytes.between.snapshots": "4000",
    "file.delete.delay.ms": "100",
    "log.segment.delete.delay.ms": "100",
}
#: A round ends after so many acknowledgements if nothing has ended it before.
ROUND = 1_500


class TorturedBroker(PykafkaBroker):
    """`pykafka-broker start` with a plan."""

    def __init__(self, folder: Path, properties: dict[str, str] | None = None) -> None:
        super().__init__({**BROKER_CONFIG, **(properties or {})}, folder)
        self.plan = Plan()

    def command(self) -> list[str]:
        python, _, _, *arguments = super().command()
        plan = json.dumps(self.plan.to_dict())
        return [python, "-m", "tests.torture.launcher", plan, *arguments]

    def has_died(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def run(self, plan: Plan) -> bool:
        """Start with a plan; False if the process died before it served."""
        self.plan = plan
        try:
            self.start()
        except BrokerError:
            if plan.crash is None:
                raise
            return False
        return True


def note_unsafe_reads(history: History, data_dir: Path) -> None:
    """Compare what consumers have seen with what is on the disk after a power cut."""
    time.sleep(0.2)  # what had arrived before it is taken by the consumer
    seen = list(history.polls["reader"])
    for partition in range(history.partitions):
        logs = sorted((data_dir / f"{TOPIC}-{partition}").glob("*.log"))
        headers = [header for log in logs for _, header in iter_batches(log.read_bytes())]
        end = headers[-1].next_offset if headers else 0
        history.unsafe_reads += [
            place for place, _ in seen if place.partition == partition and place.offset >= end
        ]


class Result(NamedTuple):
    """What came of the rounds."""

    history: History
    anomalies: dict[str, list[str]]
    kills: int
    #: Crash points at which a process really died.
    died_at: tuple[str, ...]
    #: Longest time from a start to the first answer.
    slowest_start_s: float

    def __str__(self) -> str:
        records = sum(len(records) for records in self.history.final.values())
        reads = sum(len(reads) for reads in self.history.polls.values())
        return (
            f"{self.kills} kills ({len(self.died_at)} at named crash points), "
            f"{self.history.acknowledged_count} acknowledged, {records} in the log, {reads} polled, "
            f"{len(self.history.commits)} commits, slowest start {self.slowest_start_s:.2f} s"
        )


def torture(
    folder: Path,
    plans: Sequence[Plan],
    *,
    properties: dict[str, str] | None = None,
    seed: int = 1,
    last: Plan | None = None,
    chores: bool = True,
    records_a_round: int = ROUND,
    silence_s: float = 60,
) -> Result:
    """Run one process after another under load, each as planned: those without a crash are killed at random.

    A process whose crash point does not come is stopped in order, which may be where it comes.
    """
    dice = random.Random(seed)
    broker = TorturedBroker(folder, properties)
    mutant = plans[0].mutant
    volatile = plans[0].volatile
    calm = last or Plan(volatile=volatile, mutant=mutant)
    kills = 0
    died_at: list[str] = []
    slowest = 0.0
    try:
        broker.run(calm)
        create_ledger(broker.address, PARTITIONS, **TOPIC_CONFIG)
        broker.stop()
        with Load(broker.address, PARTITIONS, chores=chores) as load:
            left, tried_again = list(plans), set[str]()
            while left:
                plan = left.pop(0)
                began = time.monotonic()
                if broker.run(plan):
                    slowest = max(slowest, time.monotonic() - began)
                    load.wait_for(
                        dice.randrange(records_a_round // 4, records_a_round), until=broker.has_died
                    )
                if plan.crash is None:
                    # Anywhere in a sync that takes a while, not only where the last one has just ended.
                    time.sleep(dice.uniform(0, max(plan.delays.values(), default=0) / 1000))
                    broker.kill()
                    kills += 1
                    if volatile:
                        note_unsafe_reads(load.history, broker.data_dir)
                    continue
                if not broker.has_died() and broker.process is not None:
                    broker.process.terminate()
                    broker.process.wait(broker.stop_timeout_s)
                if broker.process is None or broker.process.returncode == -signal.SIGKILL:
                    kills += 1
                    died_at.append(f"{plan.crash.when} {plan.crash.point}")
                elif plan.crash.point not in tried_again:
                    tried_again.add(plan.crash.point)
                    # The next start follows a clean stop, which may be what it takes.
                    left.insert(0, replace(plan, crash=replace(plan.crash, occurrence=1)))
                broker.process = None
            broker.run(calm)
            load.wait_for(records_a_round // 4)
        # A clean stop and another start: the end is read through indexes and checkpoints as well.
        broker.stop()
        broker.run(calm)
        read_at_the_end(broker.address, load.history, silence_s)
        broker.stop()
    finally:
        broker.kill()
    return Result(load.history, anomalies(load.history), kills, tuple(died_at), slowest)


def crash_points(folder: Path) -> dict[str, int]:
    """The names of all operations in a life of a broker under load, and how often each came."""
    record = folder / "points.txt"
    broker = TorturedBroker(folder / "recorded")
    plan = Plan(record=str(record))
    try:
        broker.run(plan)
        create_ledger(broker.address, PARTITIONS, **TOPIC_CONFIG)
        with Load(broker.address, PARTITIONS) as load:
            load.wait_for(ROUND * 3)
            broker.kill()
            broker.run(plan)
            load.wait_for(ROUND)
        broker.stop()
        broker.run(plan)
        broker.stop()
    finally:
        broker.kill()
    counts: dict[str, int] = {}
    for point in record.read_text().splitlines():
        counts[point] = counts.get(point, 0) + 1
    return counts


def tell(capsys: pytest.CaptureFixture[str], *lines: object) -> None:
    """Print the outcome of a test even if pytest captures output; a pytest-xdist worker has no stdout."""
    with capsys.disabled():
        print("", *lines, sep="\n", file=sys.stderr)


def random_kills(count: int, **plan: object) -> Iterable[Plan]:
    return [Plan(**plan) for _ in range(count)]  # type: ignore[arg-type]
