"""A topic that is deleted and created again under its name, time after time, and clients that know it by id.

What was written under one id is never read under another, and what is acknowledged is there until the topic
is deleted. A session of an earlier id is told so, and gets nothing of the topic that has its name now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pykafka_broker.client.core.conversation import CANNOT
from pykafka_broker.client.core.metadata import find_topic, leaders_of
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.records.batch import iter_batches, read_records
from tests.simulation.cluster.client import REQUEST_MS, RETRY_MS, Client, ask
from tests.simulation.cluster.consumers import FETCH_WAIT_MS, PASSES
from tests.simulation.cluster.producers import batch_of, stored
from tests.simulation.violation import Violation, check

REMADE = "again"
#: Answers about an id that a topic has no more.
_GONE = frozenset({ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID})
#: So many errors in a row, and a reader looks which id the topic has.
_PATIENCE = 5


def label(topic: str, topic_id: bytes) -> str:
    """What the ledger calls a topic: one that is made again has another name each time."""
    return f"{topic} {topic_id.hex()}" if topic == REMADE else topic


async def remake(client: Client, replication_factor: int, pause_ms: int, goes_on: Callable[[], bool]) -> None:
    """Create the topic, and delete and create it again for as long as `goes_on`."""
    topic = CreatableTopic(
        name=REMADE, num_partitions=1, replication_factor=replication_factor, assignments=[], configs=[]
    )
    creating = CreateTopicsRequest(topics=[topic], timeout_ms=REQUEST_MS)
    deleting = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=REMADE, topic_id=ZERO_UUID)], topic_names=[], timeout_ms=REQUEST_MS
    )
    await _insist(client, creating, ErrorCode.TOPIC_ALREADY_EXISTS, lambda answer: answer.topics[0])
    while True:
        await client.pause(pause_ms)
        if not goes_on():
            return
        await _insist(
            client, deleting, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, lambda answer: answer.responses[0]
        )
        await _insist(client, creating, ErrorCode.TOPIC_ALREADY_EXISTS, lambda answer: answer.topics[0])


async def _insist(client: Client, request: object, done: ErrorCode, of: Callable[[Any], Any]) -> None:
    """Ask until it is done, by this request or by one before it whose answer was lost."""
    while True:
        try:
            if ErrorCode(of(await client.run(ask(request))).error_code) in (ErrorCode.NONE, done):
                return
        except CANNOT:
            pass
        await client.pause(RETRY_MS)


class _Known(NamedTuple):
    """What a client knows of the topic: its id, who leads its partition, and in which epoch."""

    topic_id: bytes
    leader: int
    leader_epoch: int


async def _known(client: Client) -> _Known:
    """The newest that brokers tell; raises one of CANNOT."""
    topic = await client.run(find_topic(client.brokers, REMADE, client.attempt(REQUEST_MS)))
    return _Known(topic.topic_id, leaders_of(topic)[0], topic.partitions[0].leader_epoch)


#: The id under which each value was written.
Written = dict[int, bytes]


async def write_by_id(client: Client, written: Written, pause_ms: int) -> None:
    """Write batches with acks=all, each once; one without an answer may be there or not."""
    while not client.is_over:
        await client.pause(pause_ms)
        values = [next(client.clients.values) for _ in range(client.world.random.randint(1, 3))]
        data = PartitionProduceData(index=0, records=batch_of(values, client.clock.now_ms()))
        try:
            topic_id, leader, _ = await _known(client)
            written.update(dict.fromkeys(values, topic_id))
            request = ProduceRequest(
                transactional_id=None,
                acks=-1,
                timeout_ms=REQUEST_MS,
                topic_data=[TopicProduceData(topic_id=topic_id, partition_data=[data])],
            )
            told = (await client.run(ask(request, leader))).responses[0].partition_responses[0]
        except CANNOT:
            continue
        if not told.error_code:
            place = label(REMADE, topic_id), 0
            stored(client, place, told.base_offset, values)


class ReaderById:
    """Reads in a fetch session, and stays with an id for some time when the topic has another one."""

    def __init__(self, client: Client, written: Written) -> None:
        self._client = client
        self._written = written
        #: As Kafka's own clients, it names the epoch of the leader that it knows: one that has lost its power
        #: serves readers as a follower, and may lack what they have read.
        self._known = _Known(b"", -1, -1)
        self._session_id = self._epoch = 0
        self._offset = 0
        self._errors = 0

    async def run(self) -> None:
        """Read until the simulation wants no more."""
        client = self._client
        while not client.is_over:
            try:
                await self._step()
            except CANNOT:
                self._session_id = self._epoch = 0
                self._errors += 1
                await client.pause(RETRY_MS)

    async def _step(self) -> None:
        client = self._client
        if not self._known.topic_id or self._errors >= _PATIENCE:
            known = await _known(client)
            if known.topic_id != self._known.topic_id:
                self._offset = 0
            self._known = known
            self._session_id = self._epoch = self._errors = 0
        answer = await client.run(ask(self._fetch(), self._known.leader))
        if answer.error_code:
            self._session_id = self._epoch = 0
            self._errors += 1
            return
        self._session_id, self._epoch = answer.session_id, self._epoch + 1
        for topic in answer.responses:
            for partition in topic.partitions:
                self._take(ErrorCode(partition.error_code), bytes(partition.records or b""))
        await client.pause(RETRY_MS if self._errors else FETCH_WAIT_MS // 10)

    def _take(self, code: ErrorCode, records: bytes) -> None:
        if code:
            if code not in PASSES | _GONE:
                where = f"{self._offset} of {self._known.topic_id.hex()}"
                raise Violation(f"{self._client.name} at {where} is answered {code.name}")
            self._errors += 1
            return
        self._errors = 0
        topic_id = self._known.topic_id
        place = label(REMADE, topic_id), 0
        for position, header in iter_batches(records):
            for record in read_records(memoryview(records)[position:]):
                if record.offset >= self._offset:
                    value = int(record.value or b"")
                    check(self._written[value] == topic_id, f"{value} is read in {place}")
                    self._client.ledger.consumed(place, record.offset, value)
            self._offset = max(self._offset, header.next_offset)

    def _fetch(self) -> FetchRequest:
        asked = FetchPartition(
            partition=0,
            current_leader_epoch=self._known.leader_epoch,
            fetch_offset=self._offset,
            partition_max_bytes=1 << 20,
        )
        return FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=[FetchTopic(topic_id=self._known.topic_id, partitions=[asked])],
        )
