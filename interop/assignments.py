"""Let Apache Kafka's own assignors divide the partitions of random groups.

    python -m interop.assignments [CASES]

Prints how many of CASES groups (1,000 by default) our assignors divide otherwise, and keeps the first 120 in
`tests/coordinator/golden/assignments.jsonl`, where `tests/coordinator/test_assignors.py` compares.

Needs a JDK, not only a JRE: the Java side is compiled on the fly.
"""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from pykafka_broker.testing.apache.jars import java, libs
from tests.support.assignments import assigned

PROGRAM = Path(__file__).parent / "oracle" / "Assignors.java"
GOLDEN = Path(__file__).parents[1] / "tests" / "coordinator" / "golden" / "assignments.jsonl"
KEPT = 120


def topic_id(rng: random.Random) -> str:
    return base64.urlsafe_b64encode(rng.randbytes(16)).decode().rstrip("=")


def random_group(rng: random.Random) -> dict[str, Any]:
    """A group as it may be found: members and topics have come and gone since the last assignment."""
    topics = {topic_id(rng): rng.choice([1, 2, 3, 7, 16, 40]) for _ in range(rng.randint(1, 6))}
    homogeneous = rng.random() < 0.5
    everybody = rng.sample(sorted(topics), rng.randint(1, len(topics)))
    gone = topic_id(rng)
    # Of each topic somebody had the first partitions; those of members that left are free.
    free = {topic: list(range(rng.randint(0, count))) for topic, count in topics.items()}
    free[gone] = list(range(3))
    members = {}
    for number in range(rng.choice([1, 2, 3, 5, 8, 20])):
        assignment: dict[str, list[int]] = {}
        for topic, partitions in free.items():
            taken = sorted(rng.sample(partitions, rng.randint(0, len(partitions))))
            if taken and rng.random() < 0.7:
                assignment[topic] = taken
                free[topic] = [partition for partition in partitions if partition not in taken]
        name = rng.choice([f"member-{number}", f"{rng.getrandbits(64):x}-{number}"])
        members[name] = {
            "topics": everybody if homogeneous else rng.sample(sorted(topics), rng.randint(0, len(topics))),
            "assignment": assignment,
            "instance": f"static-{rng.randint(0, 99)}-{number}" if rng.random() < 0.3 else None,
        }
    return {
        "assignor": rng.choice(["uniform", "uniform", "range"]),
        "homogeneous": homogeneous,
        "topics": topics,
        "members": members,
    }


def by_apache(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    run = subprocess.run(
        [java(), "-cp", str(libs() / "*"), str(PROGRAM)],
        input="\n".join(json.dumps(group) for group in groups),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def main(count: int) -> None:
    rng = random.Random(848)
    groups = [random_group(rng) for _ in range(count)]
    results = by_apache(groups)
    different = sum(assigned(group) != result for group, result in zip(groups, results, strict=True))
    print(f"{count} groups, {different} divided otherwise than Apache Kafka divides them")
    with GOLDEN.open("w") as golden:
        for group, result in zip(groups[:KEPT], results, strict=False):
            golden.write(json.dumps({**group, "assigned": result}) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
