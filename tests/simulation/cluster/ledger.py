"""What clients were promised, and what they have seen: an offset has one record for ever.

Values are numbers that no two records share; those of one producer to one partition ascend.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tests.simulation.violation import check

TopicPartition = tuple[str, int]


class Committed(NamedTuple):
    """The place of a committed offset."""

    group: str
    partition: int


class Stored(NamedTuple):
    """A record of a log; that of an aborted transaction is not `counts`."""

    offset: int
    value: int
    producer: int
    counts: bool


class CommittedReads:
    """What a consumer with read_committed has read below `up_to`: offset -> value."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.values: dict[int, int] = {}
        self.up_to = 0


class Ledger:
    """Raises a Violation as soon as a promise is broken."""

    def __init__(self) -> None:
        #: What an offset is known to hold, by an acknowledgement or by a consumer that has read it.
        self._records: dict[TopicPartition, dict[int, int]] = {}
        #: Acknowledged, at an offset that no broker remembers.
        self._somewhere: dict[TopicPartition, set[int]] = {}
        #: Values of transactions, by the transaction, and what became of it: True committed, False aborted.
        self._transactions: list[tuple[list[tuple[TopicPartition, int]], bool]] = []
        #: The last offset of a group that is known to be committed, and the last one that may be.
        self._committed: dict[Committed, tuple[int, int]] = {}
        self.readers: list[CommittedReads] = []
        #: Who has a partition of a classic group in a generation.
        self._owners: dict[tuple[str, int, int], str] = {}
        self.acknowledged = 0
        self.read = 0

    def stored(self, partition: TopicPartition, base_offset: int, values: Iterable[int]) -> None:
        """A producer's batch was acknowledged; -1: at an offset that is not remembered."""
        for position, value in enumerate(values):
            self.acknowledged += 1
            if base_offset < 0:
                self._somewhere.setdefault(partition, set()).add(value)
            else:
                self._know(partition, base_offset + position, value, "acknowledged")

    def consumed(self, partition: TopicPartition, offset: int, value: int) -> None:
        """A consumer has read a record."""
        self.read += 1
        self._know(partition, offset, value, "read")

    def _know(self, partition: TopicPartition, offset: int, value: int, how: str) -> None:
        known = self._records.setdefault(partition, {}).setdefault(offset, value)
        check(known == value, f"{partition} offset {offset} held {known}, and now {value} is {how} there")

    def keep(self, partition: TopicPartition, left: Mapping[int, int]) -> None:
        """A leader was elected that may lack records, and has only these, by their offsets: no promise of
        others counts any more.
        """
        records = self._records.get(partition, {})
        self._records[partition] = {at: value for at, value in records.items() if left.get(at) == value}
        self._somewhere[partition] = self._somewhere.get(partition, set()) & set(left.values())

    def end_of(self, partition: TopicPartition) -> int:
        """The offset behind the last record that is acknowledged, or was read."""
        return max(self._records.get(partition, ()), default=-1) + 1

    def transaction_ended(self, values: list[tuple[TopicPartition, int]], *, committed: bool) -> None:
        """The end of a transaction was acknowledged."""
        self._transactions.append((values, committed))

    def commits(self, key: Committed, offset: int) -> None:
        """A group is about to commit."""
        known, may_be = self._committed.get(key, (-1, -1))
        self._committed[key] = known, max(may_be, offset)

    def committed(self, key: Committed, offset: int) -> None:
        """The commit was acknowledged."""
        known, may_be = self._committed[key]
        self._committed[key] = max(known, offset), may_be

    def not_committed(self, key: Committed) -> None:
        """The commit was part of a transaction that was aborted."""
        known, _ = self._committed[key]
        self._committed[key] = known, known

    def known(self, key: Committed) -> int:
        """The offset that is certainly committed by now."""
        return self._committed.get(key, (-1, -1))[0]

    def offsets(self) -> list[Committed]:
        """Where groups have committed, or tried to."""
        return list(self._committed)

    def fetched(self, key: Committed, offset: int, known: int) -> None:
        """The committed offset, as the coordinator tells it; `known` was committed before it was asked."""
        known_now, may_be = self._committed.get(key, (-1, -1))
        check(
            known <= offset <= may_be,
            f"{key} has committed {known}, perhaps {may_be}, and its coordinator says {offset}",
        )
        self._committed[key] = max(known_now, offset), may_be

    def owns(self, group: str, generation: int, partition: int, member: str) -> None:
        """A member of a classic group was assigned a partition."""
        owner = self._owners.setdefault((group, generation, partition), member)
        check(owner == member, f"{owner} and {member} of {group} have {partition} in generation {generation}")

    def finished(self, logs: dict[TopicPartition, list[Stored]]) -> None:
        """Compare with the logs in the end, all faults healed."""
        for partition, log in logs.items():
            at = {record.offset: record.value for record in log}
            for offset, value in self._records.get(partition, {}).items():
                found = at.get(offset)
                check(
                    found == value, f"{partition} offset {offset} held {value}, and holds {found} in the end"
                )
            values = [record.value for record in log]
            twice = {value for value in values if values.count(value) > 1} if _has_doubles(values) else set()
            check(not twice, f"{partition} has records twice: {sorted(twice)}")
            lost = self._somewhere.get(partition, set()) - set(values)
            check(not lost, f"{partition} has lost {sorted(lost)}")
            last: dict[int, int] = {}
            for record in log:
                before = last.get(record.producer, -1)
                check(
                    before < record.value or record.producer < 0,
                    f"{partition}: {record.value} of a producer comes after {before}",
                )
                last[record.producer] = record.value
        self._check_transactions(logs)
        for reader in self.readers:
            counting = {r.offset: r.value for r in logs[reader.partition] if r.counts}
            wanted = {offset: value for offset, value in counting.items() if offset < reader.up_to}
            more = reader.values.items() - wanted.items()
            check(not more, f"{reader.partition}: a consumer of what is committed has read {sorted(more)}")
            missed = wanted.items() - reader.values.items()
            check(not missed, f"{reader.partition}: a consumer of what is committed missed {sorted(missed)}")

    def _check_transactions(self, logs: dict[TopicPartition, list[Stored]]) -> None:
        counting = {(p, record.value) for p, log in logs.items() for record in log if record.counts}
        for values, committed in self._transactions:
            for each in values:
                ended = "committed" if committed else "aborted"
                check((each in counting) == committed, f"{each} of a transaction that was {ended}: it is not")


def _has_doubles(values: list[int]) -> bool:
    return len(set(values)) < len(values)
