"""A sample of the conversations with Apache Kafka and with our broker: the stored results are still true."""

from __future__ import annotations

import os
from pathlib import Path

from interop.conformance import results
from interop.conformance.conversation import cases
from interop.conformance.play import Result, Verdict, both_brokers, run, sample
from interop.conformance.results import Outcomes, verdict_of

SIZE = 200


#: `CONFORMANCE_SEED=2 pytest ...` takes another sample; all of them is what `make conformance` runs.
SEED = int(os.environ.get("CONFORMANCE_SEED", "1"))


def described(result: Result, stored: Verdict) -> str:
    title = f"{result.verdict.value}, stored as {stored.value}: {result.case}: {result.problem}"
    return "\n  ".join([title, *map(str, result.differences)])


def stored_verdict(stored: Outcomes, result: Result) -> Verdict:
    told = result.case.conversation
    return verdict_of(stored[told.api][told.name][result.case.version])


def test_a_sample_of_conversations_ends_as_it_is_stored(kafka_jars: Path) -> None:
    stored = results.load()
    with both_brokers() as (apache, ours):
        came_out = run(sample(cases(), SEED, SIZE), apache, ours)
    told = [(result, stored_verdict(stored, result)) for result in came_out]
    wrong = [
        described(result, verdict)
        for result, verdict in told
        if result.verdict is not verdict or verdict in (Verdict.DIFFERENT, Verdict.BROKEN)
    ]
    assert not wrong, "\n".join([f"with CONFORMANCE_SEED={SEED}", *wrong])
