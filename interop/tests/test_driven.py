"""A client in another language is asked over the stdin and stdout of its driver."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.clients.client import Record, Refused
from interop.clients.driven import DrivenClient, Driver, DriverError

#: A driver that keeps records in memory, refuses to tell of topics it does not know, and never
#: answers "partitions".
PROGRAM = """
import json, sys

topics = {}

def answer(number, **message):
    print(json.dumps({"id": number, **message}), flush=True)

ops = ["produce", "read", "end", "partitions", "topics"]
print(json.dumps({"version": "1.2.3", "ops": ops, "features": ["range"], "strategies": ["own"]}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    number, op, topic = asked["id"], asked["op"], asked.get("topic")
    if op == "produce":
        log = topics.setdefault(topic, [])
        log += [{**record, "offset": len(log) + n} for n, record in enumerate(asked["records"])]
        answer(number, ok=[record["offset"] for record in log])
    elif op == "read":
        answer(number, ok=topics[topic])
    elif op == "end" and topic not in topics:
        answer(number, refused=3, text="unknown topic")
    elif op == "end":
        sys.exit("out of paper")
    elif op == "topics":
        answer(number, failed="no idea")
"""


class Remembering(DrivenClient):
    name = "remembering"
    program: Path

    @classmethod
    def command(cls) -> list[str]:
        return [sys.executable, str(cls.program)]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[DrivenClient]:
    Remembering.program = tmp_path / "driver.py"
    Remembering.program.write_text(PROGRAM)
    client = Remembering("127.0.0.1:9092")
    yield client
    client.close()


def test_the_driver_says_what_its_client_is_and_can(client: DrivenClient) -> None:
    assert (client.version, client.strategies) == ("1.2.3", ("own",))
    assert [client.can(what) for what in ("read", "range", "member", "null_headers")] == [
        True,
        True,
        False,
        False,
    ]


def test_records_pass_with_every_byte_and_every_null(client: DrivenClient) -> None:
    written = [
        Record(b"\x00\xff\n", key=None, headers=(("h", b"\x80"), ("h", None)), timestamp_ms=17),
        Record(None, key=b"", headers=(), timestamp_ms=18, partition=3),
    ]
    assert client.produce("t", written) == [0, 1]
    assert client.read("t") == written


def test_an_error_code_of_the_broker_is_a_refusal(client: DrivenClient) -> None:
    with pytest.raises(Refused, match="unknown topic") as refused:
        client.end("missing")
    assert refused.value.code == 3


def test_a_failure_of_the_driver_is_none_of_the_brokers(client: DrivenClient) -> None:
    with pytest.raises(DriverError, match="topics: no idea"):
        client.topics()


def test_a_driver_that_ends_leaves_its_last_words(client: DrivenClient) -> None:
    client.produce("t", [Record(b"v")])
    with pytest.raises(DriverError, match="out of paper"):
        client.end("t")


def test_a_question_without_an_answer_is_given_up(client: DrivenClient) -> None:
    with pytest.raises(DriverError, match=r"no answer to partitions within 0\.1 s"):
        client.driver.ask("partitions", timeout_s=0.1, topic="t")


def test_a_program_that_does_not_say_what_it_is_is_no_driver() -> None:
    with pytest.raises(DriverError, match="cannot start"):
        Driver([sys.executable, "-c", "import sys; sys.exit('cannot start')"], "127.0.0.1:9092")
