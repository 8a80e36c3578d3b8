"""A broker for the tests of a program: `python -m pytest examples/test_with_a_broker.py`.

Put the two fixtures into a `conftest.py`. One broker serves all tests; each test has a topic of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from kafka import KafkaConsumer, KafkaProducer

from pykafka_broker import Broker, load_config


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    config = load_config(data_dir=tmp_path_factory.mktemp("broker"), listen="127.0.0.1:0")
    with Broker(config) as running:
        yield running


@pytest.fixture
def topic() -> str:
    """A name; the first write creates the topic."""
    return f"orders-{uuid4()}"


def turnover(bootstrap: str, topic: str, orders: int) -> int:
    """The program that is tested: adds up this number of orders."""
    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=60_000
    )
    with consumer:
        return sum(int(next(consumer).value) for _ in range(orders))


def test_the_turnover_is_that_of_all_orders(broker: Broker, topic: str) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for amount in (5, 7, 30):
            producer.send(topic, str(amount).encode())

    assert turnover(broker.bootstrap_servers, topic, orders=3) == 42
