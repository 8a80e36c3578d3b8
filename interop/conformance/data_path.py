"""The data path, asked at random: what producers write, what readers fetch and look up.

A walk has a topic at Kafka's defaults or with settings of its own, transactional and idempotent producers,
and readers with and without a session. What it does is drawn for each step by itself, so that a walk can be
repeated without some of its steps (`data_walk.py` shortens it so), and depends on the answers otherwise.

Walks avoid what is different on purpose (`accepted.py`): null instead of records, offsets that go back inside
a batch, bytes behind one, a producer id without an epoch, a producer that says a broker has stamped its batch
or that writes other batches beside those of its transactions, a time looked for where records were deleted,
a start of the log inside a transaction, a batch out of sequence whose time begins a new segment with Apache
Kafka, which refuses it only then. They avoid what two runs of one broker answer differently: where the broker
compresses anew, nothing depends on sizes, and where it stamps records, the latest of several of one
millisecond is not asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from interop.conformance.batches import MADE_MS, changed, old_message
from interop.conformance.fetching import at, fetching, of
from interop.conformance.talk import ANY, E, Talk
from interop.conformance.transactions import (
    LAST_END_VERSION_OF_OLD_CLIENTS,
    TRANSACTION,
    adding,
    init,
    with_coordinator,
)
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages import API_NAMES
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pykafka_broker.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from pykafka_broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from pykafka_broker.protocol.messages.end_txn import EndTxnRequest
from pykafka_broker.protocol.messages.fetch import FetchPartition, ForgottenTopic
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from pykafka_broker.protocol.records.batch import (
    HEADER_BYTES,
    MAGIC,
    MAGIC_OFFSET,
    BatchFields,
    Codec,
    build_batch,
    read_header,
)

PARTITIONS = 2
NONE = int(E.NONE)

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
EARLIEST, LATEST_TIME = -2, -3
#: Timestamps of ListOffsets that are no times.
SPECIAL_TIMES = (-1, EARLIEST, LATEST_TIME, -4, -5, -6)
#: Above the highest that a cluster of a run gives out.
UNALLOCATED_PRODUCER_ID = 2**40
#: Of the coordinator of a fresh node.
COORDINATOR_EPOCH = 0
#: The topic is led for the first time.
LEADER_EPOCH = 0
#: A limit that ends no answer.
NO_LIMIT = 10_000_000

CONTROL, DELETE_HORIZON = 0x20, 0x40

Batch = tuple[bytes, int]


@dataclass
class Held:
    """The state that a producer believes in."""

    #: None for one that is idempotent and nothing else.
    id: str | None
    producer_id: int = -1
    epoch: int = -1
    #: By partition, the sequence of the next record.
    sequences: dict[int, int] = field(default_factory=dict)


@dataclass
class Session:
    """The state that a reader with a session believes in."""

    id: int
    epoch: int
    version: int


@dataclass(frozen=True)
class Entry:
    """One step of a walk, as it is told."""

    step: int
    #: How many answers were compared before it.
    answers: int
    text: str


def settings(chance: Random) -> dict[str, str]:
    """Kafka's defaults as often as settings of its own."""
    if chance.random() < 0.5:
        return {}
    configs: dict[str, str] = {}

    def maybe(key: str, *values: str) -> None:
        if chance.random() < 0.5:
            configs[key] = chance.choice(values)

    maybe("cleanup.policy", "compact", "compact,delete")
    if "cleanup.policy" in configs:
        configs["min.cleanable.dirty.ratio"] = "1"  # nothing is cleaned while the walk looks
    maybe("message.timestamp.type", "LogAppendTime")
    maybe("compression.type", "uncompressed", "gzip", "snappy", "lz4", "zstd")
    maybe("message.timestamp.before.max.ms", str(HOUR_MS), str(DAY_MS))
    maybe("message.timestamp.after.max.ms", str(MINUTE_MS), str(DAY_MS))
    maybe("segment.ms", str(MINUTE_MS), str(DAY_MS))
    maybe("index.interval.bytes", "0", "200")
    if "compression.type" not in configs:
        maybe("internal.segment.bytes", "400", "2000")
        maybe("max.message.bytes", "150", "500")
    return configs


class DataPath:
    """One topic, its producers and its readers."""

    def __init__(self, talk: Talk, seed: int, now_ms: int) -> None:
        self.talk, self.seed, self.now_ms = talk, seed, now_ms
        self.chance = Random(f"{seed}")
        self.told: list[Entry] = []
        self.number = 0
        self.configs = settings(self.chance)
        self.sizes_count = "compression.type" not in self.configs
        talk.names.bodies_are_the_producers = self.sizes_count
        #: Whether there may be records with times of the broker's own clock.
        self.stamps = self.configs.get("message.timestamp.type") == "LogAppendTime"
        self.topic = talk.topic(partitions=PARTITIONS, configs=self.configs)
        self.transactional = [Held(talk.name(label)) for label in ("one", "two")]
        for held in self.transactional:
            assert held.id is not None
            with_coordinator(talk, held.id)
            talk.do(FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[held.id]))
        self.producers = [*self.transactional, Held(None), Held(None)]
        for held in self.producers:
            self.init(held)
        #: By partition, the offset after the last record that is known.
        self.ends = dict.fromkeys(range(PARTITIONS), 0)
        #: Batches that were taken, to send them again.
        self.sent: list[tuple[int, Batch, str | None]] = []
        #: By partition, where batches begin.
        self.batches: dict[int, list[int]] = {partition: [0] for partition in range(PARTITIONS)}
        #: Partitions whose beginning was deleted.
        self.cut: set[int] = set()
        self.session: Session | None = None

    # ---- a step ----

    def step(self, number: int) -> None:
        self.number, self.chance = number, Random(f"{self.seed}/{number}")
        steps: list[tuple[Callable[[], None], int]] = [
            (self.produce_plainly, 14),
            (self.produce_again, 3),
            (self.produce_with_a_producer_id, 16),
            (self.begin_or_add, 4),
            (self.end, 6),
            (self.mark, 1),
            (self.init_again, 2),
            (self.fetch, 16),
            (self.fetch_in_session, 8),
            (self.look_up, 12),
            (self.ask_epochs, 2),
            (self.see_producers, 3),
            (self.delete_records, 1),
        ]
        (step,) = self.chance.choices([each for each, _ in steps], [weight for _, weight in steps])
        step()

    def finish(self) -> None:
        """Everything that is there, and by which time it is found."""
        self.number += 1
        earliest = self.ask(self.looking_up([(partition, EARLIEST) for partition in range(PARTITIONS)]), 11)
        starts = {each.partition_index: each.offset for each in earliest.topics[0].partitions}
        everything = [at(offset, partition) for partition, offset in sorted(starts.items())]
        for isolation_level in (0, 1):
            self.ask(fetching(of(self.topic, *everything), min_bytes=0, isolation_level=isolation_level), 18)
        for time_ms in (*SPECIAL_TIMES, 0, MADE_MS, self.now_ms - DAY_MS, self.now_ms + 30 * MINUTE_MS):
            partitions = [
                partition for partition in range(PARTITIONS) if self.can_look_up(partition, time_ms)
            ]
            if partitions:
                self.ask(self.looking_up([(partition, time_ms) for partition in partitions]), 11)
        self.see_producers()

    def ask(self, request: Any, version: int) -> Any:
        said = f"{API_NAMES[request.api_key]} v{version}: {brief(request, version)}"
        self.told.append(Entry(self.number, len(self.talk.transcript.answers), said))
        return self.talk.ask(request, ANY, version=version)

    # ---- producing ----

    def a_time(self) -> int:
        """None within an hour of now but now itself, which no two runs share."""
        near = self.chance.randint(0, 9)
        times = [-1, 0, MADE_MS + near, MADE_MS + 1000 * near, self.now_ms - 2 * DAY_MS + near]
        times += [self.now_ms - 2 * HOUR_MS + near, self.now_ms, self.now_ms + 30 * MINUTE_MS + near]
        times += [self.now_ms + 2 * HOUR_MS, self.now_ms + 2 * DAY_MS]
        (chosen,) = self.chance.choices(times, [3, 1, 12, 12, 4, 4, 3, 3, 1, 1])
        return chosen

    def records(self) -> list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]:
        chance = self.chance
        count = chance.choices([1, 2, 3, 8], [6, 3, 3, 1])[0]
        first = self.a_time()
        step = chance.choice([0, 1, 1000, -1])
        mixed = chance.random() < 0.2
        keyed = chance.random() < (0.95 if "cleanup.policy" in self.configs else 0.3)
        records = []
        for index in range(count):
            time_ms = self.a_time() if mixed else max(first + index * step, -1)
            key = b"key %d" % chance.randint(0, 3) if keyed else None
            value = chance.choice([None, b"", b"value", bytes([index]) * chance.randint(1, 120)])
            headers: list[tuple[str, bytes | None]] = [("h", b"1"), ("h", None)] * (chance.random() < 0.1)
            records.append((time_ms, key, value, headers))
        return records

    def batch(self, *, without_times: bool = False, **more: Any) -> Batch:
        """A batch and the number of its records; now and then one that no honest producer sends."""
        chance = self.chance
        records = self.records()
        if without_times:
            records = [(0, key, value, headers) for _, key, value, headers in records]
        if chance.random() < 0.15:
            more["max_timestamp"] = self.a_time()
        data = build_batch(records, BatchFields(codec=chance.choice(list(Codec)), **more))
        if chance.random() < 0.06:
            header = read_header(data)
            wrong: dict[str, Any] = chance.choice(
                [
                    {"base_offset": 5},
                    {"partition_leader_epoch": 3},
                    {"crc": header.crc ^ 1},
                    {"last_offset_delta": header.last_offset_delta + 1},
                    {"records_count": header.records_count + 1},
                    {"attributes": header.attributes | CONTROL},
                    {"attributes": header.attributes | DELETE_HORIZON},
                ]
            )
            data = changed(data, **wrong)
        return data, len(records)

    def produce(
        self, partitions: dict[int, Batch], *, version: int, transactional_id: str | None = None
    ) -> dict[int, bool]:
        """By partition, whether the batch was taken."""
        topic = TopicProduceData(
            name=self.topic.name,
            topic_id=self.topic.id,
            partition_data=[
                PartitionProduceData(index=partition, records=data)
                for partition, (data, _) in partitions.items()
            ],
        )
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=self.chance.choice([-1, -1, 1]),
            timeout_ms=10_000,
            topic_data=[topic],
        )
        answer = self.ask(request, version)
        answered = {each.index: each for each in answer.responses[0].partition_responses}
        for partition, batch in partitions.items():  # not in the order of the answer, which has none
            if answered[partition].error_code == NONE:
                self.ends[partition] = max(self.ends[partition], answered[partition].base_offset + batch[1])
                self.batches[partition].append(answered[partition].base_offset)
                self.sent.append((partition, batch, transactional_id))
        return {partition: each.error_code == NONE for partition, each in answered.items()}

    def produce_plainly(self) -> None:
        version = self.chance.randint(3, 13)
        partitions = self.chance.choice([[0], [0], [1], [0, 1]])
        if self.chance.random() < 0.02:
            data = old_message(self.chance.randint(0, 1), b"value")
            if self.chance.random() < 0.5:
                data = self.batch()[0] + self.batch()[0]  # of which there may be one
            self.produce({0: (data, 1)}, version=version)
            return
        self.produce({partition: self.batch() for partition in partitions}, version=version)

    def produce_again(self) -> None:
        """Send a batch that was taken before: a duplicate, if a producer id stands in it."""
        if not self.sent:
            self.produce_plainly()
            return
        partition, batch, transactional_id = self.chance.choice(self.sent[-8:])
        version = self.chance.randint(3, 13)
        self.produce({partition: batch}, version=version, transactional_id=transactional_id)

    def produce_with_a_producer_id(self) -> None:
        held = self.chance.choice(self.producers)
        chance = self.chance
        version = chance.choice([3, 7, 9, 11, 12, 13, 13, 13]) if held.id else chance.randint(3, 13)
        producer_id, epoch = self.identity(held)
        if chance.random() < 0.03:
            producer_id = UNALLOCATED_PRODUCER_ID + (held.id is not None)
        transactional = held.id is not None
        partition = chance.randrange(PARTITIONS)
        sequence = held.sequences.get(partition, 0)
        given = max(sequence + chance.choices([0, -1, 1, 7], [20, 1, 1, 1])[0], 0)
        batch = self.batch(
            without_times=(producer_id, epoch, given) != (held.producer_id, held.epoch, sequence),
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=given,
            transactional=transactional,
        )
        taken = self.produce({partition: batch}, version=version, transactional_id=held.id)
        if taken[partition]:
            held.sequences[partition] = max(sequence, given + batch[1])
        self.settle(held)

    # ---- transactions ----

    def identity(self, held: Held) -> tuple[int, int]:
        """Mostly the right one."""
        return held.producer_id, max(held.epoch + self.chance.choices([0, -1, 1], [24, 1, 1])[0], 0)

    def settle(self, held: Held) -> None:
        if held.id is not None:
            self.talk.ask(
                DescribeTransactionsRequest(transactional_ids=[held.id]),
                ANY,
                until=lambda answer: not answer.transaction_states[0].transaction_state.startswith("Prepare"),
            )

    def init(self, held: Held, version: int = 5) -> None:
        if held.id is None:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        else:
            request = init(held.id)
        answer = self.ask(request, version)
        self.stamps = self.stamps or self.number > 0  # with markers, if a transaction was open
        if answer.error_code == NONE:
            held.producer_id, held.epoch = answer.producer_id, answer.producer_epoch
            held.sequences.clear()

    def init_again(self) -> None:
        held = self.chance.choice(self.producers)
        self.init(held, self.chance.randint(0, 5))
        self.settle(held)

    def begin_or_add(self) -> None:
        held = self.chance.choice(self.transactional)
        assert held.id is not None
        asked = (self.topic.name, self.chance.choice([[0], [1], [0, 1]]))
        self.ask(adding(held.id, *self.identity(held), asked), self.chance.randint(0, 3))
        self.settle(held)

    def end(self) -> None:
        held = self.chance.choice(self.transactional)
        assert held.id is not None
        version = self.chance.choice([0, 2, 3, 4, 5, 5, 5, 5])
        producer_id, epoch = self.identity(held)
        request = EndTxnRequest(
            transactional_id=held.id,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=self.chance.random() < 0.5,
        )
        answer = self.ask(request, version)
        self.stamps = True
        if answer.error_code == NONE and version > LAST_END_VERSION_OF_OLD_CLIENTS:
            held.producer_id, held.epoch = answer.producer_id, answer.producer_epoch
            held.sequences.clear()
        self.settle(held)

    def mark(self) -> None:
        """A marker that no coordinator has sent, of an epoch that does not keep the coordinator's away."""
        held = self.chance.choice(self.producers)
        version = self.chance.choice([1, 2])
        marker = WritableTxnMarker(
            producer_id=held.producer_id,
            producer_epoch=held.epoch,
            transaction_result=self.chance.random() < 0.5,
            topics=[WritableTxnMarkerTopic(name=self.topic.name, partition_indexes=[0])],
            coordinator_epoch=self.chance.choice([COORDINATOR_EPOCH] * 3 + [-1]),
            transaction_version=self.chance.choice([0, 1]) if version >= 2 else 0,
        )
        self.ask(WriteTxnMarkersRequest(markers=[marker]), version)
        self.stamps = True

    # ---- reading ----

    def an_offset(self, partition: int) -> int:
        end = self.ends[partition]
        return self.chance.choice(
            [0, 0, end, end - 1, end + 1, end + 100, -1, *(self.chance.randint(0, end) for _ in range(8))]
        )

    def limits(self, isolation_level: int, *values: int) -> list[int]:
        """With an entry in the index for each batch, what an answer tells of aborted transactions depends on
        whether it ends inside a batch, as Apache Kafka's do, or behind one.
        """
        if isolation_level and "index.interval.bytes" in self.configs:
            return [NO_LIMIT]
        return [*values, NO_LIMIT] if self.sizes_count else [1, NO_LIMIT]

    def fetched(self, partition: int, version: int, isolation_level: int) -> FetchPartition:
        chance = self.chance
        limits = self.limits(isolation_level, 1, 90, 200, 1000, NO_LIMIT)
        more: dict[str, int] = {"max_bytes": chance.choice(limits)}
        if version >= 9 and chance.random() < 0.2:
            more["current_leader_epoch"] = LEADER_EPOCH + chance.choice([0, 0, 1, -1])
        if version >= 12 and chance.random() < 0.2:
            more["last_fetched_epoch"] = LEADER_EPOCH + chance.choice([0, 0, 1])
        return at(self.an_offset(partition), partition, **more)

    def fetch(self) -> None:
        chance = self.chance
        version, isolation_level = chance.randint(4, 18), chance.randint(0, 1)
        named = chance.choice([[0], [1], [0, 1]])
        partitions = [self.fetched(partition, version, isolation_level) for partition in named]
        max_bytes = NO_LIMIT
        if len(partitions) == 1:
            max_bytes = chance.choice(self.limits(isolation_level, 0, 1, 300, NO_LIMIT))
        request = fetching(
            of(self.topic, *partitions),
            min_bytes=0,
            max_bytes=max_bytes,
            isolation_level=isolation_level,
        )
        self.ask(request, version)

    def fetch_in_session(self) -> None:
        chance = self.chance
        session = self.session
        if session is None or chance.random() < 0.1:
            version = chance.randint(7, 18)
            named = chance.choice([[0], [1], [0, 1], [1, 0]])
            session, forgotten = Session(0, 0, version), []
        else:
            named = chance.choice([[], [], [], [0], [1], [0, 1]])
            forgotten = chance.choice([[], [], [], [], [0], [1]])
        wrong = chance.choices([0, 1, 2], [30, 1, 1])[0]
        isolation_level = 0 if "index.interval.bytes" in self.configs else chance.randint(0, 1)
        gone = ForgottenTopic(topic=self.topic.name, topic_id=self.topic.id, partitions=forgotten)
        partitions = [self.fetched(partition, session.version, isolation_level) for partition in named]
        request = fetching(
            *([of(self.topic, *partitions)] if partitions else []),
            min_bytes=0,
            isolation_level=isolation_level,
            session_id=session.id + (wrong == 1),
            session_epoch=session.epoch + (wrong == 2),
            forgotten_topics_data=[gone] if forgotten else [],
        )
        answer = self.ask(request, session.version)
        if answer.error_code != NONE or answer.session_id == 0:
            self.session = None
        else:
            self.session = Session(answer.session_id, session.epoch + 1 + (wrong == 2), session.version)

    # ---- looking up ----

    def looking_up(self, asked: list[tuple[int, int]], isolation_level: int = 0) -> ListOffsetsRequest:
        partitions = [
            ListOffsetsPartition(partition_index=partition, timestamp=time_ms) for partition, time_ms in asked
        ]
        topics = [ListOffsetsTopic(name=self.topic.name, partitions=partitions)]
        return ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics)

    def can_look_up(self, partition: int, time_ms: int) -> bool:
        return not self.stamps if time_ms == LATEST_TIME else time_ms < 0 or partition not in self.cut

    def look_up(self) -> None:
        chance = self.chance
        version = chance.randint(1, 11)
        asked = []
        for partition in chance.choice([[0], [1], [0, 1]]):
            time_ms = chance.choice(SPECIAL_TIMES) if chance.random() < 0.4 else self.a_time()
            if not self.can_look_up(partition, time_ms):
                time_ms = EARLIEST
            asked.append((partition, time_ms + chance.choice([0, 0, 1]) * (time_ms >= 0)))
        self.ask(self.looking_up(asked, chance.randint(0, 1)), version)

    def ask_epochs(self) -> None:
        asked = OffsetForLeaderPartition(
            partition=self.chance.randrange(PARTITIONS),
            current_leader_epoch=self.chance.choice([-1, LEADER_EPOCH, LEADER_EPOCH + 1]),
            leader_epoch=self.chance.choice([-1, LEADER_EPOCH, LEADER_EPOCH, LEADER_EPOCH + 1, 5]),
        )
        topics = [OffsetForLeaderTopic(topic=self.topic.name, partitions=[asked])]
        self.ask(OffsetForLeaderEpochRequest(topics=topics), self.chance.randint(2, 4))

    def see_producers(self) -> None:
        everything = TopicRequest(name=self.topic.name, partition_indexes=list(range(PARTITIONS)))
        self.ask(DescribeProducersRequest(topics=[everything]), 0)

    def delete_records(self) -> None:
        partition = self.chance.randrange(PARTITIONS)
        end = self.ends[partition]
        offset = self.chance.choice(
            [-1, end, end + 1, *self.batches[partition], *self.batches[partition][-3:]]
        )
        self.cut.add(partition)
        asked = DeleteRecordsPartition(partition_index=partition, offset=offset)
        topics = [DeleteRecordsTopic(name=self.topic.name, partitions=[asked])]
        self.ask(DeleteRecordsRequest(topics=topics, timeout_ms=10_000), self.chance.randint(0, 2))


def brief(message: Any, version: int) -> str:
    """The fields that do not have their defaults, on one line."""
    parts = []
    for declared in schema_of(message).fields:
        value = getattr(message, declared.name)
        if version not in declared.versions or value in (None, "", [], -1):
            continue
        if declared.kind == "records":
            value = f"<{len(value)} bytes{told_batch(bytes(value))}>"
        elif declared.kind == "array" and declared.element is not None and declared.element.kind == "struct":
            value = "[" + "; ".join(brief(each, version) for each in value) + "]"
        elif declared.kind == "struct":
            value = f"({brief(value, version)})"
        elif isinstance(value, bytes):
            continue  # ids are drawn at random
        parts.append(f"{declared.name}={value}")
    return " ".join(parts)


def told_batch(data: bytes) -> str:
    if len(data) < HEADER_BYTES or data[MAGIC_OFFSET] != MAGIC:
        return " of another format"
    header = read_header(data)._asdict()
    return ":" + "".join(f" {name}={each}" for name, each in header.items() if name not in ("magic", "crc"))
