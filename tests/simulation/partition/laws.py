"""What has to hold after every step of a simulated partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafka_broker.cluster.image import PartitionRegistration
from pykafka_broker.replication.core import access
from tests.simulation.partition.broker import Broker
from tests.simulation.partition.replica_log import Record
from tests.simulation.violation import check


class Laws:
    """Remembers what clients have been told."""

    def __init__(self) -> None:
        #: Everything that was below the high watermark of a leader, by offset.
        self.committed: dict[int, Record] = {}
        self.acknowledged = 0
        self.newest_epoch = -1

    def look(self, brokers: Mapping[int, Broker], now: PartitionRegistration) -> None:
        """`now` is the partition as the controller has it."""
        for broker in brokers.values():
            self._take(broker.seen)
            for offset, record in broker.acknowledged:
                self.acknowledged += 1
                check(self.committed.get(offset) == record, f"{record} was acknowledged and is not committed")
            broker.seen.clear()
            broker.acknowledged.clear()
        for member in now.isr:
            self._check_complete(brokers[member])
        epochs = [broker.leadership.leader_epoch for broker in brokers.values() if broker.leadership]
        self.newest_epoch = max([self.newest_epoch, *epochs])
        for broker in brokers.values():
            self._check_end(broker)

    def _take(self, seen: Iterable[tuple[int, Record]]) -> None:
        for offset, record in seen:
            before = self.committed.setdefault(offset, record)
            check(before == record, f"offset {offset} was {before} to consumers, and is {record} now")

    def _check_complete(self, broker: Broker) -> None:
        records = broker.log.records
        for offset, record in self.committed.items():
            has = records[offset] if offset < len(records) else None
            check(has == record, f"broker {broker.broker_id} is in sync and has {has} instead of {record}")

    def _check_end(self, broker: Broker) -> None:
        """The end that consumers of the newest leader are told is not below what they may have seen.

        Of an earlier leader that does not know of the newest, its epoch tells consumers not to believe it.
        """
        leadership = broker.leadership
        if leadership is None or leadership.leader_epoch < self.newest_epoch:
            return
        high_watermark = broker.log.high_watermark
        if access.is_end_known(leadership, high_watermark):
            end = max(self.committed, default=-1) + 1
            check(
                high_watermark >= end,
                f"broker {broker.broker_id} says that the log ends at {high_watermark} instead of {end}",
            )
