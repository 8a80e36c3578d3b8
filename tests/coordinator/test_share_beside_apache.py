"""Random requests to the share coordinator, and the same to Apache Kafka 4.3.1's `ShareCoordinatorShard` in a
JVM: every answer, and every record byte for byte. `golden/` holds a few of them for machines without Java.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from pykafka_broker.coordinator.share.core.batches import combined
from pykafka_broker.testing.apache.tools import run_tool
from tests.support.shares import ShareWorld, batches, play

PROGRAM = Path(__file__).with_name("ShareOracle.java")
LIVES, STEPS = 40, 300
COMBINATIONS = 5_000


def asked_of_apache(lines: list[str]) -> list[str]:
    answers = run_tool(str(PROGRAM), stdin="\n".join(lines)).splitlines()
    assert len(answers) == len(lines)
    return answers


def random_batches(dice: Random, most: int) -> str:
    firsts = [dice.randrange(30) for _ in range(dice.randrange(most + 1))]
    said = [
        f"{first},{first + dice.choice([0, 0, 1, 2, 5, 9])},{dice.randrange(1, 4)},{dice.choice([0, 2, 4])}"
        for first in firsts
    ]
    return ";".join(said) or "-"


def random_life(seed: int) -> list[str]:
    """Lines of a transcript, about three topics that come and go."""
    dice = Random(seed)
    lines = [f"F {dice.choice([0, 1, 2, 3, 5, 20])} {dice.choice([50, 500])}", "T 1 2", "T 2 2", "T 3 2"]
    now_ms = 0
    for _ in range(STEPS):
        key = f"{dice.choice(['g', 'group-b'])} {dice.choice('123')} {dice.choice([0, 0, 1, 1, 2, -1])}"
        epoch, second_epoch = (dice.choice([-1, -1, 0, 0, 1, 1, 2, 3, 4]) for _ in range(2))
        offset = dice.choice([-1, -1, dice.randrange(30), dice.randrange(30)])
        now_ms += dice.choice([1, 20, 60, 500, 600])
        written = f"{epoch} {second_epoch} {offset} {dice.choice([-1, 0, 3, 17])} {random_batches(dice, 4)}"
        kinds = {
            f"I {key} {epoch} {offset}": 14,
            f"R {key} {epoch}": 12,
            f"W {key} {written}": 40,
            f"D {key}": 2,
            f"S {key}": 8,
            f"G {dice.choice('123')}": 0.5,
            "K": 4,
            "P": 8,
            f"N {now_ms}": 8,
            f"T {dice.choice('123')} {dice.choice([0, 2, 2, 2])}": 2,
        }
        lines += dice.choices(list(kinds), list(kinds.values()))
    return lines


def in_any_order(answer: str) -> str:
    """Where one event writes several records, their order is that of hash tables."""
    said, *records = answer.split(" | ")
    return " | ".join([said, *sorted(records)])


def test_answers_and_records_are_those_of_apache(kafka_jars: Path) -> None:
    lines = [line for seed in range(LIVES) for line in random_life(seed)]
    world = ShareWorld()
    is_order_known, written, redundant = True, 0, 0
    for line, apaches in zip(lines, asked_of_apache(lines), strict=True):
        world, answer = play(world, line)
        if line.startswith("F"):
            is_order_known = True
        if line == "P":  # where the records are depends on their order
            redundant += is_order_known and answer != "P none"
            assert answer == apaches or not is_order_known
            continue
        assert in_any_order(answer) == in_any_order(apaches), line
        is_order_known &= answer == apaches
        written += answer.count(" | ")
    assert written > 1_000, "too little has happened to prove anything"
    assert redundant > 10


def test_batches_are_combined_as_apache_combines_them(kafka_jars: Path) -> None:
    dice = Random(0)
    lines = [
        f"C {dice.choice([-1, -1, 0, 5, 15])} {random_batches(dice, 6)} {random_batches(dice, 6)}"
        for _ in range(COMBINATIONS)
    ]
    for line, apaches in zip(lines, asked_of_apache(lines), strict=True):
        _, start_offset, known, new = line.split(" ")
        made = combined(batches(known), batches(new), int(start_offset))
        assert ";".join(["-", *(",".join(map(str, batch)) for batch in made)]) == apaches, line
