"""Bugs of replication, planted into all nodes of a tortured cluster (`mutants.py`): what judges such a
cluster must find each of them, and nothing where none is planted.

They show when a leader writes alone, as both followers are frozen, and is killed: the followers go on without
its last records, and it comes back with them.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.torture.clients import Load, create_ledger, read_at_the_end
from tests.torture.harness import PARTITIONS, TOPIC_CONFIG
from tests.torture.history import anomalies
from tests.torture.mutants import REPLICATION_BUGS_AND_SIGNS
from tests.torture.replicas import replica_differences
from tests.torture.tortured_cluster import NODES, RECORDS_A_ROUND, SEED, TorturedCluster

#: A planted bug that is not found so often is not found.
TRIES = 5
#: So many records are acknowledged to nobody's harm: followers may have been sent some before they froze.
ALONE = 200
#: So long a leader that waits for its followers is left alone.
ALONE_S = 2.0
#: What the leader appends first may still reach the followers, in answers to fetches that waited when they
#: froze. Each producer has one request under way, so more producers leave more that only the leader has.
PRODUCERS = 12


@contextmanager
def frozen(pids: list[int]) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def kill_a_leader_that_wrote_alone(cluster: TorturedCluster, load: Load) -> None:
    leader = cluster.leader()
    with frozen([pid for node_id, pid in cluster.pids.items() if node_id != leader]):
        deadline = time.monotonic() + ALONE_S
        load.wait_for(ALONE, until=lambda: time.monotonic() > deadline)
        cluster.nodes[leader].kill()
    load.wait_for(RECORDS_A_ROUND)
    cluster.heal()
    load.wait_for(RECORDS_A_ROUND)


def found_in(folder: Path, seed: int, mutant: str = "") -> dict[str, list[str]]:
    """What is wrong at the end of a round."""
    cluster = TorturedCluster(folder, random.Random(seed))
    for node_id in NODES:
        cluster.node(node_id).mutant = mutant
    with cluster.nodes:
        create_ledger(cluster.addresses, PARTITIONS, len(NODES), **TOPIC_CONFIG)
        cluster.heal()
        load = Load(cluster.addresses, PARTITIONS, chores=False, in_flight=1, producers=PRODUCERS)
        with load:
            load.wait_for(RECORDS_A_ROUND)
            kill_a_leader_that_wrote_alone(cluster, load)
        read_at_the_end(cluster.addresses, load.history, silence_s=15)
        differing = replica_differences(cluster.nodes)
    return {**anomalies(load.history), **({"replicas": differing} if differing else {})}


class TestARoundInWhichALeaderWritesAlone:
    pytestmark = [pytest.mark.slow, pytest.mark.timeout(300 * TRIES)]

    def test_costs_nothing_where_no_bug_is_planted(self, tmp_path: Path) -> None:
        assert found_in(tmp_path, SEED) == {}

    @pytest.mark.parametrize(
        "name, sign", [(bug.__name__, s) for bug, s in REPLICATION_BUGS_AND_SIGNS.items()]
    )
    def test_shows_a_bug(self, name: str, sign: str, tmp_path: Path) -> None:
        seen: list[dict[str, list[str]]] = []
        for seed in range(1, TRIES + 1):
            seen.append(found_in(tmp_path / f"{seed}", seed, name))
            if sign in seen[-1]:
                return
        pytest.fail(f"not found in {TRIES} tries, which have shown {seen}")
