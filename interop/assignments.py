"""Let Apache Kafka's own assignors divide the partitions of random groups.

    python -m interop.assignments [CASES]

Prints how many of CASES groups (1,000 by default) our assignors divide otherwise, and keeps the first 120 in
`interop/tests/golden/assignments.jsonl`, where `interop/tests/test_assignments.py` compares without Java.

In the JSON of a group topic ids are in base64, and partitions sorted lists.

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

from pykafka_broker.coordinator.groups.core.consumer.assignors import ASSIGNORS
from pykafka_broker.coordinator.groups.core.consumer.assignors.spec import GroupSpec, MemberSpec
from pykafka_broker.protocol.java_hash import uuid_hash, walked
from pykafka_broker.testing.apache.jars import java, libs

PROGRAM = Path(__file__).parent / "oracle" / "Assignors.java"
GOLDEN = Path(__file__).parent / "tests" / "golden" / "assignments.jsonl"
KEPT = 120


def topic_bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def topic_text(topic_id: bytes) -> str:
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def random_topic(rng: random.Random) -> str:
    return topic_text(rng.randbytes(16))


def random_group(rng: random.Random) -> dict[str, Any]:
    """A group as it may be found: members and topics have come and gone since the last assignment."""
    topics = {random_topic(rng): rng.choice([1, 2, 3, 7, 16, 40]) for _ in range(rng.randint(1, 6))}
    homogeneous = rng.random() < 0.5
    all_topics = rng.sample(sorted(topics), rng.randint(1, len(topics)))
    gone = random_topic(rng)
    # The first partitions of each topic had owners; those of members that left are free.
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
            "topics": all_topics if homogeneous else rng.sample(sorted(topics), rng.randint(0, len(topics))),
            "assignment": assignment,
            "instance": f"static-{rng.randint(0, 99)}-{number}" if rng.random() < 0.3 else None,
        }
    return {
        "assignor": rng.choice(["uniform", "uniform", "range"]),
        "homogeneous": homogeneous,
        "topics": topics,
        "members": members,
    }


def group_spec(group: dict[str, Any]) -> GroupSpec:
    members = {
        name: MemberSpec(
            dict.fromkeys(walked(map(topic_bytes, member["topics"]), uuid_hash)).keys(),
            {topic_bytes(topic): frozenset(partitions) for topic, partitions in member["assignment"].items()},
            member["instance"],
        )
        for name, member in group["members"].items()
    }
    counts = {topic_bytes(topic): count for topic, count in group["topics"].items()}
    owned = {
        (topic_id, partition)
        for member in members.values()
        for topic_id, partitions in member.assignment.items()
        for partition in partitions
    }
    return GroupSpec(members, counts, group["homogeneous"], owned)


def assigned(group: dict[str, Any]) -> dict[str, dict[str, list[int]]]:
    """How our assignor divides the partitions of `group`."""
    result = ASSIGNORS[group["assignor"]](group_spec(group))
    return {
        name: {topic_text(topic_id): sorted(partitions) for topic_id, partitions in assignment.items()}
        for name, assignment in result.items()
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
