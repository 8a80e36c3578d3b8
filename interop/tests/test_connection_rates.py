"""New connections of a broker, and of an address, wait as long as in Apache Kafka.

`python -m interop.connection_rates` has stored random connections, and the waits of Apache Kafka 4.3.1.
"""

from __future__ import annotations

import json

from interop.connection_rates import GOLDEN, by_ours


def test_random_connections_wait_as_long_as_in_apache_kafka() -> None:
    cases = [json.loads(line) for line in GOLDEN.read_text().splitlines()]

    assert len(cases) == 100
    for case in cases:
        assert by_ours(case) == case["waits_ms"]
