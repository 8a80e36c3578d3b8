"""What partitions have committed: the first replica that shows a batch below its high watermark says what it
is, and every other one must have the same batch there, then and later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pykafka_broker.protocol.records.batch import BatchHeader, iter_batches
from pykafka_broker.replication.partition import Partition
from tests.simulation.cluster.ledger import TopicPartition
from tests.simulation.cluster.remaking import label
from tests.simulation.violation import check

#: The batch that begins at an offset: its end, its leader epoch, and its checksum.
Batch = tuple[int, int, int]


class CommittedLogs:
    """The committed batches of all partitions."""

    def __init__(self) -> None:
        self._batches: dict[TopicPartition, dict[int, Batch]] = {}
        #: How far the replica of each node has been compared; a node that has started again has another one.
        self._compared: dict[tuple[int, TopicPartition], tuple[Partition, int]] = {}

    def compare(self, number: int, partition: Partition) -> None:
        """Compare what a replica has committed since it was compared last."""
        name = label(partition.topic, partition.topic_id), partition.partition
        state = partition.log.state
        replica, start = self._compared.get((number, name), (partition, 0))
        if replica is not partition:
            start = 0
        start, end = max(start, state.log_start_offset), state.high_watermark
        if end <= start:
            return
        known = self._batches.setdefault(name, {})
        for header, _ in batches(partition, start, end):
            batch = identity(header)
            other = known.setdefault(header.base_offset, batch)
            check(other == batch, f"n{number} has {batch} in {name} at {header.base_offset}, not {other}")
        self._compared[number, name] = partition, end

    def keep(self, name: TopicPartition, left: Mapping[int, Batch]) -> None:
        """A leader was elected that may lack batches, and has only these, by their base offsets."""
        known = self._batches.get(name, {})
        self._batches[name] = {base: batch for base, batch in known.items() if left.get(base) == batch}
        self._compared = {key: compared for key, compared in self._compared.items() if key[1] != name}


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
