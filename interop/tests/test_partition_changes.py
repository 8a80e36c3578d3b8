"""The controller decides on partitions as Apache Kafka's does.

`python -m interop.partition_changes` has stored random partitions, and the records of Apache Kafka 4.3.1.
"""

from __future__ import annotations

import json

from interop.partition_changes import GOLDEN, apaches, by_ours


def test_random_partitions_change_as_apache_kafka_changes_them() -> None:
    cases = [json.loads(line) for line in GOLDEN.read_text().splitlines()]

    assert len(cases) == 300
    for case in cases:
        assert by_ours(case) == apaches(case, case["record"])
