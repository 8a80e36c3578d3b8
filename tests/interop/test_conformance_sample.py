"""A sample of the conversations with Apache Kafka and with our broker: the stored results are still true."""

from __future__ import annotations

import os
from pathlib import Path

from interop.conformance.conversation import cases
from interop.conformance.play import Result, Verdict, both_brokers, run, sample

#: Chosen anew with another seed: `CONFORMANCE_SEED=7 pytest tests/interop/test_conformance_sample.py`.
SEED = int(os.environ.get("CONFORMANCE_SEED", "20261121"))
SIZE = 200


def described(result: Result) -> str:
    return "\n  ".join(
        [f"{result.verdict.value}: {result.case}: {result.problem}", *map(str, result.differences)]
    )


def test_a_sample_of_conversations_ends_as_it_should(kafka_jars: Path) -> None:
    with both_brokers() as (apache, ours):
        results = run(sample(cases(), SEED, SIZE), apache, ours)
    wrong = [result for result in results if result.verdict in (Verdict.DIFFERENT, Verdict.BROKEN)]
    assert not wrong, "\n".join(described(result) for result in wrong)
