"""What the doctor says of what it has seen through a session."""

from __future__ import annotations

from pykafka_broker.client.addresses import Address
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
