"""Random conversations of streams groups with a broker of Apache Kafka, and with our core beside it.

    python -m interop.streams_groups.live [CONVERSATIONS]

Says how many of CONVERSATIONS (100 by default) are answered otherwise, and how many groups have other records
in `__consumer_offsets`.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from interop.streams_groups.conversations import NOT_READY, READY, TOPICS, heartbeat
from interop.streams_groups.records import encoded
from interop.streams_groups.wire import ours, request, theirs
from pykafka_broker.client.blocking import BlockingConnection
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.coordinator.groups.core.config import StreamsGroupSettings
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.streams.events import StreamsGroupHeartbeatResult
from pykafka_broker.coordinator.groups.core.streams.heartbeat import on_heartbeat
from pykafka_broker.coordinator.groups.core.streams.state import StreamsGroup
from pykafka_broker.coordinator.groups.core.topics import TopicInfo, Topics
from pykafka_broker.machine.step import Reply
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.metadata import MetadataRequest
from pykafka_broker.protocol.records.batch import read_records
from pykafka_broker.testing.apache.broker import ApacheBroker

PROPERTIES = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.num.standby.replicas": "1",
    "group.streams.max.size": "5",
    "offsets.topic.num.partitions": "1",
    "auto.create.topics.enable": "false",
}
SETTINGS = StreamsGroupSettings(
    initial_rebalance_delay_ms=0, assignment_interval_ms=0, num_standby_replicas=1, max_size=5
)
#: How often the broker is asked again until it has its topics, and how long it is left alone in between.
ATTEMPTS, PAUSE_S = 60, 0.5
TARGET_METADATA_KEY = 20
#: The version and the epoch of a target, without the time it was made.
UNTIMED_BYTES = 6
BATCH_OVERHEAD = 12

KeyValue = tuple[str, str | None]


def main(count: int) -> None:
    logs: dict[str, list[Record]] = {}
    with ApacheBroker(PROPERTIES) as broker:
        host, port = broker.address.split(":")
        connection = BlockingConnection(Address(host, int(port)))
        topics = prepared(connection)
        for number in range(count):
            log = conversation(connection, topics, f"g{number}", random.Random(number))
            if log is not None:
                logs[f"g{number}"] = log
        connection.close()
        written = records_of(broker.data_dir / "__consumer_offsets-0")
    print(f"{count} conversations, {count - len(logs)} answered otherwise than by Apache Kafka")
    other = [
        name for name, log in logs.items() if [untimed(record) for record in log] != written.get(name, [])
    ]
    total = sum(map(len, logs.values()))
    print(f"{total} records of {len(logs)} groups, {len(other)} groups with others: {other[:5]}")


def prepared(connection: BlockingConnection) -> Topics:
    """The topics, once the broker has them and serves groups."""
    new = [
        CreatableTopic(name=name, num_partitions=size, replication_factor=1, assignments=[], configs=[])
        for name, size in TOPICS.items()
    ]
    connection.send(CreateTopicsRequest(topics=new, timeout_ms=10_000))
    for _ in range(ATTEMPTS):
        time.sleep(PAUSE_S)
        found = connection.send(FindCoordinatorRequest(key_type=0, coordinator_keys=["g0"]))
        known = {topic.name: topic for topic in connection.send(MetadataRequest(topics=None)).topics}
        if not found.coordinators[0].error_code and known.keys() >= TOPICS.keys():
            break
    time.sleep(4 * PAUSE_S)
    return Topics({name: TopicInfo(name, known[name].topic_id, size) for name, size in TOPICS.items()})


def conversation(
    connection: BlockingConnection, topics: Topics, group_id: str, rng: random.Random
) -> list[Record] | None:
    """Talk to both for a while; the records of our side, or None if they answer differently."""
    group: StreamsGroup | None = None
    log: list[Record] = []
    topology = rng.choice([*READY, *READY, *NOT_READY])
    said = {
        "token": 1,
        "now_ms": 1_000_000,
        "group_id": group_id,
        "client_id": "pykafka-broker",
        "client_host": "/127.0.0.1",
    }
    for _ in range(rng.randint(15, 40)):
        event = heartbeat(rng, group, topology, said)
        step = on_heartbeat(group, event, topics, SETTINGS)
        group = step.state
        log += [record for record in step.records if isinstance(record, Record)]
        results = [effect.result for effect in step.effects if isinstance(effect, Reply)]
        assert isinstance(results[0], StreamsGroupHeartbeatResult)
        answer = theirs(connection.send(request(event)))
        if ours(results[0]) != answer:
            print(event, "\n  theirs", answer, "\n  ours  ", ours(results[0]))
            return None
    return log


def untimed(record: Record) -> KeyValue:
    key = encoded(record.key, key=True)
    return _untimed(key, None if record.value is None else encoded(record.value, key=False))


def _untimed(key: str, value: str | None) -> KeyValue:
    """The time at which a target was made is of the clock."""
    if value is not None and int(key[:4], 16) == TARGET_METADATA_KEY:
        return key, value[: 2 * UNTIMED_BYTES]
    return key, value


def records_of(folder: Path) -> Mapping[str, list[KeyValue]]:
    """The records that the broker has written of each group, in hexadecimal digits."""
    found: dict[str, list[KeyValue]] = {}
    for path in sorted(folder.glob("*.log")):
        for batch in _batches(path.read_bytes()):
            for record in read_records(batch):
                key = bytes(record.key or b"")
                value = None if record.value is None else bytes(record.value).hex()
                name = key[4 : 4 + int.from_bytes(key[2:4])].decode()
                found.setdefault(name, []).append(_untimed(key.hex(), value))
    return found


def _batches(data: bytes) -> Iterator[bytes]:
    position = 0
    while position + BATCH_OVERHEAD <= len(data):
        end = position + BATCH_OVERHEAD + int.from_bytes(data[position + 8 : position + BATCH_OVERHEAD])
        yield data[position:end]
        position = end


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
