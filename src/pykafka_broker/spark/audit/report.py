"""The report of an audit: counts of every partition, and findings in sentences. Pure."""

from __future__ import annotations

from enum import StrEnum

from pykafka_broker.system.named_tuple import NamedTuple


class Level(StrEnum):
    """The severity of a finding."""

    #: Something is wrong.
    FINDING = "finding"
    #: Worth knowing: nothing is wrong, or it cannot be known.
    REMARK = "remark"


class Check(StrEnum):
    """The subject of a check."""

    OFFSETS = "offsets"
    DUPLICATES = "duplicates"
    KEYS = "keys"
    ORDER = "order"
    TIMES = "times"
    COMPARISON = "comparison"


class Finding(NamedTuple):
    """One thing that an audit found in a partition, or in the topic as a whole."""

    level: Level
    check: Check
    #: `topic-partition`, or the topic.
    subject: str
    #: How many records or offsets it is about.
    affected: int
    message: str


class PartitionCounts(NamedTuple):
    """A partition as it was read; offsets and times are None where there is no record."""

    partition: int
    records: int
    size_bytes: int
    first_offset: int | None
    last_offset: int | None
    #: Where the log begins and ends, as its brokers say; None: they were not asked.
    log_start: int | None
    log_end: int | None
    #: Offsets without a record: of the log or, if it was not asked, between the first and the last record.
    #: What the log has there instead; None if it was not asked.
    missing: int
    markers: int | None
    aborted: int | None
    compacted: int | None
    #: Records with a key, and keys without a record in a lower partition; None: not checked.
    keyed: int | None
    keys: int | None
    #: Milliseconds since 1970.
    oldest_timestamp: int | None
    newest_timestamp: int | None
    #: The most that a record's timestamp can be behind the newest one before it in the partition.
    late_at_most_ms: int


class AuditReport(NamedTuple):
    """The report on a topic."""

    topic: str
    records: int
    partitions: list[PartitionCounts]
    findings: list[Finding]

    @property
    def has_findings(self) -> bool:
        """Whether anything is wrong."""
        return any(finding.level is Level.FINDING for finding in self.findings)
