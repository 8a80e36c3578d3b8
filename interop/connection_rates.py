"""Let Apache Kafka's ConnectionQuotas decide how long random connections of a broker or an address wait.

    python -m interop.connection_rates [CASES]

Prints for how many of CASES sequences of connections (2,000 by default) ours decides otherwise, and keeps the
first 100 in `interop/tests/golden/connection_rates.jsonl`, where `interop/tests/test_connection_rates.py`
compares without Java.

A connection is the milliseconds since the one before, and the bound that is in force. Needs a JDK, not only a
JRE: the Java side is compiled on the fly.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from itertools import accumulate
from pathlib import Path
from typing import Any

from pykafka_broker.quotas.connection_rates import AddressRates, ConnectionRate
from pykafka_broker.quotas.rates import Window
from pykafka_broker.testing.apache.jars import java, libs

PROGRAM = Path(__file__).parent / "oracle" / "ConnectionRates.java"
GOLDEN = Path(__file__).parent / "tests" / "golden" / "connection_rates.jsonl"
KEPT = 100
ADDRESS = "10.0.0.1"


def random_case(rng: random.Random) -> dict[str, Any]:
    """Connections in bursts and one by one; the bound changes now and then."""
    of = rng.choice(["broker", "address"])
    # An address has no quota of 0, and under the largest one Apache Kafka does not count its connections.
    bounds = [1, 2, 3, 7, 50, *([0, 2**31 - 1] if of == "broker" else [])]
    bound = rng.choice(bounds[:3])
    pauses = rng.choice([(0, 0, 0, 1_000), (0, 100, 400), (0, 0, 0, 0, 1, 37, 950, 12_345), (250, 333)])
    connections = []
    for _ in range(rng.choice([12, 30, 60])):
        if rng.random() < 0.05:
            bound = rng.choice(bounds)
        connections.append([rng.choice(pauses), bound])
    return {
        "of": of,
        "samples": rng.choice([1, 2, 5, 11, 11, 11]),
        "sample_seconds": rng.choice([1, 1, 2]),
        "connections": connections,
    }


def by_ours(case: dict[str, Any]) -> list[int]:
    """How many milliseconds each connection has to wait."""
    window = Window(case["samples"], case["sample_seconds"] * 1_000)
    times_ms = accumulate(after_ms for after_ms, _ in case["connections"])
    bounds = [bound for _, bound in case["connections"]]
    if case["of"] == "broker":
        rate = ConnectionRate(window)
        return [rate.count(bound, now_ms) for bound, now_ms in zip(bounds, times_ms, strict=True)]
    rates, waits = AddressRates(window), []
    for bound, now_ms in zip(bounds, times_ms, strict=True):
        rates.apply({ADDRESS: bound})
        waits.append(rates.count(ADDRESS, now_ms))
    return waits


def by_apache(cases: list[dict[str, Any]]) -> list[list[int]]:
    """The same, by Apache Kafka."""
    run = subprocess.run(
        [java(), "-cp", str(libs() / "*"), str(PROGRAM)],
        input="\n".join(json.dumps(case) for case in cases),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("[")]


def main(count: int) -> None:
    rng = random.Random(612)
    cases = [random_case(rng) for _ in range(count)]
    told = by_apache(cases)
    different = [(case, waits) for case, waits in zip(cases, told, strict=True) if by_ours(case) != waits]
    print(f"{count} sequences of connections, {len(different)} decided otherwise than by Apache Kafka")
    for case, waits in different[:3]:
        print(json.dumps(case), waits, by_ours(case), sep="\n")
    kept = zip(cases[:KEPT], told[:KEPT], strict=True)
    GOLDEN.write_text("".join(json.dumps({**case, "waits_ms": waits}) + "\n" for case, waits in kept))


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 2_000)
