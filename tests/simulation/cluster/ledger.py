"""What clients were promised, and what they have seen: an offset has one record for ever.

All is judged when a client is told something, or a replica shows what it has committed; in the end, what is
missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from pykafka_broker.protocol.records.batch import BatchHeader
from tests.simulation.cluster.known_log import CommittedReads, KnownLog, Stored, TopicPartition
from tests.simulation.violation import check


class Committed(NamedTuple):
    """The place of a committed offset."""

    group: str
    partition: int


class Held(NamedTuple):
    """What a member of a consumer group has, and how long it may be sure of that."""

    partitions: frozenset[int]
    until_ms: int


class Ledger:
    """Raises a Violation as soon as a promise is broken."""

    def __init__(self) -> None:
        self._logs: dict[TopicPartition, KnownLog] = {}
        #: Records of transactions whose end was acknowledged: True committed, False aborted.
        self._ended: dict[tuple[TopicPartition, int], bool] = {}
        #: The last offset of a group that is known to be committed, and the last one that may be.
        self._committed: dict[Committed, tuple[int, int]] = {}
        self._readers: dict[TopicPartition, list[CommittedReads]] = {}
        #: Who has a partition of a classic group in a generation.
        self._owners: dict[tuple[str, int, int], str] = {}
        #: What the members of each consumer group hold.
        self._held: dict[str, dict[str, Held]] = {}
        self.acknowledged = 0
        self.read = 0

    def _log(self, partition: TopicPartition) -> KnownLog:
        if partition not in self._logs:
            self._logs[partition] = KnownLog(partition)
        return self._logs[partition]

    def stored(self, partition: TopicPartition, base_offset: int, values: Iterable[int]) -> None:
        """A producer's batch was acknowledged; -1: at an offset that is not remembered."""
        log = self._log(partition)
        for position, value in enumerate(values):
            self.acknowledged += 1
            if base_offset < 0:
                log.tell_somewhere(value)
            else:
                log.tell(base_offset + position, value, "acknowledged")

    def consumed(self, partition: TopicPartition, offset: int, value: int) -> None:
        """A consumer has read a record."""
        self.read += 1
        self._log(partition).tell(offset, value, "read")

    def reads_committed(self, partition: TopicPartition) -> CommittedReads:
        """What another consumer with read_committed will have read."""
        reads = CommittedReads(partition)
        self._readers.setdefault(partition, []).append(reads)
        return reads

    def consumed_committed(self, reads: CommittedReads, records: Iterable[Stored], up_to: int) -> None:
        """A consumer with read_committed has read what follows, up to an offset."""
        reads.records += records
        reads.up_to = up_to
        self._judge(reads)

    def _judge(self, reads: CommittedReads) -> None:
        log = self._log(reads.partition)
        reads.judge(log.counting, log.stable_end)

    def batch_committed(self, partition: TopicPartition, header: BatchHeader, batch: memoryview) -> None:
        """A replica is the first to show that the next batch is committed."""
        for value in self._log(partition).commit(header, batch):
            self._judge_transaction(partition, value)
        for reads in self._readers.get(partition, ()):
            self._judge(reads)

    def keep(self, partition: TopicPartition, left: Mapping[int, int]) -> None:
        """A leader was elected that may lack records, and has only these, by their offsets: no promise of
        others counts any more. Nothing is known to be committed until it is shown again.
        """
        before, log = self._log(partition), KnownLog(partition)
        self._logs[partition] = log
        log.told = {offset: value for offset, value in before.told.items() if left.get(offset) == value}
        log.somewhere = before.somewhere & set(left.values())
        for reads in self._readers.get(partition, ()):
            reads.begin_anew()

    def end_of(self, partition: TopicPartition) -> int:
        """The offset behind the last record that is committed, or of which a client was told."""
        return self._log(partition).end

    def transaction_ended(self, values: list[tuple[TopicPartition, int]], *, committed: bool) -> None:
        """The end of a transaction was acknowledged."""
        for partition, value in values:
            self._ended[partition, value] = committed
            self._judge_transaction(partition, value)

    def _judge_transaction(self, partition: TopicPartition, value: int) -> None:
        counts, committed = self._log(partition).counts.get(value), self._ended.get((partition, value))
        if counts is not None and committed is not None:
            ended = "committed" if committed else "aborted"
            check(counts == committed, f"{value} in {partition} was {ended}, and its marker says otherwise")

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

    def has_left(self, group: str, member: str) -> None:
        """A member of a consumer group has given up everything."""
        self._held.get(group, {}).pop(member, None)

    def gives_up(self, group: str, member: str, owned: Collection[int]) -> None:
        """A member of a consumer group is about to tell its coordinator that it has only these partitions."""
        held = self._held.setdefault(group, {})
        if member in held:
            held[member] = Held(held[member].partitions & frozenset(owned), held[member].until_ms)

    def holds(self, group: str, member: str, held: Held, now_ms: int) -> None:
        """The coordinator has told a member of a consumer group what it has."""
        members = self._held.setdefault(group, {})
        members[member] = held
        for other, others in members.items():
            if other != member and min(others.until_ms, held.until_ms) > now_ms:
                both = sorted(others.partitions & held.partitions)
                check(not both, f"{other} and {member} of {group} have {both} at the same time")

    def finished(self, ends: Mapping[TopicPartition, int]) -> None:
        """Replicas have shown all that they have up to these ends, all faults healed: nothing is missing."""
        for partition, end in ends.items():
            log = self._log(partition)
            log.finished(end)
            for reads in self._readers.get(partition, ()):
                text = f"a consumer of what is committed has read up to {reads.up_to}"
                check(reads.up_to <= log.stable_end, f"{partition}: {text} of {log.stable_end}")
        self.check_markers()

    def check_markers(self) -> None:
        """The markers of all transactions whose end was acknowledged are written by now."""
        for partition, value in self._ended:
            is_decided = self._log(partition).counts.get(value) is not None
            check(is_decided, f"{value} in {partition} is of a transaction that was ended, and has no marker")
