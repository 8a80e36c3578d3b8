"""What the doctor says of what it has seen through a session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pykafka_broker.client.core.addresses import Address
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.spark.doctor import topics
from pykafka_broker.spark.doctor.session import about_executors
from pykafka_broker.spark.executors import Reached


def test_executors_that_do_not_reach_a_broker_are_named() -> None:
    broker = Address("broker", 9092)
    reached = [Reached("w1", broker, ""), Reached("w2", broker, "Connection refused")]
    [found] = about_executors(reached)
    assert found.message == (
        "Executors on w2 do not reach broker:9092: Connection refused. Reads are planned, and then fail in "
        "their tasks."
    )
    assert about_executors(reached[:1])[0].message == "Executors (w1) reach 1 address of brokers."


def test_a_topic_that_is_forbidden_while_it_is_looked_at_is_told_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    monkeypatch.setattr(topics, "look", refuse)
    seen = SimpleNamespace(topics=[SimpleNamespace(name="secret", error_code=0, partitions=[])])
    client: Any = SimpleNamespace(metadata=lambda names: seen)
    assert list(topics.about_topics(client, ["secret"], None)) == [topics.not_authorized("secret")]
