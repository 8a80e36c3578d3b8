"""Let Apache Kafka's own assignor share out the partitions of random share groups.

    python -m interop.share_assignments [CASES]

Prints how many of CASES groups (1,000 by default) our assignor shares out otherwise, and keeps the first 120
in `interop/tests/golden/share_assignments.jsonl`, where `interop/tests/test_share_assignments.py` compares
without Java.

What a member gets is compared in the order in which Apache Kafka writes it down. Topic ids are in base64.
Groups for which Apache Kafka's assignor fails (it runs out of members to ask, where members have partitions
that could not be assigned any more) are left out.

Needs a JDK, not only a JRE: the Java side is compiled on the fly.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from interop.assignments import random_topic, topic_bytes, topic_text
from pykafka_broker.coordinator.groups.core.share.assignors import ASSIGNORS
from pykafka_broker.coordinator.groups.core.share.assignors.spec import GroupSpec, MemberSpec
from pykafka_broker.coordinator.groups.core.share.records import partitions_in_order
from pykafka_broker.protocol.java_hash import string_hash, uuid_hash, walked
from pykafka_broker.testing.apache.jars import java, libs

PROGRAM = Path(__file__).parent / "oracle" / "ShareAssignors.java"
GOLDEN = Path(__file__).parent / "tests" / "golden" / "share_assignments.jsonl"
KEPT = 120


def random_group(rng: random.Random) -> dict[str, Any]:
    """A share group as it may be found: members and topics have come and gone since the last assignment."""
    topics: dict[str, Any] = {}
    for _ in range(rng.randint(1, 6)):
        count = rng.choice([1, 2, 3, 7, 16, 40])
        some = sorted(rng.sample(range(count), rng.randint(0, count)))
        topics[random_topic(rng)] = {
            "count": count,
            "assignable": list(range(count)) if rng.random() < 0.7 else some,
        }
    homogeneous = rng.random() < 0.5
    all_topics = rng.sample(sorted(topics), rng.randint(1, len(topics)))
    gone = random_topic(rng)
    counts = {topic: said["count"] for topic, said in topics.items()} | {gone: 3}
    members = {}
    for number in range(rng.choice([1, 2, 3, 5, 8, 20, 50])):
        assignment: dict[str, list[int]] = {}
        for topic, count in counts.items():
            if rng.random() < 0.5:
                assignment[topic] = rng.sample(range(count), rng.randint(0, count))
        name = rng.choice([f"member-{number}", f"{rng.getrandbits(64):x}-{number}"])
        members[name] = {
            "topics": all_topics if homogeneous else rng.sample(sorted(topics), rng.randint(0, len(topics))),
            "assignment": assignment,
        }
    return {"homogeneous": homogeneous, "topics": topics, "members": members}


def group_spec(group: dict[str, Any]) -> GroupSpec:
    members = {}
    for name in walked(group["members"], string_hash):
        member = group["members"][name]
        before = {topic_bytes(topic): partitions for topic, partitions in member["assignment"].items()}
        members[name] = MemberSpec(
            tuple(map(topic_bytes, member["topics"])),
            {topic_id: partitions_in_order(before[topic_id]) for topic_id in walked(before, uuid_hash)},
        )
    assignable = {topic_bytes(topic): said["assignable"] for topic, said in group["topics"].items()}
    return GroupSpec(members, assignable, group["homogeneous"])


def assigned(group: dict[str, Any]) -> dict[str, list[list[Any]]]:
    """How our assignor shares out the partitions of `group`."""
    result = ASSIGNORS["simple"](group_spec(group))
    return {
        name: [[topic_text(topic_id), list(partitions)] for topic_id, partitions in assignment.items()]
        for name, assignment in result.items()
    }


def by_apache(groups: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """What Apache Kafka makes of each group; None where its assignor fails."""
    run = subprocess.run(
        [java(), "-cp", str(libs() / "*"), str(PROGRAM)],
        input="\n".join(json.dumps(group) for group in groups),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def main(count: int) -> None:
    rng = random.Random(932)
    groups = [random_group(rng) for _ in range(count)]
    results = zip(groups, by_apache(groups), strict=True)
    served = [(group, result) for group, result in results if result is not None]
    different = sum(assigned(group) != result for group, result in served)
    print(f"{len(served)} share groups, {different} shared out otherwise than Apache Kafka shares them out")
    print(f"{count - len(served)} share groups for which Apache Kafka's assignor fails")
    with GOLDEN.open("w") as golden:
        for group, result in served[:KEPT]:
            golden.write(json.dumps({**group, "assigned": result}) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
