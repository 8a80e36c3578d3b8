"""The audits: a topic by itself, an archive beside its topic, a mirror beside its source.

    report = audit(frame, "orders", log=TopicLog(client, "orders"))
    report = audit_archive(archive, frame, "orders", log=TopicLog(client, "orders"))
    report = audit_mirror(Side(mirror, "orders"), Side(source, "orders"), log=TopicLog(client, "orders"))

Each takes DataFrames of Spark's kafka format, wherever they are from, of classic sessions or of Spark
Connect. Records stay with the executors. The driver gets a row for each 32,768 offsets, with a bitmap of
4 kB where offsets are missing among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pykafka_broker.spark.audit import aggregates
from pykafka_broker.spark.audit.comparing import compare_blocks, differing_buckets, shared_range
from pykafka_broker.spark.audit.explaining import Explanation, explain
from pykafka_broker.spark.audit.judging import Judge
from pykafka_broker.spark.audit.offsets import NOTHING, Span, gaps
from pykafka_broker.spark.audit.reading import QUESTIONS, Ends, Questions, Reading
from pykafka_broker.spark.audit.report import AuditReport, Finding, Level
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pykafka_broker.spark.audit.topic_log import TopicLog


def audit(
    frame: DataFrame, topic: str, *, log: TopicLog | None = None, questions: Questions = QUESTIONS
) -> AuditReport:
    """Audit the records of one topic.

    Args:
        frame: In Spark's kafka format.
        topic: The topic; other records are left out.
        log: Explains offsets without a record, and bounds those that are expected. Without it every gap is a
            finding.
        questions: What to look at.

    Raises:
        KafkaError: the log cannot be read.
    """
    judge = Judge(topic)
    # Records that come meanwhile, and those that retention removes meanwhile, are not expected.
    ends = {} if log is None else log.ends()
    reading = Reading(aggregates.records_of(frame, topic), judge, questions)
    if log is None:
        findings = [
            finding
            for partition in reading.blocks
            for finding in reading.unknown_gaps(partition, reading.range_of(partition))
        ]
        return reading.report(topic, findings, Ends(), {})
    starts = log.starts()
    explained: dict[int, Explanation] = {}
    findings = []
    for partition, end in sorted(ends.items()):
        start = starts[partition]
        explained[partition] = explain(
            gaps(reading.of(partition), Span(start, max(start, end))),
            log.reader(partition),
            is_compacted=log.is_compacted,
            examples=questions.examples,
        )
        findings += judge.gaps(partition, explained[partition])
    return reading.report(topic, findings, Ends(starts, ends), explained)


def audit_archive(
    archive: DataFrame,
    frame: DataFrame,
    topic: str,
    *,
    log: TopicLog | None = None,
    questions: Questions = QUESTIONS,
    committed: Mapping[int, tuple[int, int]] | None = None,
    may_lack_partitions: bool = False,
) -> AuditReport:
    """Audit the records of a topic in an archive, and compare them with those in the topic, offset by offset.

    Not compared are records that the topic no longer holds, and those past the end of the archive: past
    `committed`, if given, else past its last record. Read both with the same isolation level.

    Args:
        archive: In Spark's kafka format; with a column `topic_id`, records of another topic that had this
            name are left out.
        frame: The topic itself.
        topic: Its name.
        log: Tells the topic's id, and where it begins.
        questions: What to look at.
        committed: The offsets of each partition that the archive job has committed, first and end, as of
            `archive.checkpoints.committed_offsets`: all their records must be there. If None, records that
                the archive lacks at its end count as not archived yet.
        may_lack_partitions: Without `committed`: whether a partition with records may be missing.

    Raises:
        KafkaError: the log cannot be read.
    """
    judge = Judge(topic)
    promised = {partition: Span(*offsets) for partition, offsets in (committed or {}).items()}
    topic_id = None if log is None else log.topic_id or None
    # The archive first: its records were in the topic before.
    reading = Reading(aggregates.records_of(archive, topic, topic_id), judge, questions)
    others = Reading(aggregates.records_of(frame, topic), judge, questions)
    ends = Ends() if log is None else Ends(log.starts(), log.ends())
    ranges = {
        partition: shared_range(
            reading.of(partition),
            others.of(partition),
            ends.starts.get(partition),
            promised.get(partition, NOTHING),
        )
        for partition in sorted(reading.blocks.keys() | others.blocks.keys() | promised.keys())
    }
    comparison = compare_blocks(reading.blocks, others.blocks, ranges)
    older, pending = dict(comparison.older), dict(comparison.pending)
    differences = []
    if comparison.places:
        differences = sorted(aggregates.differences(reading.records, others.records, comparison.places))
    for each in differences:
        older[each.partition] = older.get(each.partition, 0) + each.older
        pending[each.partition] = pending.get(each.partition, 0) + each.pending
    findings = list(judge.differences(differences, "the archive", "the topic"))
    for partition, span in ranges.items():
        own = reading.range_of(partition)
        has_gaps = next(gaps(others.of(partition), others.range_of(partition)), None) is not None
        if not reading.of(partition):
            own = promised.get(partition, NOTHING)
        end = max(own.end, promised.get(partition, NOTHING).end)
        before = Span(own.start, max(own.start, min(span.start, end)))
        findings += reading.unknown_gaps(partition, before, has_markers=has_gaps)
        findings += judge.only_here(partition, older.get(partition, 0))
        if committed is None and not reading.of(partition) and not may_lack_partitions:
            findings += judge.nothing_here(partition, pending.get(partition, 0))
        else:
            findings += judge.not_yet_here(
                partition, pending.get(partition, 0), is_known=committed is not None
            )
    if topic_id is not None:
        findings += judge.of_other_topics(aggregates.count_of_other_topics(archive, topic, topic_id))
    return reading.report(topic, findings, ends, {})


class Side(NamedTuple):
    """A topic in a DataFrame of Spark's kafka format."""

    frame: DataFrame
    topic: str


def audit_mirror(
    mirror: Side,
    source: Side,
    *,
    log: TopicLog | None = None,
    questions: Questions = QUESTIONS,
    with_timestamps: bool = True,
) -> AuditReport:
    """Audit a topic that mirrors one of another cluster, and compare their records by partition, whatever
    their offsets; if the records are the same, also the order of each key.

    Args:
        mirror: The topic to audit.
        source: The topic that it mirrors. Cut both to the same time if records arrive meanwhile.
        log: The log of the mirror.
        questions: What to look at.
        with_timestamps: Whether a record with another timestamp is another record; False for a mirror
            with `message.timestamp.type=LogAppendTime`.

    Raises:
        KafkaError: the log cannot be read.
    """
    judge = Judge(mirror.topic)
    report = audit(mirror.frame, mirror.topic, log=log, questions=questions)
    records = aggregates.records_of(mirror.frame, mirror.topic)
    others = aggregates.records_of(source.frame, source.topic)
    wanted = differing_buckets(
        aggregates.buckets(records, with_timestamps=with_timestamps),
        aggregates.buckets(others, with_timestamps=with_timestamps),
    )
    findings: list[Finding] = []
    if wanted:
        found = aggregates.content_differences(records, others, wanted, with_timestamps=with_timestamps)
        findings += judge.differences(sorted(found), "the mirror", "the source")
        if questions.keys:
            findings.append(judge.order_not_compared())
    elif questions.keys:
        findings += judge.order(
            sorted(aggregates.order_differences(records, others, with_timestamps=with_timestamps))
        )
    merged = sorted([*findings, *report.findings], key=lambda finding: finding.level is Level.REMARK)
    return report._replace(findings=merged)
