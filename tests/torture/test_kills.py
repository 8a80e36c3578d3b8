"""kill -9 at random moments and at named crash points, and power cuts, while idempotent producers write.

`make torture` kills at every named crash point and TORTURE_ROUNDS times at random. What a kill cannot show, a
missing sync, the power cuts do: there the process keeps what it has written and not synced to itself
(`files.py`), so that it dies with it. A planted bug is caught by the same rounds (`mutants.py`).
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.torture.files import Crash, Plan
from tests.torture.harness import TorturedBroker, crash_points, random_kills, tell, torture
from tests.torture.mutants import FSYNC, MUTANTS

pytestmark = pytest.mark.slow

#: Random kills; named crash points on top of it.
ROUNDS = int(os.environ.get("TORTURE_ROUNDS", "10"))
#: How many named crash points; all of them if TORTURE_ROUNDS is given.
NAMED = None if "TORTURE_ROUNDS" in os.environ else 10
SEED = int(os.environ.get("TORTURE_SEED", "1"))
#: A planted bug that is not caught so often is not caught.
TRIES = 5
#: Operations that only a first start does.
FORMATTING = ("bootstrap.checkpoint", "meta.properties", "metadata partition", "create metadata", ".reserve")


def plans_for(points: dict[str, int], dice: random.Random) -> list[Plan]:
    """A crash at each point, before, after or, where something is written, in the middle of the operation."""
    plans = []
    for point, count in sorted(points.items()):
        written = point.startswith(("pwrite", "write_file"))
        when = dice.choice(["before", "after", "torn"] if written else ["before", "after"])
        plans.append(Plan(crash=Crash(point, dice.randint(1, max(1, count // 4)), when)))
    return plans


@pytest.mark.timeout(600 + 30 * ROUNDS + 1200 * (NAMED is None))
def test_kills_at_random_moments_and_at_crash_points_cost_nothing_that_was_acknowledged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(SEED)
    points = crash_points(tmp_path)
    assert len(points) > 40, points
    while_running = {p: n for p, n in points.items() if not any(name in p for name in FORMATTING)}
    named = plans_for(while_running, dice)
    if NAMED is not None:
        named = dice.sample(named, NAMED)
    plans = [*random_kills(ROUNDS), *named]
    dice.shuffle(plans)

    result = torture(tmp_path / "tortured", plans, seed=SEED)

    tell(capsys, result)
    assert result.anomalies == {}
    assert result.kills >= ROUNDS + len(named) // 2


@pytest.mark.timeout(600 + 30 * ROUNDS)
def test_power_cuts_cost_nothing_that_was_acknowledged_after_a_sync(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plans = [*random_kills(max(3, ROUNDS // 2), volatile=True, delays={"sync ledger": 30})]
    result = torture(tmp_path, plans, properties=FSYNC, seed=SEED, chores=False, records_a_round=600)
    tell(capsys, result)
    assert result.anomalies == {}


@pytest.mark.timeout(300 * TRIES)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_caught(name: str, tmp_path: Path) -> None:
    """In one of a few tries: the moment of a kill may spare what the bug would have cost."""
    mutant = MUTANTS[name]
    seen: list[list[str]] = []
    for seed in range(1, TRIES + 1):
        result = torture(
            tmp_path / f"{seed}",
            [replace(plan, mutant=name) for plan in mutant.plans],
            properties=mutant.properties,
            seed=seed,
            chores=False,
            records_a_round=400,
            silence_s=15,
        )
        seen.append(list(result.anomalies))
        if result.anomalies.keys() & mutant.leads_to:
            return
    pytest.fail(f"not caught in {TRIES} tries, which have shown {seen}")


@pytest.mark.timeout(900)
def test_a_first_start_cut_short_anywhere_is_made_good_by_the_next(tmp_path: Path) -> None:
    record = tmp_path / "points.txt"
    first = TorturedBroker(tmp_path / "first")
    first.run(Plan(record=str(record)))
    first.kill()
    points = list(dict.fromkeys(record.read_text().splitlines()))
    formatting = [point for point in points if any(name in point for name in FORMATTING)]
    assert len(formatting) >= 5, points
    for number, point in enumerate(formatting):
        broker = TorturedBroker(tmp_path / f"{number}")
        when = "torn" if point.startswith("write_file") else "after"
        assert not broker.run(Plan(crash=Crash(point, 1, when))), f"it did not die at {point}"
        broker.process = None
        broker.run(Plan())
        broker.stop()
