"""`topics profile`: what is in a topic. `pykafka_broker.arrow` reads and counts; this shows it.

Lines have the fields of the JSON by their names, tables what matters for a decision.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pykafka_broker.arrow.core.profile.results import Content, PartitionProfile, Times, TopicProfile
from pykafka_broker.cli import progress
from pykafka_broker.cli.cells import Cell, Column, Styled, Table
from pykafka_broker.cli.cluster import Cluster, cluster_options
from pykafka_broker.cli.names import topic_names
from pykafka_broker.cli.offsets import parse_since_ms
from pykafka_broker.cli.options import INT32_MAX, progress_option
from pykafka_broker.cli.output import Output, compact_json, json_option
from pykafka_broker.cli.suggestions import known_topic
from pykafka_broker.cli.wording import human_size, record_time
from pykafka_broker.system.wording import counted, duration, printable

if TYPE_CHECKING:
    from pykafka_broker.arrow.ranges import Ranges

#: The partitions, and the names of headers, that a table shows: those with the most records.
SHOWN_PARTITIONS, SHOWN_HEADERS = 20, 10
#: The most keys that can be asked for: one of 1,001 records is the least that is never missed.
MOST_KEYS = 1_000
#: A partition with more than this, compared with the mean, is marked.
SKEWED = 1.5


@click.command()
@click.argument("name", shell_complete=topic_names)
@click.option(
    "--since",
    "since_ms",
    metavar="WHEN",
    callback=lambda _ctx, _parameter, text: None if text is None else parse_since_ms(text, _now_ms()),
    help="Only records since this long ago (90s, 30m, 1h, 7d), or since a time (milliseconds or ISO 8601).",
)
@click.option(
    "-p",
    "--partition",
    "partitions",
    type=click.IntRange(0, INT32_MAX),
    multiple=True,
    help="Only this one; repeatable.",
)
@click.option(
    "-k",
    "--keys",
    "hot_keys",
    type=click.IntRange(0, MOST_KEYS),
    default=10,
    show_default=True,
    help="How many of the most frequent keys to name.",
)
@click.option("-f", "--folder", metavar="DIR", help="Read this log directory instead of asking a cluster.")
@progress_option
@cluster_options
@json_option(TopicProfile)
def profile(
    name: str,
    since_ms: int | None,
    partitions: tuple[int, ...],
    hot_keys: int,
    folder: str | None,
    show_progress: bool,
    cluster: Cluster,
    output: Output,
) -> None:
    """Count what is in a topic, up to its present end.

    Shows partitions and how unequal they are, distinct and hot keys, sizes, tombstones, headers, codecs,
    timestamps, and what keys and values look like. Every record is read once. This needs numpy.
    """
    if folder is not None:
        named = click.get_current_context().get_parameter_source("bootstrap_server")
        if named is ParameterSource.COMMANDLINE:
            raise click.UsageError("Only one of --folder, --bootstrap-server.")
    found = _profiled(name, since_ms, partitions, hot_keys, folder, show_progress, cluster)
    output.show(found, profile_lines(found), [table for _, table in profile_tables(found)])


def _profiled(
    name: str,
    since_ms: int | None,
    partitions: tuple[int, ...],
    hot_keys: int,
    folder: str | None,
    show_progress: bool,
    cluster: Cluster,
) -> TopicProfile:
    with needing_numpy():
        from pykafka_broker.arrow.core.limits import Limits
        from pykafka_broker.arrow.profiling import profile
        from pykafka_broker.arrow.sources import (
            Reading,
            Source,
            folder_source,
            folders_of,
            topic_source,
        )
    limits = Limits(timeout_s=cluster.timeout_s)
    reading = Reading(ranges_since(since_ms, partitions), limits=limits)

    def profiled(source: Source) -> TopicProfile:
        how = progress.shown(is_asked=show_progress)
        total = sum(end - start for start, end in source.wanted.values())
        with progress.progress(name, how, total_records=total) as telling:
            return profile(source, limits, hot_keys, telling.advance)

    if folder is not None:
        try:
            topic, folders = folders_of(folder, name)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--folder") from None
        return profiled(folder_source(folders, topic, reading))
    with cluster.connect() as client:
        known_topic(client, name)
        return profiled(topic_source(client, name, reading))


@contextmanager
def needing_numpy() -> Iterator[None]:
    """What is imported while this is entered may lack numpy: the error then says how to install it.

    Raises:
        click.ClickException: numpy is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise click.ClickException(
            "topics profile needs numpy: python3 -m pip install 'pykafka-broker[arrow]'"
        ) from None


def ranges_since(since_ms: int | None, partitions: tuple[int, ...]) -> Ranges:
    """The records of these partitions, or of all, from a time on.

    Raises:
        click.BadParameter: the time is after the year 9999.
    """
    from datetime import UTC, datetime, timedelta

    from pykafka_broker.arrow.ranges import Ranges

    if since_ms is None:
        return Ranges(partitions=partitions or None)
    try:
        since = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=since_ms)
    except OverflowError:
        raise click.BadParameter(f"{since_ms} ms are after the year 9999") from None
    return Ranges(start=since, partitions=partitions or None)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


# -- lines
# --------


def profile_lines(found: TopicProfile) -> Iterator[str]:
    """A line for each number; a line for each of several, indented."""
    for name, value in found._asdict().items():
        if isinstance(value, list):
            yield f"{name}: {len(value)}"
            for each in value:
                yield f"\t{_fields(each)}"
        elif hasattr(value, "_fields"):
            yield f"{name}: {_fields(value)}"
        else:
            yield f"{name}: {_shown(value)}"


def _fields(value: Any, before: str = "") -> str:
    return "\t".join(
        _fields(each, f"{before}{name}.") if hasattr(each, "_fields") else f"{before}{name}: {_shown(each)}"
        for name, each in value._asdict().items()
    )


def _shown(value: Any) -> str:
    # A tab in a key is no end of a field.
    return printable(value) if isinstance(value, str) else compact_json(value)


# -- tables
# ---------


def profile_tables(found: TopicProfile, rest: str = "with --json") -> Iterator[tuple[str, Table]]:
    """What is in a topic, for a person: tables by their names. `rest` says how to see the rows left out."""
    yield "Partitions", _partitions(found, rest)
    if found.hot_keys:
        yield "Hot keys", _hot_keys(found)
    yield "Sizes", _sizes(found)
    if found.codecs:
        yield "Codecs", _codecs(found)
    looks = [("key", each) for each in found.key_content] + [("value", each) for each in found.value_content]
    if looks:
        yield "Content", _contents(looks)
    if found.headers:
        yield "Headers", _headers(found, rest)


def _hot_keys(found: TopicProfile) -> Table:
    return Table(
        columns=(
            Column("KEY", is_prose=True),
            Column("RECORDS UP TO", is_number=True),
            Column("SHARE", is_number=True, drop=2),
            Column("AT LEAST", is_number=True, drop=1),
        ),
        rows=[
            [
                each.key if each.is_whole else f"{each.key}…",
                each.records,
                f"{each.records / found.records:.1%}",
                each.records - each.error,
            ]
            for each in found.hot_keys
        ],
        footer=_others("key", "record", found.other_keys_at_most),
    )


def _codecs(found: TopicProfile) -> Table:
    return Table(
        columns=(
            Column("CODEC"),
            Column("BATCHES", is_number=True),
            Column("RECORDS PER BATCH", is_number=True, drop=1),
            Column("STORED", is_number=True),
            Column("RATIO", is_number=True),
        ),
        rows=[
            [
                each.codec,
                each.batches,
                f"{each.records / each.batches:.1f}",
                human_size(each.stored_bytes),
                f"{each.bytes / each.stored_bytes:.2f}",
            ]
            for each in found.codecs
        ],
    )


def _headers(found: TopicProfile, rest: str) -> Table:
    hidden = len(found.headers) - SHOWN_HEADERS
    return Table(
        columns=(Column("HEADER", is_prose=True), Column("HEADERS UP TO", is_number=True)),
        rows=[
            [each.name if each.is_whole else f"{each.name}…", each.headers]
            for each in found.headers[:SHOWN_HEADERS]
        ],
        footer=f"({hidden} more {rest})"
        if hidden > 0
        else _others("name", "header", found.other_headers_at_most),
    )


def _others(what: str, where: str, at_most: int) -> str:
    return (
        f"Any other {what} is in at most {counted(at_most, where)}."
        if at_most
        else f"There is no other {what}."
    )


def _partitions(found: TopicProfile, rest: str) -> Table:
    shown = sorted(found.partitions, key=lambda each: (-each.records, each.partition))[:SHOWN_PARTITIONS]
    left_out = len(found.partitions) - len(shown)
    return Table(
        heading=found.topic,
        details=_details(found),
        columns=(
            Column("PARTITION", is_number=True),
            Column("RECORDS", is_number=True),
            Column("BYTES", is_number=True),
            Column("STORED", is_number=True, drop=3),
            Column("DISTINCT KEYS", is_number=True, drop=1),
            Column("TOMBSTONES", is_number=True, drop=4),
            Column("MISSING OFFSETS", is_number=True, drop=6),
            Column("LONGEST SILENCE", is_number=True, drop=2),
            Column("BEHIND", is_number=True, drop=5),
        ),
        rows=[_partition_row(each, found) for each in sorted(shown, key=lambda each: each.partition)],
        footer=f"({counted(left_out, 'smaller partition')} {rest})" if left_out else None,
    )


def _partition_row(each: PartitionProfile, found: TopicProfile) -> list[Cell]:
    is_skewed = each.records * len(found.partitions) > SKEWED * found.records
    return [
        each.partition,
        Styled(str(each.records), "yellow") if is_skewed else each.records,
        human_size(each.bytes),
        human_size(each.stored_bytes),
        each.distinct_keys,
        each.tombstones or None,
        each.missing_offsets or None,
        duration(each.times.silence_ms),
        each.times.behind or None,
    ]


def _details(found: TopicProfile) -> list[tuple[str, Cell]]:
    details: list[tuple[str, Cell]] = [
        ("records", found.records),
        ("bytes", human_size(found.bytes)),
        ("stored", human_size(found.stored_bytes)),
    ]
    if found.record_skew is not None and found.byte_skew is not None:
        style = "yellow" if max(found.record_skew, found.byte_skew) > SKEWED else ""
        skew = f"{found.record_skew:.2f} by records, {found.byte_skew:.2f} by bytes"
        details.append(("fullest partition to mean", Styled(skew, style)))
    details.append(("distinct keys", f"{found.distinct_keys} ± {found.distinct_keys_error:.1%}"))
    if found.partitions_per_key is not None:
        details.append(("partitions per key", f"{found.partitions_per_key:.2f}"))
    details += [("null keys", found.null_keys), ("tombstones", found.tombstones)]
    if found.missing_offsets:
        details.append(("missing offsets", found.missing_offsets))
    if found.transactional_batches or found.control_batches:
        details.append(("batches of transactions", found.transactional_batches))
        details.append(("markers", found.control_batches))
    return [*details, *_of_times(found.times)]


def _of_times(times: Times) -> Iterator[tuple[str, Cell]]:
    if times.oldest_ms is None or times.newest_ms is None:
        return
    yield "timestamps", f"{record_time(times.oldest_ms)} to {record_time(times.newest_ms)}"
    if times.silence_from_ms is not None:
        silence = f"{duration(times.silence_ms)} from {record_time(times.silence_from_ms)}"
        yield "longest silence", silence
    if times.behind:
        yield "behind earlier records", f"{times.behind}, up to {duration(times.most_behind_ms)}"
    if times.ahead:
        ahead = f"{times.ahead}, up to {duration(times.most_ahead_ms)}"
        yield "ahead of this clock", Styled(ahead, "yellow")
    if times.without_timestamp:
        yield "without timestamp", times.without_timestamp
    if times.least_append_delay_ms is not None and times.most_append_delay_ms is not None:
        yield "append delay", f"{times.least_append_delay_ms} to {times.most_append_delay_ms} ms"


def _sizes(found: TopicProfile) -> Table:
    rows: list[list[Cell]] = [
        [what, sizes.smallest, sizes.p50, sizes.p90, sizes.p99, sizes.largest, f"{sizes.mean:.1f}"]
        for what, sizes in (
            ("key", found.key_sizes),
            ("value", found.value_sizes),
            ("record", found.record_sizes),
        )
        if sizes is not None
    ]
    return Table(
        columns=(
            Column("BYTES OF A"),
            *(Column(title, is_number=True) for title in ("LEAST", "P50", "P90", "P99", "MOST", "MEAN")),
        ),
        rows=rows,
    )


def _contents(looks: Sequence[tuple[str, Content]]) -> Table:
    totals = {what: sum(each.sampled for part, each in looks if part == what) for what in ("key", "value")}
    return Table(
        columns=(
            Column("SAMPLED"),
            Column("LOOKS LIKE"),
            Column("SHARE", is_number=True),
            Column("SCHEMA IDS", is_prose=True, drop=1),
        ),
        rows=[
            [
                what,
                each.format,
                f"{each.sampled / totals[what]:.0%}",
                ", ".join(map(str, each.schema_ids)) or None,
            ]
            for what, each in looks
        ],
    )
