"""Let Apache Kafka's own message classes read and rewrite what we encode.

    python -m interop.reencode [EXAMPLES]

Every version of every message, with every field set and then with EXAMPLES random values (none by default),
must come back byte for byte. What has no captured frames in `tests/protocol/wire` (records, and APIs between
brokers) is then kept in `tests/protocol/reencoded.txt`, where `tests/protocol/test_reencoded.py` compares.

Needs a JDK, not only a JRE: the Java side is compiled on the fly.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from interop.oracle import java, libs
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.schema import schema_of
from tests.support.messages import as_of, everything, full, messages

PROGRAM = Path(__file__).parent / "oracle" / "Reencode.java"
TESTS = Path(__file__).parents[1] / "tests" / "protocol"


def encodings(message: Any) -> Iterator[str]:
    """One line "name version hex" for every version of `message`."""
    for version in schema_of(message).versions:
        yield f"{schema_of(message).name} {version} {encode(as_of(message, version), version).hex()}"


def random_messages(cls: type[Any], examples: int) -> list[Any]:
    """`examples` objects with random values."""
    drawn = []

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(messages(cls))
    def draw(message: Any) -> None:
        drawn.append(message)

    draw()
    return drawn


def reencoded(lines: list[str]) -> list[str]:
    """What Apache's classes make of `lines`, in the same order: hex, or what they complained about."""
    command = [java(), "-cp", str(libs() / "*"), str(PROGRAM)]
    run = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def captured() -> set[str]:
    """The messages that have captured frames."""
    names = {path.stem.replace("_", "") for path in (TESTS / "wire").glob("*.txt")}
    return {
        cls.__name__
        for cls in everything()
        if cls.__name__.lower().removesuffix("request").removesuffix("response") in names
    }


def main() -> int:
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    samples = [line for cls in everything() for line in encodings(full(cls))]
    drawn = [
        line
        for cls in everything()
        for message in (random_messages(cls, examples) if examples else [])
        for line in encodings(message)
    ]
    lines = samples + drawn
    wrong = [
        f"{line}\n  comes back as {again}"
        for line, again in zip(lines, reencoded(lines), strict=True)
        if line.rpartition(" ")[2] != again
    ]
    if wrong:
        print(*wrong, sep="\n")
        return 1
    kept = [line for line in samples if line.partition(" ")[0] not in captured()]
    (TESTS / "reencoded.txt").write_text("\n".join(kept) + "\n")
    print(f"Apache Kafka reads and rewrites all {len(lines)} encodings; {len(kept)} kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
