"""Server-side assignors give the same answers as Apache Kafka's.

`python -m interop.assignments` has stored random groups, and how Apache Kafka 4.3.1 divided them.
"""

from __future__ import annotations

import json

from interop.assignments import GOLDEN, assigned


def test_random_groups_are_divided_as_apache_kafka_divides_them() -> None:
    cases = [json.loads(line) for line in GOLDEN.read_text().splitlines()]

    assert len(cases) == 120
    for case in cases:
        assert assigned(case) == case["assigned"]
