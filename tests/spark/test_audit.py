"""Audits by a real Spark: what is sound has no findings, and each planted fault has its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pykafka_broker.client.blocking import Client
from pykafka_broker.spark.audit import (
    AuditReport,
    Level,
    Questions,
    Side,
    TopicLog,
    audit,
    audit_archive,
    audit_mirror,
)
from pykafka_broker.testing.apache.broker import ApacheBroker
from pykafka_broker.testing.processes import BrokerProcess, PykafkaBroker
from tests.spark.conftest import PROPERTIES
from tests.spark.kafka import Kafka
from tests.spark.test_batch import NOON_MS, read
from tests.spark.test_transactions import PER_TRANSACTION, READ_COMMITTED, TRANSACTIONS, transact

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The cleaner of either broker comes at once, and finds segments to clean.
SOON = {**PROPERTIES, "log.cleaner.backoff.ms": "200", "log.initial.task.delay.ms": "200"}
COMPACTED = {
    "cleanup_policy": "compact",
    "internal_segment_bytes": "1000",
    "min_cleanable_dirty_ratio": "0.01",
}


def said(report: AuditReport, level: Level = Level.FINDING) -> list[str]:
    """What an audit says, without the name of the topic."""
    messages = [finding.message for finding in report.findings if finding.level is level]
    return [message.replace(report.topic, "t") for message in messages]


def topic_frame(spark: SparkSession, kafka: Kafka, topic: str) -> DataFrame:
    return read(spark, kafka, subscribe=topic, includeHeaders=True, **READ_COMMITTED)


@pytest.fixture(
    params=[
        pytest.param(PykafkaBroker, id="ours"),
        pytest.param(ApacheBroker, id="apache"),
    ]
)
def cleaning(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """A broker whose cleaner does not wait."""
    kind: type[BrokerProcess] = request.param
    with kind(SOON) as process:
        kafka = Kafka(process.address)
        yield kafka
        kafka.close()


def test_markers_aborted_records_and_compaction_are_no_findings(spark: SparkSession, cleaning: Kafka) -> None:
    transactional = cleaning.topic(2)
    transact(cleaning, transactional, 2).close()
    compacted = cleaning.topic(1, **COMPACTED)
    for number in range(200):
        cleaning.send(compacted, [number], key=b"k%d" % (number % 7))
    cleaning.eventually(lambda: len(cleaning.values(compacted)) < 100)

    with Client(cleaning.bootstrap) as client:
        log = TopicLog(client, transactional)
        frame = topic_frame(spark, cleaning, transactional)
        report = audit(frame, transactional, log=log)
        assert (said(report), said(report, Level.REMARK)) == ([], [])
        aborted = TRANSACTIONS // 3 * PER_TRANSACTION
        counts = report.partitions
        assert [c.markers for c in counts] == [TRANSACTIONS] * 2
        assert sum(c.aborted or 0 for c in counts) == aborted
        assert report.records == (TRANSACTIONS - TRANSACTIONS // 3) * PER_TRANSACTION
        assert sum(c.missing for c in counts) == aborted + 2 * TRANSACTIONS

        lacking = audit(frame.where("NOT (partition = 1 AND offset IN (3, 4))"), transactional, log=log)
        assert said(lacking) == ["t-1: 2 records not read: the log has a record there (offsets 3 to 4)."]

        log = TopicLog(client, compacted)
        frame = topic_frame(spark, cleaning, compacted)
        report = audit(frame, compacted, log=log, questions=Questions(unique_keys=False))
        assert said(report) == []
        [counts_of_it] = report.partitions
        assert (counts_of_it.keys, counts_of_it.log_end) == (7, 200)
        assert counts_of_it.compacted == counts_of_it.missing == 200 - report.records

        last = frame.where("offset <> 199")
        assert said(audit(last, compacted, log=log)) == [
            "t-0: 1 record not read: the log has a record there (offset 199)."
        ]


def test_an_archive_is_compared_with_its_topic_record_by_record(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic(2)
    for number in range(40):
        kafka.send(
            topic,
            [number],
            partition=number % 2,
            key=b"k%d" % (number % 3),
            headers=[("h", b"%d" % number)],
            timestamp_ms=NOON_MS + number,
        )
    frame = topic_frame(spark, kafka, topic)
    with Client(kafka.bootstrap) as client:
        log = TopicLog(client, topic)
        archived = frame.selectExpr("*", f"'{log.topic_id}' AS topic_id", "current_date() AS day")
        # Kept in memory: records go from the topic, not from the archive.
        archive = spark.createDataFrame(archived.where("offset < 18").collect(), archived.schema)
        other = archive.where("offset < 3").drop("topic_id").selectExpr("*", "'another' AS topic_id")
        kafka.delete_records(topic, before=5)

        sound = audit_archive(archive.unionByName(other), frame, topic, log=log)
        assert said(sound) == []
        assert said(sound, Level.REMARK) == [
            "t-0: 5 records from below the topic's log start.",
            *(
                f"t-{number}: 2 records behind the end of the archive: not archived yet, or lost from its "
                "end. With the checkpoint of the archive job an audit can tell."
                for number in range(2)
            ),
            "t: 6 records of other topics that had this name, left out.",
            "t-1: 3 keys with records in another partition too: there is no order between these.",
        ]
        assert sound.records == 36

        changed = archive.selectExpr(
            "IF(partition = 1 AND offset = 9, binary('other'), key) AS key",
            "IF(partition = 1 AND offset = 11, NULL, value) AS value",
            "topic",
            "partition",
            "offset",
            "timestamp",
            "timestampType",
            "IF(partition = 1 AND offset = 12, NULL, headers) AS headers",
            "topic_id",
            "day",
        )
        faulty = changed.where("NOT (partition = 0 AND offset IN (2, 7))").unionByName(
            archive.where("partition = 0 AND offset = 14")
        )
        report = audit_archive(faulty, frame, topic, log=log)
        assert said(report) == [
            "t-0: 1 record in the topic and not in the archive (offset 7).",
            "t-1: 3 records not the same in the archive and in the topic (the first at offset 9, the last at "
            "12).",
            "t-0: 1 offset without a record (offset 2), and no log says why: lost, compacted, aborted, or "
            "markers of transactions.",
            "t-0: 1 row with an offset that another row has (between offsets 0 and 17).",
        ]
        lost = archive.where("partition = 1 AND offset < 10")
        committed, only_offsets = {0: (0, 18), 1: (0, 19)}, Questions(keys=False)
        report = audit_archive(lost, frame, topic, log=log, questions=only_offsets, committed=committed)
        assert said(report) == [
            "t-0: 13 records in the topic and not in the archive (the first at offset 5, the last at 17).",
            "t-1: 9 records in the topic and not in the archive (the first at offset 10, the last at 18).",
            "t-0: 5 offsets without a record (offsets 0 to 4), and no log says why: lost, compacted, "
            "aborted, or markers of transactions.",
        ]
        assert said(report, Level.REMARK) == [
            "t-0: 2 records behind the end of the archive, not archived yet.",
            "t-1: 1 record behind the end of the archive, not archived yet.",
        ]
        [nothing] = said(audit_archive(lost, frame, topic, log=log, questions=only_offsets))
        assert nothing.startswith("t-0: no record is in the archive, and the topic has 15: lost, or not ")

        # Without a log every gap is a finding.
        alone = audit(faulty, topic, questions=Questions(keys=False))
        assert said(alone)[0] == (
            "t-0: 2 offsets without a record (offsets 2, 7), and no log says why: lost, compacted, aborted, "
            "or markers of transactions."
        )


def test_order_repetition_and_times_of_keys_are_judged(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic(2)
    minute = 60_000
    for key, value, partition, at_ms in (
        (b"a", "1", 0, NOON_MS),
        (b"b", "1", 0, NOON_MS + 9 * minute),
        (b"a", "2", 0, NOON_MS + minute),
        (b"a", "2", 0, NOON_MS + minute),
        (b"a", "3", 0, NOON_MS + minute - 5_000),
        (b"a", "2", 0, NOON_MS + 8 * minute),
        (b"b", "2", 1, NOON_MS),
        (None, "2", 1, NOON_MS),
        (None, "2", 1, NOON_MS),
    ):
        kafka.send(topic, [value], partition=partition, key=key, timestamp_ms=at_ms)
    with Client(kafka.bootstrap) as client:
        log = TopicLog(client, topic)
        frame = topic_frame(spark, kafka, topic)
        questions = Questions(unique_keys=True, late_ms=2 * minute, skew_ms=5 * minute)
        report = audit(frame, topic, log=log, questions=questions)
        assert said(report) == [
            "t-1: its newest record is 9 min older than the newest of the topic: it holds watermarks back.",
            "t-0: 3 records more than 2 min behind the newest one before it, up to 8.1 min (the first at "
            "offset 2, the last at 4).",
            "t-0: 1 record there once more, with the same key, value, headers and timestamp (offset 3; the "
            "one at offset 3 is that of t-0 at offset 2).",
            "t-0: 1 record with a timestamp before that of the record before it of its key, by up to 5 s "
            "(offset 4).",
            "t-0: 4 records with a key that was there before (the first at offset 2, the last at 5).",
            "t-1: 1 record there once more, with the same key, value, headers and timestamp (offset 2; the "
            "one at offset 2 is that of t-1 at offset 1).",
            "t-1: 1 record with a key that was there before (offset 0).",
        ]
        assert said(report, Level.REMARK) == [
            "t-0: 1 record with the key, value and headers of another one.",
            "t-1: 1 key with records in another partition too: there is no order between these.",
        ]
        assert [(c.keyed, c.keys, c.late_at_most_ms) for c in report.partitions] == [
            (6, 2, 9 * minute),
            (1, 0, 0),
        ]


def test_a_mirror_has_the_records_of_its_source_in_their_order(spark: SparkSession, kafka: Kafka) -> None:
    source, mirror, mixed = kafka.topic(2), kafka.topic(2), kafka.topic(2)
    # Offsets of mirrors are their own.
    kafka.send(mirror, ["gone"])
    kafka.delete_records(mirror, before=1)
    sent = [(number % 2, b"k%d" % (number % 6), number) for number in range(30)]
    swapped = [*sent[:12], sent[18], *sent[13:18], sent[12], *sent[19:]]
    for topic, records in ((source, sent), (mirror, sent), (mixed, swapped)):
        for partition, key, number in records:
            kafka.send(topic, [number], partition=partition, key=key, timestamp_ms=NOON_MS)

    frames = {topic: topic_frame(spark, kafka, topic) for topic in (source, mirror, mixed)}
    original = Side(frames[source], source)
    with Client(kafka.bootstrap) as client:
        logs = {topic: TopicLog(client, topic) for topic in (mirror, mixed)}
        sound = audit_mirror(Side(frames[mirror], mirror), original, log=logs[mirror])
        assert (said(sound), sound.records) == ([], 30)

        assert said(audit_mirror(Side(frames[mixed], mixed), original, log=logs[mixed])) == [
            "t-0: 3 records behind another record of the key than in the source (the first at offset 6, the "
            "last at 12)."
        ]
        later = frames[mirror].selectExpr(
            "key",
            "IF(partition = 1 AND offset = 3, binary('x'), value) AS value",
            "topic",
            "partition",
            "offset",
            "timestamp + INTERVAL 1 HOUR AS timestamp",
            "timestampType",
            "headers",
        )
        report = audit_mirror(Side(later, mirror), original, log=logs[mirror], with_timestamps=False)
        assert said(report) == [
            "t-1: 1 record in the source and not in the mirror (offset 3).",
            "t-1: 1 record in the mirror and not in the source (offset 3).",
        ]
        assert said(report, Level.REMARK) == [
            "t: the order of keys was not compared, for the records differ."
        ]
