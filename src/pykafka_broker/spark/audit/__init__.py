"""A distributed check of a topic, of an archive beside its topic, of a mirror beside its source.

    from pykafka_broker.spark.audit import TopicLog, audit

    with Client("127.0.0.1:9092") as client:
        report = audit(frame, "orders", log=TopicLog(client, "orders"))
    for finding in report.findings:
        print(finding.level, finding.message)

Counts, offsets that are missing and why, doubled records, the order of each key, times. Plain functions
over DataFrames of Spark's kafka format.

    auditing.py     audit(), audit_archive(), audit_mirror()
    reading.py      one topic in a DataFrame, and what every audit says of it
    aggregates.py   what Spark counts; the shell around Spark
    topic_log.py    what brokers say of a log; the shell around the client

  pure

    judging.py      what counts mean, in sentences
    explaining.py   why offsets are not among the records that were read
    comparing.py    where two reads differ
    times.py        which blocks may hold late records
    offsets.py      blocks, and the gaps in them
    keys.py         order and repetition in a partition
    seen.py         records of a kind, without the records
    report.py       what an audit says

What cannot be known from outside: what stood at offsets before the log begins; whether a record that
compaction removed had been there; which of two like records is the doubled one.
"""

from __future__ import annotations

from pykafka_broker.spark.audit.auditing import Side, audit, audit_archive, audit_mirror
from pykafka_broker.spark.audit.reading import Questions
from pykafka_broker.spark.audit.report import AuditReport, Check, Finding, Level, PartitionCounts
from pykafka_broker.spark.audit.topic_log import TopicLog

__all__ = [
    "AuditReport",
    "Check",
    "Finding",
    "Level",
    "PartitionCounts",
    "Questions",
    "Side",
    "TopicLog",
    "audit",
    "audit_archive",
    "audit_mirror",
]
