"""The assignor of share groups gives the same answers as Apache Kafka's, in the same order.

`python -m interop.share_assignments` has stored random groups, and how Apache Kafka 4.3.1 shared them out.
"""

from __future__ import annotations

import json

from interop.share_assignments import GOLDEN, assigned


def test_random_share_groups_are_shared_out_as_apache_kafka_shares_them_out() -> None:
    cases = [json.loads(line) for line in GOLDEN.read_text().splitlines()]

    assert len(cases) == 120
    for case in cases:
        assert assigned(case) == case["assigned"]
