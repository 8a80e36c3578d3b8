"""The files that two brokers leave on disk after the same conversation: Apache Kafka and ours, file by file.

One raw client says the same to both, both are stopped in order, and then every file of the topics' partitions
is compared: segments batch by batch, indexes, transaction indexes, producer snapshots, leader epochs; and the
records of `__consumer_offsets`, `__transaction_state` and `__cluster_metadata` as Kafka's own
`DumpLogSegments` prints them. Only what differs from run to run is evened out first: ids, and the brokers'
own times and directories.
"""

from __future__ import annotations

import json
import re
import struct
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

from interop.dump_check import DUMP
from interop.frames.kafka import Kafka
from pykafka_broker.protocol.compile import decode
from pykafka_broker.protocol.messages import add_partitions_to_txn as adding
from pykafka_broker.protocol.messages import create_topics as creating
from pykafka_broker.protocol.messages import delete_records as deleting
from pykafka_broker.protocol.messages import end_txn as ending
from pykafka_broker.protocol.messages import find_coordinator as finding
from pykafka_broker.protocol.messages import incremental_alter_configs as altering
from pykafka_broker.protocol.messages import init_producer_id as beginning
from pykafka_broker.protocol.messages import offset_commit as committing
from pykafka_broker.protocol.messages import offset_delete as forgetting
from pykafka_broker.protocol.messages import produce as producing
from pykafka_broker.protocol.messages.records.producer_snapshot import ProducerSnapshot
from pykafka_broker.protocol.records.batch import (
    BatchFields,
    Codec,
    build_batch,
    iter_batches,
    record_bytes,
)
from pykafka_broker.testing.apache.broker import ApacheBroker
from pykafka_broker.testing.apache.tools import run_tool
from pykafka_broker.testing.processes import BrokerProcess, PykafkaBroker

NOW = 1_700_000_000_000
TOPICS: dict[str, dict[str, str]] = {
    "plain": {"segment.bytes": "1048576", "index.interval.bytes": "1000"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "recompressed": {"compression.type": "gzip"},
    "compacted": {"cleanup.policy": "compact"},
    "transactional": {},
}
#: Settings of both brokers: short answers, few partitions.
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "1",
    "auto.create.topics.enable": "false",
}
#: What we keep beside Kafka's files: the last five batches of each producer, from where on compaction has
#: left out nothing, and room for a start on a full disk.
ONLY_OURS = (".window", ".dense.deleted", ".reserve")
Row = tuple[Any, ...]


# --- the conversation -------------------------------------------------------------------------------


def converse(address: str) -> None:
    """Everything that leaves something on disk; each answer has to be without an error."""
    kafka = Kafka(address)
    for name, configs in TOPICS.items():
        topic = creating.CreatableTopic(
            name=name,
            num_partitions=2,
            replication_factor=1,
            assignments=[],
            configs=[creating.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        kafka.call_until_ok(creating.CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    _produce_plainly(kafka)
    _produce_once(kafka)
    _commit_and_forget(kafka)
    _transact(kafka)
    partition = deleting.DeleteRecordsPartition(partition_index=0, offset=7)
    deleted = deleting.DeleteRecordsTopic(name="plain", partitions=[partition])
    kafka.call_until_ok(deleting.DeleteRecordsRequest(topics=[deleted], timeout_ms=10_000), 2)
    config = altering.AlterableConfig(name="retention.ms", config_operation=0, value="-1")
    resource = altering.AlterConfigsResource(resource_type=2, resource_name="plain", configs=[config])
    kafka.call_until_ok(altering.IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
    time.sleep(1)


def _produce(kafka: Kafka, topic: str, batch: bytes, partition: int = 0, txn: str | None = None) -> None:
    data = producing.PartitionProduceData(index=partition, records=batch)
    request = producing.ProduceRequest(
        transactional_id=txn,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[producing.TopicProduceData(name=topic, partition_data=[data])],
    )
    kafka.call_until_ok(request, 11)


def _produce_plainly(kafka: Kafka) -> None:
    for topic in ("plain", "stamped", "recompressed", "compacted"):
        for number, codec in enumerate([*Codec] * 4):
            records = [
                (NOW + 1000 * number + n, b"key-%d" % n, b"value " * 20, (("header", b"1"), ("none", None)))
                for n in range(number + 1)
            ]
            _produce(kafka, topic, build_batch(records, BatchFields(codec=codec)), number % 2)
            if topic == "stamped":
                time.sleep(0.005)  # every batch at a time of its own
    for number in range(12):  # beyond a segment
        _produce(kafka, "plain", build_batch([(NOW + 10**6 + number, None, bytes([number]) * 200_000, ())]))


def _produce_once(kafka: Kafka) -> None:
    """An idempotent producer with more batches than are remembered."""
    request = beginning.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    kafka.call_until_ok(request, 4)
    producer = kafka.call(request, 4)
    for sequence in range(0, 14, 2):
        records = [(NOW + sequence, None, b"once", ())] * 2
        _produce(
            kafka,
            "plain",
            build_batch(
                records,
                BatchFields(producer_id=producer.producer_id, producer_epoch=0, base_sequence=sequence),
            ),
            1,
        )


def _commit_and_forget(kafka: Kafka) -> None:
    """Commits of groups without members, one of them taken back."""
    for group in ("disk-1", "disk-2", "disk-3"):
        kafka.call_until_ok(finding.FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), 4)
        partitions = [
            committing.OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=index + 3,
                committed_leader_epoch=0,
                committed_metadata=f"note {index}",
            )
            for index in range(2)
        ]
        topic = committing.OffsetCommitRequestTopic(name="plain", partitions=partitions)
        kafka.call_until_ok(committing.OffsetCommitRequest(group_id=group, member_id="", topics=[topic]), 8)
    gone = forgetting.OffsetDeleteRequestPartition(partition_index=1)
    forgotten = forgetting.OffsetDeleteRequestTopic(name="plain", partitions=[gone])
    kafka.call_until_ok(forgetting.OffsetDeleteRequest(group_id="disk-2", topics=[forgotten]), 0)


def _transact(kafka: Kafka) -> None:
    """A committed, an aborted and a never ended transaction."""
    for name, committed in (("commits", True), ("aborts", False), ("stays", None)):
        kafka.call_until_ok(finding.FindCoordinatorRequest(key_type=1, coordinator_keys=[name]), 4)
        request = beginning.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        kafka.call_until_ok(request, 4)
        producer = kafka.call(request, 4)
        who = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
        partitions = adding.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[adding.AddPartitionsToTxnTopic(name="transactional", partitions=[0, 1])],
        )
        kafka.call_until_ok(partitions, 3)
        for partition in range(2):
            batch = build_batch(
                [(NOW, None, name.encode(), ())], BatchFields(**who, base_sequence=0, transactional=True)
            )
            _produce(kafka, "transactional", batch, partition, name)
        if committed is not None:
            kafka.call_until_ok(ending.EndTxnRequest(transactional_id=name, **who, committed=committed), 3)
            time.sleep(0.5)


# --- the files --------------------------------------------------------------------------------------


class Folder:
    """The data folder of a broker that was stopped; producer ids by the order in which they appear."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.producers: dict[int, str] = {-1: "none"}

    def producer(self, producer_id: int) -> str:
        return self.producers.setdefault(producer_id, f"producer {len(self.producers)}")

    def partitions(self) -> dict[str, Path]:
        return {f"{name}-{n}": self.data_dir / f"{name}-{n}" for name in TOPICS for n in range(2)}

    def rows(self, file: Path, *, stamped: bool) -> list[Row]:
        """The content of a file, evened out."""
        data = file.read_bytes()
        readers: dict[str, Callable[[bytes, bool], list[Row]]] = {
            ".log": self._batches,
            ".index": lambda data, _: [*struct.iter_unpack(">ii", data)],
            ".timeindex": self._times,
            ".txnindex": self._aborted,
            ".snapshot": self._snapshot,
        }
        if reader := readers.get(file.suffix):
            return reader(data, stamped)
        text = re.sub(r"(topic_id: ).*", r"\1ID", data.decode())
        return [(line,) for line in text.splitlines()]

    def _batches(self, data: bytes, stamped: bool) -> list[Row]:
        rows: list[Row] = []
        for position, header in iter_batches(data):
            batch = data[position : position + header.size_in_bytes]
            now = stamped or header.is_control
            rows.append(
                (
                    *(position, header.base_offset, header.partition_leader_epoch, header.attributes),
                    *(header.last_offset_delta, 0 if header.is_control else header.base_timestamp),
                    *(0 if now else header.max_timestamp, self.producer(header.producer_id)),
                    *(header.producer_epoch, header.base_sequence, header.records_count),
                    record_bytes(batch, header).hex(),
                )
            )
        return rows

    @staticmethod
    def _times(data: bytes, stamped: bool) -> list[Row]:
        return [(0 if stamped else at, offset) for at, offset in struct.iter_unpack(">qi", data)]

    def _aborted(self, data: bytes, _stamped: bool) -> list[Row]:
        return [
            (version, self.producer(producer), *rest)
            for version, producer, *rest in struct.iter_unpack(">hqqqq", data)
        ]

    def _snapshot(self, data: bytes, _stamped: bool) -> list[Row]:
        snapshot, _ = decode(ProducerSnapshot, 1, data, 2)
        return [
            (
                *(self.producer(e.producer_id), e.epoch, e.last_sequence, e.last_offset, e.offset_delta),
                *(e.coordinator_epoch, e.current_txn_first_offset),
            )
            for e in snapshot.producer_entries
        ]


def printed(folder: Path, pattern: str, decoder: str) -> list[Row]:
    """The records of some logs as Kafka's dump tool decodes them: key and value."""
    logs = sorted(folder.glob(pattern))
    text = run_tool(DUMP, decoder, "--files", ",".join(map(str, logs)), timeout_s=120) if logs else ""
    rows: list[Row] = []
    for line in text.splitlines():
        if line.startswith("Dumping "):
            rows.append((Path(line.removeprefix("Dumping ").strip()).parent.name,))
        elif line.startswith("| offset") and (found := re.search(r"\b(?:key: (.*?) )?payload:\s?(.*)", line)):
            rows.append((evened(found[1] or ""), evened(found[2])))
    return rows


def evened(text: str) -> Any:
    """JSON without what differs from run to run; anything else as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return re.sub(r"\b\d{13}\b", "TIME", text)
    return _evened(value)


#: Fields that differ from run to run, unless they are -1 for none.
VOLATILE = {
    *("commitTimestamp", "expireTimestamp", "topicId", "directories", "producerId", "previousProducerId"),
    *("transactionLastUpdateTimestampMs", "transactionStartTimestampMs", "nextProducerId"),
}


def _evened(value: Any, name: str = "") -> Any:
    if name in VOLATILE and value != -1:
        return name
    if isinstance(value, dict):
        return {key: _evened(part, key) for key, part in value.items()}
    if isinstance(value, list):
        return [_evened(part) for part in value]
    return value


# --- the comparison ---------------------------------------------------------------------------------


def compare(what: str, apache: list[Row], ours: list[Row]) -> list[str]:
    if apache == ours:
        return []
    for number, (they, we) in enumerate(zip(apache, ours, strict=False)):
        if they != we:
            return [f"{what}, row {number}:\n  Apache {they}\n  ours   {we}"]
    return [f"{what}: Apache has {len(apache)} rows, we have {len(ours)}"]


def run(report: Callable[[str], None]) -> list[str]:
    """Converse with both brokers and compare what they leave; what differs."""
    with ApacheBroker(PROPERTIES) as apache, PykafkaBroker(PROPERTIES) as ours:
        for broker in (apache, ours):
            converse(broker.address)
            broker.stop()
        return check(apache, ours, report)


def check(apache: BrokerProcess, ours: BrokerProcess, report: Callable[[str], None]) -> list[str]:
    """Compare the folders of two brokers that were stopped."""
    failures: list[str] = []
    theirs, our = Folder(apache.data_dir), Folder(ours.data_dir)
    files = 0
    for name, folder in theirs.partitions().items():
        names = {file.name for file in folder.iterdir()} | {
            file.name for file in our.partitions()[name].iterdir()
        }
        for file in sorted(names, key=lambda file: (not file.endswith(".log"), file)):
            pair = folder / file, our.partitions()[name] / file
            if file.endswith(ONLY_OURS):
                continue
            if not all(path.exists() for path in pair):
                failures.append(
                    f"{name}/{file} is there only {'in Apache' if pair[0].exists() else 'in ours'}"
                )
                continue
            files += 1
            # Markers have the time at which the coordinator wrote them.
            stamped = name.startswith(("stamped", "transactional"))
            failures += compare(
                f"{name}/{file}", theirs.rows(pair[0], stamped=stamped), our.rows(pair[1], stamped=stamped)
            )
    report(f"{files} files of {len(theirs.partitions())} partitions: {'ok' if not failures else 'differ'}")
    for what, decoder in (
        ("__consumer_offsets", "--offsets-decoder"),
        ("__transaction_state", "--transaction-log-decoder"),
        ("__cluster_metadata", "--cluster-metadata-decoder"),
    ):
        rows = [printed(folder.data_dir, f"{what}-*/*.log", decoder) for folder in (theirs, our)]
        if what == "__cluster_metadata":
            rows = [of_topics(records) for records in rows]
        found = compare(what, *rows)
        failures += found
        report(f"{len(rows[0])} records of {what}: {'ok' if not found else 'differ'}")
    return failures


#: The records about what the client did. How a broker registers and what it supports is its own business.
TOPIC_RECORDS = {
    *("TOPIC_RECORD", "PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "CONFIG_RECORD", "REMOVE_TOPIC_RECORD"),
}


def of_topics(records: list[Row]) -> list[Row]:
    """The records about topics, those of a kind that stand together in one order.

    Kafka writes the configs of an internal topic, and the changes of all partitions when a broker leaves, in
    no particular order.
    """
    chosen = [row for row in records if isinstance(row[-1], dict) and row[-1].get("type") in TOPIC_RECORDS]
    ordered: list[Row] = []
    for kind, together in groupby(chosen, lambda row: str(row[-1]["type"])):
        rows = list(together)
        ordered += rows if kind == "TOPIC_RECORD" else sorted(rows, key=str)
    return ordered
