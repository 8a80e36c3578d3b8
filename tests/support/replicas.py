"""Partitions of a broker under test, and the other brokers that they know."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from pykafka_broker.cluster.image import BrokerRegistration
from pykafka_broker.log.partition.rolling import NamesDue
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.replication.leading_replica import LeadingReplica
from pykafka_broker.replication.partition import Partition

Result = TypeVar("Result")


def make_names(due: NamesDue) -> None:
    """Make what an append has missed."""
    new = due.roller.make_names(due.base_offset)
    if new is not None:
        due.roller.adopt(new)


class FilesAtOnce:
    """Makes the files that appends miss at once, and no thread does."""

    def __init__(self) -> None:
        #: How many files each call of `make_all` made.
        self.made_at_once: list[int] = []

    def repeat(self, due: NamesDue, append: Callable[[], Result | NamesDue]) -> asyncio.Future[Result]:
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        result: Result | NamesDue = due
        try:
            while isinstance(result, NamesDue):
                make_names(result)
                result = append()
            done.set_result(result)
        except KafkaError as error:
            done.set_exception(error)
        return done

    async def make_all(self, dues: Sequence[NamesDue]) -> None:
        self.made_at_once.append(len(dues))
        for due in dues:
            make_names(due)


def led(partition: Partition) -> LeadingReplica:
    """The partition, which this node leads."""
    assert partition.leading is not None
    return partition.leading


def know_brokers(partition: Partition, registration_of: Callable[[int], BrokerRegistration | None]) -> None:
    """Let a partition that is led here know these brokers, also when it is led anew."""
    leading = led(partition)
    partition._ports = leading._ports = partition._ports._replace(registration_of=registration_of)
    leading.deletion._registration_of = registration_of
