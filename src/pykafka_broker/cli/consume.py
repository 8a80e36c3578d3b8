"""`consume`: read the records of a topic between two given points.

The default output is that of kafka-console-consumer.sh with the same parts printed; `--json` prints one
object a line. With `--group` it starts at the group's committed offsets and commits how far it came, as a
consumer that assigns partitions to itself: it does not join, so a group with members refuses its commits.
It commits every few seconds, records or not, and at its end, however that comes; only records it has printed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import click

from pykafka_broker.cli import progress
from pykafka_broker.cli.cluster import Cluster, cluster_options
from pykafka_broker.cli.interrupts import Interrupts
from pykafka_broker.cli.offsets import LONG_MAX, parse_number, parse_time_ms
from pykafka_broker.cli.options import INT32_MAX, Seconds, gathered, progress_option
from pykafka_broker.cli.output import Form, Output, json_option
from pykafka_broker.cli.suggestions import known_topic
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.metadata import leaders_of, topic_error
from pykafka_broker.client.offsets import EARLIEST, LATEST, commit_offsets, committed_offsets, list_offsets
from pykafka_broker.client.retries import RETRIABLE
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykafka_broker.protocol.records.aborted_transactions import AbortedTransactions
from pykafka_broker.protocol.records.batch import Record, iter_batches, read_records
from pykafka_broker.system.named_tuple import NamedTuple

MAX_WAIT_MS = 500
PARTITION_MAX_BYTES = 1024 * 1024
COMMIT_INTERVAL_S = 5.0
READ_COMMITTED = 1
PARTS = ("timestamp", "partition", "offset", "headers", "key", "value")


class ReadRecord(NamedTuple):
    """A record and where it is from."""

    partition: int
    is_append_time: bool
    record: Record


class Reader:
    """Fetches from some partitions of one topic, in the order of their leaders."""

    def __init__(
        self,
        client: Client,
        topic: str,
        positions: dict[int, int],
        ends: dict[int, int] | None = None,
        *,
        read_committed: bool = False,
        interrupts: Interrupts | None = None,
    ) -> None:
        self.client = client
        self.topic = topic
        #: The next offset of each partition.
        self.positions = positions
        #: The offsets to stop at; a partition that is not in here goes on for ever.
        self.ends = ends or {}
        self.read_committed = read_committed
        #: Bytes of the answers so far.
        self.bytes = 0
        self._interrupts = interrupts or Interrupts()
        self._learn_leaders()

    def _learn_leaders(self) -> None:
        found = known_topic(self.client, self.topic)
        self.topic_id: bytes = found.topic_id
        self.leaders = {p.partition_index: p.leader_id for p in found.partitions}

    @property
    def unfinished(self) -> list[int]:
        """The partitions that have not reached their end."""
        return [p for p, position in self.positions.items() if position < self.ends.get(p, LONG_MAX)]

    @property
    def distance(self) -> int | None:
        """The number of offsets up to the end; None without one."""
        if set(self.ends) != set(self.positions):
            return None
        return sum(max(end - self.positions[p], 0) for p, end in self.ends.items())

    def poll(self) -> Iterator[ReadRecord]:
        """The records that one round of fetches brings; none if there were none for a while.

        Raises:
            KafkaError: a partition cannot be read, or not where it was to be read.
            KeyboardInterrupt: a signal came before an answer.
        """
        by_leader: dict[int, list[int]] = {}
        for partition in self.unfinished:
            by_leader.setdefault(self.leaders[partition], []).append(partition)
        for leader, partitions in sorted(by_leader.items()):
            yield from self._fetch(leader, partitions)

    def _fetch(self, leader: int, partitions: list[int]) -> Iterator[ReadRecord]:
        request = FetchRequest(
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            isolation_level=READ_COMMITTED if self.read_committed else 0,
            topics=[
                FetchTopic(
                    topic=self.topic,
                    topic_id=self.topic_id,
                    partitions=[
                        FetchPartition(
                            partition=partition,
                            fetch_offset=self.positions[partition],
                            partition_max_bytes=PARTITION_MAX_BYTES,
                        )
                        for partition in partitions
                    ],
                )
            ],
        )
        with self._interrupts.waiting():
            response = self.client.send(request, leader)
        if response.error_code:
            raise KafkaError(ErrorCode(response.error_code))
        for topic in response.responses:
            for answer in topic.partitions:
                if answer.error_code in RETRIABLE:
                    with self._interrupts.waiting():
                        self._learn_leaders()
                elif answer.error_code:
                    raise self._fetch_error(answer)
                else:
                    yield from self._records(answer)

    def _fetch_error(self, answer: Any) -> KafkaError:
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic}-{answer.partition_index} has no offset "
                f"{self.positions[answer.partition_index]}.",
            )
        return topic_error(answer.error_code, f"{self.topic}-{answer.partition_index}")

    def _records(self, answer: Any) -> Iterator[ReadRecord]:
        partition = answer.partition_index
        data = answer.records
        if not data:
            return
        self.bytes += len(data)
        end = self.ends.get(partition, LONG_MAX)
        aborted = AbortedTransactions(
            (each.first_offset, each.producer_id) for each in answer.aborted_transactions or ()
        )
        for at, header in iter_batches(data):
            hidden = self.read_committed and aborted.hides(header, data[at:])
            if not hidden and not header.is_control:
                for record in read_records(data[at:]):
                    if self.positions[partition] <= record.offset < end:
                        self.positions[partition] = record.offset + 1
                        yield ReadRecord(partition, header.timestamp_type == 1, record)
            # Beyond the last record there may be some that were compacted away, or hidden.
            self.positions[partition] = max(self.positions[partition], min(header.next_offset, end))


class Wanted(NamedTuple):
    """The records to read; the fields are options."""

    partitions: tuple[int, ...]
    start: str | None
    until: str | None
    max_messages: int | None
    idle_s: float | None
    group: str | None
    read_committed: bool


class Printed(NamedTuple):
    """The text form of printed records; the fields are options."""

    parts: str
    key_separator: str
    null_marker: str

    def chosen_parts(self) -> tuple[str, ...]:
        """The parts of a record to print.

        Raises:
            click.BadParameter: a record has no such part.
        """
        chosen = PARTS if self.parts == "all" else tuple(part.strip() for part in self.parts.split(","))
        if unknown := [part for part in chosen if part not in PARTS]:
            raise click.BadParameter(f"{unknown[0]!r} is none of {', '.join(PARTS)}", param_hint="--print")
        return chosen


@click.command()
@click.argument("topic")
@click.option(
    "-p",
    "--partition",
    "partitions",
    type=click.IntRange(0, INT32_MAX),
    multiple=True,
    help="Only this one; repeatable.",
)
@click.option(
    "-f",
    "--from",
    "start",
    metavar="WHERE",
    help="beginning (the default), end, an offset, -N for the last N, or @TIME (milliseconds or ISO 8601).",
)
@click.option("-u", "--until", metavar="WHERE", help="end, an offset, or @TIME; by default goes on for ever.")
@click.option("-n", "--max-messages", type=click.IntRange(min=1), help="Stop after this many.")
@click.option(
    "-i", "--idle", "idle_s", type=Seconds(0), metavar="SECONDS", help="Stop after this long without records."
)
@click.option("-g", "--group", help="Start where this group is, and commit how far it came.")
@click.option(
    "--read-committed", is_flag=True, help="Leave out what belongs to open and aborted transactions."
)
@click.option(
    "--print",
    "parts",
    metavar="PART,…",
    default="value",
    show_default=True,
    help=f"Any of {', '.join(PARTS)}, or all; in this order.",
)
@click.option("--key-separator", default="\t", metavar="TEXT", help="What stands between parts [a tab].")
@click.option(
    "--null-marker", default="null", show_default=True, metavar="TEXT", help="What stands for null."
)
@progress_option
@cluster_options
@json_option(None, streams=True)
@gathered(Wanted, "wanted")
@gathered(Printed, "printed")
def consume(
    topic: str,
    wanted: Wanted,
    printed: Printed,
    show_progress: bool,
    cluster: Cluster,
    output: Output,
) -> int:
    """Read records of TOPIC.

    Ctrl-C ends it in good order: with --group, how far it came is committed.
    """
    text = TextOutput(printed.chosen_parts(), printed.key_separator, printed.null_marker)
    show = JsonOutput(topic) if output.form is Form.JSON else text
    how = progress.shown(is_asked=show_progress, results_come=True)
    with cluster.connect() as client:
        places = Places(client, topic, wanted.partitions, read_committed=wanted.read_committed)
        positions = places.start(wanted.start, wanted.group)
        ends = None if wanted.until is None else places.end(wanted.until)
        commits = Commits(client, topic, wanted.group, positions)
        interrupts = Interrupts()
        reader = Reader(
            client, topic, positions, ends, read_committed=wanted.read_committed, interrupts=interrupts
        )
        printer = Printer(reader, show, commits, interrupts)
        try:
            with interrupts, progress.progress(topic, how, total_records=reader.distance) as telling:
                try:
                    printer.run(wanted.max_messages, wanted.idle_s, telling)
                except KeyboardInterrupt:
                    # How a person ends it. A second signal, at whatever follows, is passed on.
                    pass
                finally:
                    printer.end()
        finally:
            click.echo(f"Processed a total of {printer.count} messages", err=True)
    return interrupts.exit_status


class Printer:
    """Prints the records of a reader, and commits those printed."""

    def __init__(
        self,
        reader: Reader,
        show: TextOutput | JsonOutput,
        commits: Commits,
        interrupts: Interrupts,
    ) -> None:
        self.reader = reader
        self.show = show
        self.commits = commits
        self.interrupts = interrupts
        self.count = 0
        self._out = sys.stdout.buffer

    def run(self, max_messages: int | None, idle_s: float | None, telling: progress.Progress) -> None:
        """Print records until every partition has reached its end, there were `max_messages`, or nothing
        came for `idle_s`.

        Raises:
            KeyboardInterrupt: a signal came.
        """
        last_came = time.monotonic()
        while self.reader.unfinished:
            count, size = self.count, self.reader.bytes
            for record in self.reader.poll():
                self._out.write(self.show.line(record))
                self.count += 1
                if self.count == max_messages or self.interrupts.number:
                    return
            self._out.flush()
            telling.advance(self.reader.bytes - size, self.count - count)
            self.commits.maybe_commit()
            if self.count > count:
                last_came = time.monotonic()
            elif idle_s is not None and time.monotonic() - last_came >= idle_s:
                return

    def end(self) -> None:
        """Commit the printed records."""
        self._out.flush()
        self.commits.commit()


class Places:
    """Turns words like `beginning` and `@2026-01-01` into offsets."""

    def __init__(
        self, client: Client, topic: str, partitions: tuple[int, ...], *, read_committed: bool
    ) -> None:
        self.client = client
        self.topic = topic
        existing = leaders_of(known_topic(client, topic))
        self.partitions = list(partitions or existing)
        self.isolation_level = READ_COMMITTED if read_committed else 0
        for partition in self.partitions:
            if partition not in existing:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{topic}' has no partition {partition}."
                )

    def start(self, where: str | None, group: str | None) -> dict[int, int]:
        """The offset at which to begin in each partition."""
        if where is None and group is not None:
            committed = committed_offsets(self.client, self.client.coordinator(group), group)
            return {
                partition: committed.get((self.topic, partition), first)
                for partition, first in self._at(EARLIEST).items()
            }
        return self._resolve(where or "beginning", "--from")

    def end(self, where: str) -> dict[int, int]:
        """The offset before which to stop in each partition."""
        return self._resolve(where, "--until")

    def _resolve(self, where: str, option: str) -> dict[int, int]:
        if where == "beginning":
            return self._at(EARLIEST)
        if where == "end":
            return self._at(LATEST)
        if where.isdecimal():
            return dict.fromkeys(self.partitions, parse_number(where))
        if where.startswith("-") and where[1:].isdecimal():
            back = parse_number(where[1:])
            first, end = self._at(EARLIEST), self._at(LATEST)
            return {p: max(first[p], end[p] - back) for p in self.partitions}
        if where.startswith("@"):
            end = self._at(LATEST)
            found = self._at(parse_time_ms(where[1:]))
            # -1: no record is that young.
            return {p: end[p] if found[p] < 0 else found[p] for p in self.partitions}
        raise click.BadParameter(
            f"{where!r} is none of beginning, end, an offset, -N and @TIME", param_hint=option
        )

    def _at(self, timestamp: int) -> dict[int, int]:
        times = {(self.topic, partition): timestamp for partition in self.partitions}
        # The end of a partition follows the isolation level; looking up a time does not need to.
        level = self.isolation_level if timestamp == LATEST else 0
        found = list_offsets(self.client, times, isolation_level=level)
        return {partition: found[self.topic, partition] for partition in self.partitions}


class Commits:
    """Commits a group's offsets now and then, if there is a group."""

    def __init__(self, client: Client, topic: str, group: str | None, positions: dict[int, int]) -> None:
        self.client = client
        self.topic = topic
        self.group = group
        self.positions = positions
        self._committed: dict[int, int] = {}
        self._next_s = time.monotonic() + COMMIT_INTERVAL_S

    def maybe_commit(self) -> None:
        if self.group is not None and time.monotonic() >= self._next_s:
            self.commit()
            self._next_s = time.monotonic() + COMMIT_INTERVAL_S

    def commit(self) -> None:
        """Commit every position that has moved.

        Raises:
            KafkaError: the group has members, and this command is none.
        """
        if self.group is None:
            return
        moved = {p: offset for p, offset in self.positions.items() if self._committed.get(p) != offset}
        if moved:
            offsets = {(self.topic, partition): offset for partition, offset in moved.items()}
            commit_offsets(self.client, self.client.coordinator(self.group), self.group, offsets)
            self._committed.update(moved)


class TextOutput:
    """Chosen parts of a record on a line, as the console consumer prints them."""

    def __init__(self, parts: tuple[str, ...], separator: str, null_marker: str) -> None:
        self.parts = frozenset(parts)
        self.separator = os.fsencode(separator)
        self.null = os.fsencode(null_marker)

    def line(self, read: ReadRecord) -> bytes:
        record = read.record
        printed = []
        if "timestamp" in self.parts:
            kind = "LogAppendTime" if read.is_append_time else "CreateTime"
            printed.append(f"{kind}:{record.timestamp}".encode())
        if "partition" in self.parts:
            printed.append(b"Partition:%d" % read.partition)
        if "offset" in self.parts:
            printed.append(b"Offset:%d" % record.offset)
        if "headers" in self.parts:
            headers = b",".join(
                name.encode(errors="surrogateescape") + b":" + self._shown(value)
                for name, value in record.headers
            )
            printed.append(headers or b"NO_HEADERS")
        if "key" in self.parts:
            printed.append(self._shown(record.key))
        if "value" in self.parts:
            printed.append(self._shown(record.value))
        return self.separator.join(printed) + b"\n"

    def _shown(self, data: bytes | None) -> bytes:
        return self.null if data is None else data


class JsonOutput:
    """A record as a JSON object. Bytes that are not UTF-8 are in `key_base64` or `value_base64`."""

    def __init__(self, topic: str) -> None:
        self.topic = topic

    def line(self, read: ReadRecord) -> bytes:
        import json

        record = read.record
        shown: dict[str, Any] = {
            "topic": self.topic,
            "partition": read.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestamp_type": "LogAppendTime" if read.is_append_time else "CreateTime",
            "headers": [
                {"key": _printable(name), **_as_text("value", value)} for name, value in record.headers
            ],
            **_as_text("key", record.key),
            **_as_text("value", record.value),
        }
        return json.dumps(shown, ensure_ascii=False).encode() + b"\n"


def _printable(name: str) -> str:
    """A header's name; bytes of it that are not UTF-8 become U+FFFD."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


def _as_text(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        import base64

        return {f"{name}_base64": base64.b64encode(data).decode()}
