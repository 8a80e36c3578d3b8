"""Partitions of a broker under test, and the other brokers that they know."""

from __future__ import annotations

from collections.abc import Callable

from pykafka_broker.cluster.image import BrokerRegistration
from pykafka_broker.replication.leading_replica import LeadingReplica
from pykafka_broker.replication.partition import Partition


def led(partition: Partition) -> LeadingReplica:
    """The partition, which this node leads."""
    assert partition.leading is not None
    return partition.leading


def know_brokers(partition: Partition, registration_of: Callable[[int], BrokerRegistration | None]) -> None:
    """Let a partition that is led here know these brokers, also when it is led anew."""
    leading = led(partition)
    partition._ports = leading._ports = partition._ports._replace(registration_of=registration_of)
    leading.deletion._registration_of = registration_of
