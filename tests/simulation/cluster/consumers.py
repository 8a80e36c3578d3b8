"""Consumers: each reads a partition from its beginning on, whichever broker leads it."""

from __future__ import annotations

from collections.abc import Iterator

from pykafka_broker.client.core.conversation import CANNOT
from pykafka_broker.client.core.metadata import find_topic, leaders_of
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.records.batch import iter_batches, read_records
from pykafka_broker.replication.core.access import READ_COMMITTED
from tests.simulation.cluster.client import REQUEST_MS, RETRY_MS, TOPIC, Client, ask
from tests.simulation.cluster.known_log import CommittedReads, Stored
from tests.simulation.violation import Violation, check

FETCH_WAIT_MS = 500
BETWEEN_FETCHES_MS = 30
LATEST = -1

#: What a consumer may be answered while the cluster changes.
PASSES = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)


class Consumer:
    """One consumer of one partition."""

    def __init__(
        self,
        client: Client,
        partition: int,
        isolation_level: int,
        rack: str = "",
        *,
        begins_anew: bool = False,
    ) -> None:
        self._client = client
        self._partition = partition
        self._isolation_level = isolation_level
        self._offset = 0
        self._leader: int | None = None
        self._rack = rack
        #: Whether it reads from the beginning again with each leader, which may lack what it has read.
        self._begins_anew = begins_anew
        #: The follower in its rack, if the leader has named one; it reads from that.
        self._near: int | None = None
        #: As Kafka's own clients, it takes no metadata older than what it has.
        self._epoch = -1
        #: The last high watermark, and the leader epoch it was told in.
        self._high_watermark = -1, -1
        #: Producers whose transaction that is being read was aborted.
        self._aborted: set[int] = set()
        self._reads: CommittedReads | None = None
        if isolation_level == READ_COMMITTED:
            self._reads = client.ledger.reads_committed((TOPIC, partition))

    async def run(self) -> None:
        """Read until the simulation wants no more."""
        client = self._client
        while not client.is_over:
            try:
                code = await self._step()
            except CANNOT:
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            if code in PASSES:
                self._leader = None
                await client.pause(RETRY_MS)
            elif code:
                text = f"{client.name} at {self._offset} of {self._partition} is answered {code.name}"
                raise Violation(text)
            else:
                await client.pause(BETWEEN_FETCHES_MS)

    async def _step(self) -> ErrorCode:
        client = self._client
        if self._leader is None:
            topic = await client.run(find_topic(client.brokers, TOPIC, client.attempt(REQUEST_MS)))
            epoch = next(p.leader_epoch for p in topic.partitions if p.partition_index == self._partition)
            if epoch < self._epoch:
                return ErrorCode.LEADER_NOT_AVAILABLE
            is_new = epoch > self._epoch
            self._epoch, self._leader = epoch, leaders_of(topic)[self._partition]
            if is_new and self._begins_anew:
                self._begin_anew()
            if is_new:
                return await self._look_at_end(self._leader)
        if client.world.happens(0.05):
            self._near = None
            return await self._look_at_end(self._leader)
        near, self._near = self._near, None
        node_id = self._leader if near is None else near
        before = client.clients.leader_epoch(node_id, self._partition)
        response = await client.run(ask(self._fetch(), node_id, at_most=12))
        after = client.clients.leader_epoch(node_id, self._partition)
        answer: PartitionData = response.responses[0].partitions[0]
        code = ErrorCode(answer.error_code)
        if not code and before is not None and after is not None:
            text = f"names the epoch {self._epoch}, and n{node_id} answers in one from {before} to {after}"
            check(before <= self._epoch <= after, f"{client.name} {text}")
        if code is ErrorCode.OFFSET_OUT_OF_RANGE and near is not None:
            # The follower lacks what the leader had; as Kafka's own clients, it asks the leader.
            return ErrorCode.NONE
        if code:
            return code
        if answer.preferred_read_replica >= 0:
            self._near = answer.preferred_read_replica
        else:
            self._near = near
            self._take(answer)
        return code

    def _begin_anew(self) -> None:
        self._offset = 0
        self._aborted.clear()
        if self._reads is not None:
            self._reads.begin_anew()

    async def _look_at_end(self, leader: int) -> ErrorCode:
        """The end of the log never goes back behind what was read, whoever leads."""
        asked = ListOffsetsPartition(
            partition_index=self._partition, current_leader_epoch=self._epoch, timestamp=LATEST
        )
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=self._isolation_level,
            topics=[ListOffsetsTopic(name=TOPIC, partitions=[asked])],
        )
        answer = (await self._client.run(ask(request, leader, at_most=8))).topics[0].partitions[0]
        code = ErrorCode(answer.error_code)
        if not code:
            text = f"names the epoch {self._epoch}, and is told the end in {answer.leader_epoch}"
            check(answer.leader_epoch == self._epoch, f"{self._client.name} {text}")
            text = f"has read up to {self._offset} and is told that the end is {answer.offset}"
            check(answer.offset >= self._offset, f"{self._client.name} {text}")
        return code

    def _take(self, answer: PartitionData) -> None:
        before, epoch = self._high_watermark
        # A follower may tell a lower one than its leader, and after a start than it told before.
        if self._near is None:
            if epoch == self._epoch:
                text = f"is told the high watermark {answer.high_watermark} after {before}"
                check(answer.high_watermark >= before, f"{self._client.name} {text}")
            self._high_watermark = answer.high_watermark, self._epoch
        records = list(self._read(answer))
        for record in records:
            self._client.ledger.consumed((TOPIC, self._partition), *record)
        if self._reads is not None:
            self._client.ledger.consumed_committed(self._reads, records, self._offset)

    def _read(self, answer: PartitionData) -> Iterator[Stored]:
        """The records that count to this consumer."""
        data = bytes(answer.records or b"")
        aborted = {(one.producer_id, one.first_offset) for one in answer.aborted_transactions or []}
        for position, header in iter_batches(data):
            if header.next_offset <= self._offset:
                continue
            self._aborted |= {one for one, first in aborted if first <= header.last_offset}
            aborted = {(one, first) for one, first in aborted if first > header.last_offset}
            if header.is_control:
                self._aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in self._aborted):
                for record in read_records(memoryview(data)[position:]):
                    if record.offset >= self._offset:
                        yield Stored(record.offset, int(record.value or b""))
            self._offset = header.next_offset

    def _fetch(self) -> FetchRequest:
        asked = FetchPartition(
            partition=self._partition,
            current_leader_epoch=self._epoch,
            fetch_offset=self._offset,
            partition_max_bytes=1 << 20,
        )
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=self._isolation_level,
            rack_id=self._rack,
            topics=[FetchTopic(topic=TOPIC, partitions=[asked])],
        )
