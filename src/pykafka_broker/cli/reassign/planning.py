"""Which replicas move, so that partitions are on the wanted brokers. Pure.

Replicas that may stay do stay, because moves are copied over the network. Three steps, each in a fixed order,
so that the same cluster always gets the same plan:

1. Replicas on other brokers are replaced, and missing ones added, by the brokers with the fewest replicas; a
   rack that a partition does not stand in yet comes before that.
2. Replicas move from the brokers with the most to those with the fewest while that makes the numbers more
   even, and no partition stands in fewer racks than before.
3. Preferred leaders, the first of the replicas, are made even by changing orders alone, which copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pykafka_broker.protocol.topic_partition import TopicPartition

#: The replicas of partitions, preferred leaders first.
Assignment = Mapping[TopicPartition, Sequence[int]]


class PlanError(Exception):
    """There is no such placement; the text says why."""


def plan(
    current: Assignment, racks: Mapping[int, str | None], replication_factor: int | None = None
) -> dict[TopicPartition, tuple[int, ...]]:
    """The new replicas of the partitions that change.

    Args:
        current: the partitions to place, with their replicas now.
        racks: the brokers on which they may stand, with the rack of each.
        replication_factor: how many replicas each gets; None leaves their numbers.

    Raises:
        PlanError: fewer brokers than replicas.
    """
    placing = _Placing(current, racks)
    for partition in sorted(current):
        placing.place(partition, replication_factor or len(current[partition]))
    placing.even_replicas()
    placing.even_leaders()
    return {
        partition: tuple(replicas)
        for partition, replicas in placing.replicas.items()
        if tuple(replicas) != tuple(current[partition])
    }


class _Placing:
    """A plan in the making."""

    def __init__(self, current: Assignment, racks: Mapping[int, str | None]) -> None:
        self._racks = racks
        self.replicas = {partition: list(current[partition]) for partition in sorted(current)}
        #: The partitions on each broker, in their order.
        self._held: dict[int, dict[TopicPartition, None]] = {broker: {} for broker in sorted(racks)}
        for partition, replicas in self.replicas.items():
            for broker in replicas:
                if broker in self._held:
                    self._held[broker][partition] = None

    def place(self, partition: TopicPartition, count: int) -> None:
        """Give a partition `count` replicas, on brokers where they may be."""
        if count > len(self._racks):
            raise PlanError(
                f"{named([partition])} is to have {count} replicas, and there are {len(self._racks)} "
                "brokers: start another one first, or plan with fewer (--replication-factor)."
            )
        replicas = self.replicas[partition]
        while len(replicas) > count:
            # A replica that has to move anyway, otherwise the last.
            foreign = [broker for broker in replicas if broker not in self._racks]
            self._drop(partition, (foreign or replicas)[-1])
        for broker in [broker for broker in replicas if broker not in self._racks]:
            others = [other for other in replicas if other != broker and other in self._racks]
            replicas[replicas.index(broker)] = self._take(partition, others)
        while len(replicas) < count:
            replicas.append(self._take(partition, replicas))

    def _drop(self, partition: TopicPartition, broker: int) -> None:
        self.replicas[partition].remove(broker)
        if broker in self._held:
            del self._held[broker][partition]

    def _take(self, partition: TopicPartition, others: Sequence[int]) -> int:
        taken = {self._racks[other] for other in others}
        broker = min(
            (broker for broker in self._racks if broker not in others),
            key=lambda one: (self._racks[one] in taken, len(self._held[one]), one),
        )
        self._held[broker][partition] = None
        return broker

    def even_replicas(self) -> None:
        """Move replicas to brokers that have at least two fewer."""
        while self._move_one():
            pass

    def _move_one(self) -> bool:
        by_count = sorted(self._held, key=lambda broker: (len(self._held[broker]), broker))
        for fullest in reversed(by_count):
            for emptiest in by_count:
                if len(self._held[fullest]) - len(self._held[emptiest]) < 2:
                    break
                for partition in self._held[fullest]:
                    if self._may_move(partition, fullest, emptiest):
                        replicas = self.replicas[partition]
                        replicas[replicas.index(fullest)] = emptiest
                        del self._held[fullest][partition]
                        self._held[emptiest][partition] = None
                        return True
        return False

    def _may_move(self, partition: TopicPartition, source: int, target: int) -> bool:
        replicas = self.replicas[partition]
        if target in replicas:
            return False
        others = {self._racks[broker] for broker in replicas if broker != source}
        return self._racks[target] not in others or self._racks[source] in others

    def even_leaders(self) -> None:
        """Reorder replicas while a broker is preferred at least twice more often than another one."""
        led: dict[int, dict[TopicPartition, None]] = {broker: {} for broker in self._held}
        for partition, replicas in self.replicas.items():
            led[replicas[0]][partition] = None
        while self._prefer_another(led):
            pass

    def _prefer_another(self, led: dict[int, dict[TopicPartition, None]]) -> bool:
        by_count = sorted(led, key=lambda broker: (len(led[broker]), broker))
        for most in reversed(by_count):
            for least in by_count:
                if len(led[most]) - len(led[least]) < 2:
                    break
                partition = next((one for one in led[most] if one in self._held[least]), None)
                if partition is not None:
                    replicas = self.replicas[partition]
                    place = replicas.index(least)
                    replicas[0], replicas[place] = replicas[place], replicas[0]
                    del led[most][partition]
                    led[least][partition] = None
                    return True
        return False


def copied(current: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """The brokers to which a partition is copied."""
    return [broker for broker in wanted if broker not in current]


def throttled_replicas(
    current: Assignment, wanted: Assignment
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The values of `leader.replication.throttled.replicas` and `follower.replication.throttled.replicas` by
    topic while these partitions move: present replicas send slowly, new ones receive slowly.
    """
    leaders: dict[str, list[str]] = {}
    followers: dict[str, list[str]] = {}
    for partition in sorted(wanted):
        new = copied(current[partition], wanted[partition])
        if new:
            entries = leaders.setdefault(partition.topic, [])
            entries += [f"{partition.partition}:{broker}" for broker in current[partition]]
            entries = followers.setdefault(partition.topic, [])
            entries += [f"{partition.partition}:{broker}" for broker in new]
    return leaders, followers


def brokers_of(*assignments: Assignment) -> list[int]:
    """All brokers in some assignments."""
    found: set[int] = set()
    for assignment in assignments:
        for replicas in assignment.values():
            found.update(replicas)
    return sorted(found)


def named(partitions: Iterable[TopicPartition]) -> str:
    """Partitions as Kafka's tools list them."""
    return ",".join(f"{partition.topic}-{partition.partition}" for partition in partitions)
