"""Streams groups are decided about as Apache Kafka decides.

`python -m interop.streams_groups` has stored random questions, and the answers of Apache Kafka 4.3.1.
"""

from __future__ import annotations

import json

import pytest

from interop.streams_groups.kinds import GOLDEN, KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_random_questions_are_answered_as_apache_kafka_answers_them(kind: str) -> None:
    cases = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    asked = [case for case in cases if case["about"] == kind]
    _, answer = KINDS[kind]

    assert len(asked) == 30
    for case in asked:
        assert answer(case) == case["answer"]
