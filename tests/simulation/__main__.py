"""`make simulate SEEDS=1000 SHELL_SEEDS=100 CLUSTER_SEEDS=20`, or `SECONDS=60`: seeds of the simulations.

Seeds of quorums of the core, of quorums of the shell over files, and of clusters of whole nodes: each kind
takes several times as long as the one before. After them seeds of quorums whose leader is killed, and of a
replicated partition, which are quick.
Without SHELL_SEEDS and CLUSTER_SEEDS there are a tenth and a fiftieth as many of them, at least one. As many
clusters are of the kinds that no seed draws (`OTHERS` in `cluster/profile.py`), one kind after the other. Of
SECONDS each kind gets a sixth. FIRST is the first seed (0). A seed that fails prints its transcript, and the
exit code is 1.
"""

from __future__ import annotations

import logging
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from tests.simulation import killed_leader, quorum
from tests.simulation.cluster import cluster
from tests.simulation.cluster.profile import OTHERS
from tests.simulation.core_replica import CORE
from tests.simulation.partition.cluster import PartitionCluster
from tests.simulation.shell_replica import SHELL
from tests.simulation.violation import Violation

#: What is to be run has no name by which another process could find it.
FORKS = multiprocessing.get_context("fork")


def main() -> int:
    """Run seeds of all kinds until there are enough of them, or the time is over."""
    logging.disable()  # what a log says of damage and cuts is nothing new here
    seconds = float(os.environ.get("SECONDS") or 0) / 6
    seeds = int(os.environ.get("SEEDS") or (sys.maxsize if seconds else 1000))
    shell_seeds = int(os.environ.get("SHELL_SEEDS") or -(-seeds // 10))
    cluster_seeds = int(os.environ.get("CLUSTER_SEEDS") or -(-seeds // 50))
    failed = simulate(CORE.name, partial(quorum.run, kind=CORE), seeds, seconds)
    failed += simulate(SHELL.name, partial(quorum.run, kind=SHELL), shell_seeds, seconds)
    failed += simulate("cluster", cluster.run, cluster_seeds, seconds)
    failed += simulate("other cluster", run_other, cluster_seeds, seconds)
    failed += simulate("killed leader", killed_leader.kill_leader, seeds, seconds)
    failed += simulate("partition", lambda seed: PartitionCluster(seed).run(), seeds, seconds)
    return 1 if failed else 0


def run_other(seed: int) -> int:
    """Run a seed of a cluster of one of the kinds that no seed draws; return its number of events."""
    return cluster.run(seed, list(OTHERS.values())[seed % len(OTHERS)])


class Done(NamedTuple):
    """What a process has done."""

    seeds: int
    events: int
    failed: int


def simulate(name: str, run: Callable[[int], int], seeds: int, seconds: float) -> int:
    """Run so many seeds of one kind, or until `seconds` are over unless they are 0; how many have failed.

    Each processor runs its share: a seed is the same in every process.
    """
    first = int(os.environ.get("FIRST") or 0)
    workers = max(1, min(os.cpu_count() or 1, seeds))
    started = time.monotonic()
    end = started + seconds if seconds else math.inf
    answers: multiprocessing.SimpleQueue[Done] = FORKS.SimpleQueue()
    processes = [
        FORKS.Process(
            target=lambda worker: answers.put(
                run_share(run, range(first + worker, first + seeds, workers), end)
            ),
            args=(worker,),
        )
        for worker in range(workers)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise SystemExit(f"{name}: a process ended with {process.exitcode}")
    shares = [answers.get() for _ in processes]
    done, events = sum(share.seeds for share in shares), sum(share.events for share in shares)
    failed = sum(share.failed for share in shares)
    took = time.monotonic() - started
    rate = f"{done / took:.1f} seeds/s, {events / took:.0f} events/s on {workers} processors"
    print(f"{name}: {done} seeds from {first} on, {failed} failed: {rate}", flush=True)
    return failed


def run_share(run: Callable[[int], int], seeds: Iterable[int], end: float) -> Done:
    """Run these seeds, or those of them for which there is time; print those that fail."""
    done = Done(0, 0, 0)
    for seed in seeds:
        if time.monotonic() >= end:
            break
        try:
            done = Done(done.seeds + 1, done.events + run(seed), done.failed)
        except Violation as violation:
            done = Done(done.seeds + 1, done.events, done.failed + 1)
            print(violation, flush=True)
    return done


if __name__ == "__main__":
    sys.exit(main())
