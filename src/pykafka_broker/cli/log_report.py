"""The output of `log verify`, `log repair` and `log stats`: lines, JSON, and short tables with totals."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import click

from pykafka_broker.cli.cells import Cell, Column, Styled, Table
from pykafka_broker.cli.output import Form, Output
from pykafka_broker.cli.wording import human_size, record_time
from pykafka_broker.log.check.findings import CheckResult, Remedy
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import counted

#: The number of partitions that `log stats` shows on a terminal without --all: the largest with records.
LARGEST = 20
REMEDY_STYLES = {Remedy.NONE: "red", Remedy.START: "dim", Remedy.FENCED: "dim"}


class FindingResult(NamedTuple):
    """A problem of a file; `remedy` is what `log repair` does about it, by its name in `Remedy`."""

    path: str
    problem: str
    remedy: str


class Verified(NamedTuple):
    """A partition whose files were read, up to `end_offset` if a broker has it `in_use`."""

    partition: str
    segments: int
    bytes: int
    batches: int
    records: int
    end_offset: int
    in_use: bool
    findings: list[FindingResult]


class PartitionStats(NamedTuple):
    """The statistics of a partition; timestamps are -1 if no record has one, codecs count batches."""

    partition: str
    segments: int
    bytes: int
    start_offset: int
    end_offset: int
    batches: int
    records: int
    oldest_timestamp: int
    newest_timestamp: int
    codecs: Mapping[str, int]
    in_use: bool


class Report:
    """Reports the findings in partitions: as lines and JSON at once, as tables at the end."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.results: list[Verified] = []
        self.problems: list[tuple[Cell, ...]] = []
        self.mended = 0

    def add(self, folder: str, checked: CheckResult, *, in_use: bool) -> None:
        """Report the findings in a partition."""
        partition, findings = checked
        values = [FindingResult(f.path, f.text, f.remedy.name.lower()) for f in findings]
        result = Verified(os.path.basename(folder), *partition, in_use=in_use, findings=values)
        if self.output.form is not Form.TABLES:
            self.output.show(result, _check_lines(folder, checked, in_use=in_use))
            return
        self.results.append(result)
        self.problems += [
            (
                os.path.join(result.partition, os.path.basename(finding.path)),
                finding.text,
                Styled(finding.remedy.value, REMEDY_STYLES.get(finding.remedy, "yellow")),
            )
            for finding in findings
        ]

    def add_mended(self, folder: str, mended: int) -> None:
        """Count problems just reported that are mended."""
        self.mended += mended
        if mended and self.output.form is Form.LINES:
            click.echo(f"{folder}: {mended} mended")

    def end(self, *, show_all: bool) -> None:
        if self.output.form is Form.TABLES:
            self.output.show(self.results, (), self._tables(show_all=show_all))

    def _tables(self, *, show_all: bool) -> Iterator[Table]:
        if show_all:
            yield _partition_table(self.results)
        if self.problems:
            columns = (
                Column("FILE", is_id=True),
                Column("PROBLEM", is_prose=True),
                Column("REMEDY", is_prose=True),
            )
            yield Table(columns, self.problems)
        records, size = sum(r.records for r in self.results), sum(r.bytes for r in self.results)
        verdict = counted(len(self.problems), "problem") if self.problems else "ok"
        if self.mended:
            verdict += f", {self.mended} mended"
        segments = counted(sum(r.segments for r in self.results), "segment")
        yield Table(
            footer=f"{counted(len(self.results), 'partition')}, {counted(records, 'record')} in {segments}, "
            f"{human_size(size)}: {verdict}"
        )


def _check_lines(folder: str, checked: CheckResult, *, in_use: bool) -> Iterator[str]:
    """The verdict on a partition, and the findings."""
    partition, findings = checked
    verdict = "ok" if not findings else f"{len(findings)} problems"
    read = f", read up to offset {partition.end_offset}" if in_use else ""
    yield f"{folder}: {partition.records} records in {partition.segments} segments{read}: {verdict}"
    for finding in findings:
        yield f"  {os.path.basename(finding.path)} {finding.text} ({finding.remedy.value})"


def _partition_table(results: Sequence[Verified]) -> Table:
    columns = (
        Column("PARTITION"),
        Column("SIZE", is_number=True, drop=2),
        Column("RECORDS", is_number=True),
        Column("BATCHES", is_number=True, drop=4),
        Column("SEGMENTS", is_number=True, drop=3),
        Column("END OFFSET", is_number=True, drop=1),
        Column("VERDICT"),
    )
    return Table(
        columns,
        [
            (
                result.partition,
                human_size(result.bytes),
                result.records,
                result.batches,
                result.segments,
                result.end_offset,
                Styled(counted(len(result.findings), "problem"), "red")
                if result.findings
                else Styled("ok", "green"),
            )
            for result in results
        ],
    )


def stats_line(found: PartitionStats) -> str:
    return (
        f"{found.partition}: offsets {found.start_offset} to {found.end_offset}, "
        f"{found.records} records in {found.batches} batches ({_codecs(found.codecs) or 'none'}), "
        f"{found.segments} segments, {found.bytes} bytes"
    )


def _codecs(codecs: Mapping[str, int]) -> str:
    return ", ".join([f"{count} {codec}" for codec, count in sorted(codecs.items())])


def stats_table(found: Sequence[PartitionStats], *, show_all: bool) -> Table:
    """The largest partitions with records, or all by name, with totals."""
    columns = (
        Column("PARTITION"),
        Column("SIZE", is_number=True),
        Column("RECORDS", is_number=True),
        Column("BATCHES", is_number=True, drop=2),
        Column("SEGMENTS", is_number=True, drop=3),
        Column("OFFSETS", is_number=True, drop=1),
        Column("NEWEST RECORD", drop=4),
        Column("BATCHES BY CODEC", drop=5),
    )
    filled = [s for s in found if s.batches]
    chosen = found if show_all else sorted(filled, key=lambda s: (-s.bytes, s.partition))[:LARGEST]
    rows = [
        (
            s.partition,
            human_size(s.bytes),
            s.records,
            s.batches,
            s.segments,
            f"{s.start_offset}-{s.end_offset}",
            record_time(s.newest_timestamp),
            _codecs(s.codecs),
        )
        for s in chosen
    ]
    total = (
        f"{counted(len(found), 'partition')} ({len(found) - len(filled)} without records), "
        f"{counted(sum(s.records for s in found), 'record')} in "
        f"{counted(sum(s.batches for s in found), 'batch', 'batches')}, "
        f"{counted(sum(s.segments for s in found), 'segment')}, {human_size(sum(s.bytes for s in found))}"
    )
    if len(chosen) < len(filled):
        total += f"\n(the largest {len(chosen)} are shown, all with --all)"
    elif len(chosen) < len(found):
        total += "\n(those with records are shown, all with --all)"
    return Table(columns, rows, footer=total)
