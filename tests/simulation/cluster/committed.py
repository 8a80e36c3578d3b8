"""What partitions have committed: the first replica that shows a batch below its high watermark says what it
is, and every other one must have the same batch there, then and later. The ledger is told the records that
clients write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pykafka_broker.protocol.records.batch import BatchHeader, check_batch, iter_batches, read_records
from pykafka_broker.replication.partition import Partition
from tests.simulation.cluster.client import TOPIC
from tests.simulation.cluster.known_log import TopicPartition
from tests.simulation.cluster.ledger import Ledger
from tests.simulation.cluster.remaking import REMADE, label
from tests.simulation.violation import check

#: The batch that begins at an offset: its end, its leader epoch, and its checksum.
Batch = tuple[int, int, int]
#: The topics that hold the values of clients.
WRITTEN = frozenset({TOPIC, REMADE})


class CommittedLogs:
    """The committed batches of all partitions."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._batches: dict[TopicPartition, dict[int, Batch]] = {}
        #: How far the replica of each node has been compared; a node that has started again has another one.
        self._compared: dict[tuple[int, TopicPartition], tuple[Partition, int]] = {}

    def compare(self, number: int, partition: Partition) -> None:
        """Compare what a replica has committed, or has truncated, since it was compared last."""
        name, state = name_of(partition), partition.log.state
        replica, start = self._compared.get((number, name), (partition, 0))
        if replica is not partition:
            start = 0
        start, end = max(start, state.log_start_offset), state.high_watermark
        if start < end:
            self._compare(number, partition, batches(partition, start, end))
        if start != end:
            self._compared[number, name] = partition, end

    def compare_all(self, number: int, partition: Partition) -> None:
        """Compare the whole log of a replica, to its last byte: all of it is committed."""
        state = partition.log.state
        found = list(batches(partition, state.log_start_offset, state.log_end_offset))
        for _, batch in found:
            check_batch(batch)
        self._compare(number, partition, found)

    def _compare(
        self, number: int, partition: Partition, found: Iterable[tuple[BatchHeader, memoryview]]
    ) -> None:
        name = name_of(partition)
        known = self._batches.setdefault(name, {})
        for header, data in found:
            batch = identity(header)
            if header.base_offset in known:
                other = known[header.base_offset]
                check(other == batch, f"n{number} has {batch} in {name} at {header.base_offset}, not {other}")
                continue
            known[header.base_offset] = batch
            if partition.topic in WRITTEN:
                self._ledger.batch_committed(name, header, data)

    def keep(self, number: int, partition: Partition) -> None:
        """A leader was elected that may lack batches: of what was committed, only what it has is now."""
        name, state = name_of(partition), partition.log.state
        left = list(batches(partition, state.log_start_offset, state.log_end_offset))
        records = (record for _, batch in left for record in read_records(batch))
        self._ledger.keep(name, {record.offset: int(record.value or b"") for record in records})
        known = self._batches.pop(name, {})
        self._compared = {key: compared for key, compared in self._compared.items() if key[1] != name}
        kept = [each for each in left if known.get(each[0].base_offset) == identity(each[0])]
        self._compare(number, partition, kept)


def name_of(partition: Partition) -> TopicPartition:
    """What the ledger calls a partition."""
    return label(partition.topic, partition.topic_id), partition.partition


def identity(header: BatchHeader) -> Batch:
    """What makes a batch the one that another replica has at its offset."""
    return header.next_offset, header.partition_leader_epoch, header.crc


def batches(partition: Partition, start: int, end: int) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The batches of a log from one offset to another."""
    while start < end:
        plan = partition.log.reader.plan_read(start, 1 << 30, limit="log_end")
        piece = memoryview(bytes(plan.read()))
        for at, header in iter_batches(piece):
            if header.next_offset <= start:
                continue
            if header.base_offset >= end:
                return
            yield header, piece[at : at + header.size_in_bytes]
        start = header.next_offset
