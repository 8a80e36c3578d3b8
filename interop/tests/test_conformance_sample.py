"""A sample of the conversations with Apache Kafka and with our broker: the stored results are still true."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from interop.conformance import acl_matrix, clusters, results
from interop.conformance.conversation import NO_SETTINGS, cases
from interop.conformance.play import Result, Verdict, both_brokers, run, sample
from interop.conformance.results import Outcomes, verdict_of

SIZE = 200
#: Of those that are held with clusters, by their settings; the clusters take most of the time.
SIZES_WITH_CLUSTERS = ((NO_SETTINGS, 60), (acl_matrix.SETTINGS, 12))


#: `CONFORMANCE_SEED=2 pytest ...` takes another sample; all of them is what `make conformance` runs.
SEED = int(os.environ.get("CONFORMANCE_SEED", "1"))


def described(result: Result, stored: Verdict) -> str:
    title = f"{result.verdict.value}, stored as {stored.value}: {result.case}: {result.problem}"
    return "\n  ".join([title, *map(str, result.differences)])


def stored_verdict(stored: Outcomes, result: Result) -> Verdict:
    told = result.case.conversation
    return verdict_of(stored[told.api][told.name][result.case.version])


def surprises(came_out: list[Result], stored: Outcomes) -> list[Result]:
    return [
        result
        for result in came_out
        if result.verdict in (Verdict.DIFFERENT, Verdict.BROKEN)
        or result.verdict is not stored_verdict(stored, result)
    ]


def test_a_sample_of_conversations_ends_as_it_is_stored(kafka_jars: Path) -> None:
    """What comes out otherwise is played again: conversations wait for timeouts to run out, and on a busy
    machine one of the brokers may be late. Those that need brokers of their own are `make conformance`'s.
    """
    stored = results.load()
    declared = [case for case in cases() if not case.conversation.settings]
    with both_brokers() as (apache, ours):
        surprising = surprises(run(sample(declared, SEED, SIZE), apache, ours), stored)
        wrong = surprises(run([result.case for result in surprising], apache, ours), stored)
    told = [described(result, stored_verdict(stored, result)) for result in wrong]
    assert not wrong, "\n".join([f"with CONFORMANCE_SEED={SEED}", *told])


@pytest.mark.parametrize(("settings", "size"), SIZES_WITH_CLUSTERS, ids=["plain", "secured"])
def test_a_sample_of_conversations_is_the_same_with_clusters_of_which_a_node_is_killed(
    kafka_jars: Path, settings: Mapping[str, str], size: int
) -> None:
    [declared] = [found for own, found in clusters.by_clusters(cases()) if own == settings]
    chosen = sample(declared, SEED, size)
    with clusters.both_clusters(settings) as (apache, ours):
        came_out = clusters.run_with_a_kill(chosen, apache, ours, lambda _: None, print)
    wrong = [result for result in came_out if not clusters.is_fine(result)]
    told = [described(result, Verdict.EQUAL) for result in wrong]
    assert not wrong, "\n".join([f"with CONFORMANCE_SEED={SEED}", *told])
