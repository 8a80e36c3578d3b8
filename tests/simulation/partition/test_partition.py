"""Partitions with the faults of their seeds; every planted bug is found; a seed is always the same."""

from __future__ import annotations

import os

import pytest

from tests.simulation.partition.cluster import PartitionCluster
from tests.simulation.partition.planted import PLANTED, Planted
from tests.simulation.violation import Violation
from tests.simulation.wrong import plant

pytestmark = pytest.mark.acknowledged

SEEDS = 200 * int(os.environ.get("TORTURE_ROUNDS", "1"))


def test_no_committed_record_is_lost_whatever_goes_wrong() -> None:
    acknowledged = isrs = truncated = 0
    for seed in range(SEEDS):
        cluster = PartitionCluster(seed)
        cluster.run()
        acknowledged += cluster.laws.acknowledged
        isrs += cluster.partition.partition_epoch
        truncated += sum("diverging=EpochEnd" in line for line in cluster.transcript)
    assert acknowledged > 10 * SEEDS and isrs > 3 * SEEDS, "producers and the ISR have to get somewhere"
    assert truncated > SEEDS / 4, "followers have to truncate"


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.bug)
def test_a_planted_bug_is_found(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(planted.wrongs, monkeypatch)

    assert any(fails(seed) for seed in range(planted.seeds))


def fails(seed: int) -> bool:
    try:
        PartitionCluster(seed).run()
    except Violation:
        return True
    return False


def test_a_seed_is_always_the_same() -> None:
    transcripts = []
    for _ in range(2):
        cluster = PartitionCluster(3)
        cluster.run()
        transcripts.append(cluster.transcript)
    assert transcripts[0] == transcripts[1]
