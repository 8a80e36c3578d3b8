"""Clusters of whole nodes with the faults of their seeds; a seed is always the same."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.simulation.cluster.cluster import Cluster, run
from tests.simulation.cluster.profile import OTHERS

pytestmark = pytest.mark.acknowledged

#: Few, as each takes seconds. `make simulate` runs as many as asked for.
SEEDS = 5


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What a log says of lost connections and leaders is nothing new here."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_cluster_keeps_what_it_has_promised_whatever_goes_wrong(seed: int) -> None:
    run(seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", OTHERS)
def test_a_cluster_of_another_kind_keeps_what_it_has_promised(kind: str) -> None:
    run(0, OTHERS[kind])


def test_brokers_whose_processes_end_are_fenced_early_and_no_other_is() -> None:
    """The cluster checks each of them; pauses, cuts and drifting clocks must not look like an end."""
    faults = {"kill_ms": 3_000, "pause_ms": 5_000, "partition_ms": 6_000, "stop_ms": 0, "power_ms": 0}
    cluster = Cluster(0, faults)
    cluster.run()
    assert cluster.early_fencings > 0


def test_a_seed_is_the_same_in_every_process() -> None:
    cluster = Cluster(6)
    cluster.run()

    program = (
        "from tests.simulation.cluster.cluster import Cluster; import logging; logging.disable();"
        "cluster = Cluster(6); cluster.run(); print(cluster.wires.digest)"
    )
    other = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=200
    )
    assert int(other.stdout) == cluster.wires.digest
