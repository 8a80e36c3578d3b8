"""Signed bearer tokens are accepted for the same users as in Apache Kafka, and the same ones refused.

`python -m interop.bearer_tokens` has stored tokens, and the verdicts of Apache Kafka 4.3.1.
"""

from __future__ import annotations

import json

from interop.bearer_tokens import GOLDEN, ON_PURPOSE, by_ours


def test_tokens_are_judged_as_in_apache_kafka_but_for_those_on_purpose() -> None:
    public, *cases = [json.loads(line) for line in GOLDEN.read_text().splitlines()]

    assert len(cases) == 186
    differing = [
        (case["what"], by_ours(case, public)) for case in cases if by_ours(case, public) != case["verdict"]
    ]

    assert dict(differing).keys() == ON_PURPOSE.keys()
    accepted = {what for what, ours in differing if ours is not None}
    assert accepted == {"no kid, the second key fits", "two keys of one kid, the second fits"}
