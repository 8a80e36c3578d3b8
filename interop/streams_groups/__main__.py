"""Let Apache Kafka's own code decide about random streams groups.

    python -m interop.streams_groups [CASES]

Prints how many of CASES questions of each kind (1,000 by default) we answer otherwise, and keeps the first 30
of each in `interop/tests/golden/streams_groups.jsonl`, where `interop/tests/test_streams_groups.py` compares
without Java.

Needs a JDK, not only a JRE: the Java side is compiled on the fly.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

from interop.streams_groups import Json
from interop.streams_groups.kinds import GOLDEN, KINDS
from pykafka_broker.testing.apache.jars import java, libs

PROGRAM = Path(__file__).parents[1] / "oracle" / "StreamsGroups.java"
KEPT = 30


def by_apache(questions: list[Json]) -> list[object]:
    run = subprocess.run(
        [java(), "-cp", str(libs() / "*"), str(PROGRAM)],
        input="\n".join(json.dumps(question) for question in questions),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def main(count: int) -> None:
    rng = random.Random(1071)
    with GOLDEN.open("w") as golden:
        for kind, (random_question, answer) in KINDS.items():
            questions = [random_question(rng) for _ in range(count)]
            cases = list(zip(questions, by_apache(questions), strict=True))
            different = [case for case in cases if answer(case[0]) != case[1]]
            print(f"{kind}: {count} questions, {len(different)} answered otherwise than by Apache Kafka")
            for question, answered in different[:3]:
                print(json.dumps(question), "\n  theirs", answered, "\n  ours  ", answer(question))
            for question, answered in cases[:KEPT]:
                golden.write(json.dumps({**question, "answer": answered}) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
