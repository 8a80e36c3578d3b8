"""Our codec against Apache Kafka's own message classes, both ways: `make reencode`.

    python -m interop.reencode [EXAMPLES]

Every version of every message, records included, with every field set and then with EXAMPLES random values
(20 by default), is encoded by us and written down as JSON the way Kafka does. Kafka's classes decode our
bytes, encode them again and say in JSON what they read; and they encode the message that our JSON describes,
which never saw our encoder, for us to decode. All bytes and all values have to be equal.

What has no captured frames in `tests/protocol/wire` (records, and APIs between brokers) is then kept in
`tests/protocol/reencoded.txt`, where `tests/protocol/test_reencoded.py` compares without Java.

Needs a JDK, not only a JRE: the Java side is compiled on the fly.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, settings

from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.testing.apache.jars import java, libs
from pykafka_broker.testing.apache.message_json import kafka_json
from pykafka_broker.testing.messages import as_of, everything, full, messages

PROGRAM = Path(__file__).parent / "oracle" / "Reencode.java"
TESTS = Path(__file__).parents[1] / "tests" / "protocol"


class Sample(NamedTuple):
    """One message in one version, as bytes in hex and as Kafka's JSON."""

    message: Any
    version: int
    encoded: str
    described: Any

    @property
    def name(self) -> str:
        return schema_of(self.message).name

    def line(self) -> str:
        return f"{self.name}\t{self.version}\t{self.encoded}\t{json.dumps(self.described)}"


def samples_of(message: Any) -> Iterator[Sample]:
    """`message` in every version."""
    for version in schema_of(message).versions:
        carried = as_of(message, version)
        yield Sample(carried, version, encode(carried, version).hex(), kafka_json(carried, version))


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


def answers(samples: list[Sample]) -> list[list[str]]:
    """The answers of Apache's classes to each sample: re-encoded bytes, JSON, and the bytes of our JSON."""
    command = [java(), "-cp", str(libs() / "*"), str(PROGRAM)]
    lines = "\n".join(sample.line() for sample in samples)
    run = subprocess.run(command, input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [line.split("\t") for line in run.stdout.decode().rstrip("\n").split("\n")]


def complaints(sample: Sample, answer: list[str]) -> Iterator[str]:
    """The differences between a sample and its answer."""
    again, described, independent = answer
    if again != sample.encoded:
        yield f"comes back as {again}"
    expected = kafka_json(sample.message, sample.version, written=True)
    if not described.startswith("{") or json.loads(described) != expected:
        yield f"is read as {described}, not as {json.dumps(expected)}"
    if independent != sample.encoded:
        yield f"is {independent} when Kafka encodes {json.dumps(sample.described)}"
    elif decode(type(sample.message), sample.version, bytes.fromhex(independent)) != (
        sample.message,
        len(independent) // 2,
    ):
        yield f"is not read back as {sample.message}"


def captured() -> set[str]:
    """The messages that have captured frames."""
    names = {path.stem.replace("_", "") for path in (TESTS / "wire").glob("*.txt")}
    return {
        cls.__name__
        for cls in everything()
        if cls.__name__.lower().removesuffix("request").removesuffix("response") in names
    }


def main() -> int:
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    full_ones = [sample for cls in everything() for sample in samples_of(full(cls))]
    drawn = [
        sample
        for cls in everything()
        for message in (random_messages(cls, examples) if examples else [])
        for sample in samples_of(message)
    ]
    samples = full_ones + drawn
    wrong = [
        f"{sample.name} v{sample.version} {sample.encoded}\n  {complaint}"
        for sample, answer in zip(samples, answers(samples), strict=True)
        for complaint in complaints(sample, answer)
    ]
    if wrong:
        print(*wrong, sep="\n")
        print(f"{len(wrong)} differences in {len(samples)} encodings")
        return 1
    kept = [f"{s.name} {s.version} {s.encoded}" for s in full_ones if s.name not in captured()]
    (TESTS / "reencoded.txt").write_text("\n".join(kept) + "\n")
    versions = len({(sample.name, sample.version) for sample in samples})
    print(
        f"Apache Kafka agrees on all {len(samples)} encodings of {versions} versions of {len(everything())} "
        f"messages; {len(kept)} are kept"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
