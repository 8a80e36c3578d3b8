"""The records of a topic: from an offset, a time or the end; searched, followed, downloaded, one written."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Sequence
from heapq import nlargest
from itertools import islice
from typing import Any
from urllib.parse import quote

import click
from starlette.responses import Response

from pykafka_broker.cli.cells import Column, Table
from pykafka_broker.cli.consume.lines import JsonOutput
from pykafka_broker.cli.consume.places import Places
from pykafka_broker.cli.consume.reader import Reader, ReadRecord
from pykafka_broker.cli.offsets import parse_number
from pykafka_broker.cli.options import pairs
from pykafka_broker.cli.produce import NewRecord, Writer
from pykafka_broker.cli.suggestions import known_topic
from pykafka_broker.cli.wording import record_time
from pykafka_broker.client.core.metadata import NO_LEADER, leaders_of
from pykafka_broker.console.decoding import AUTOMATIC, Decode, Shown, as_text, choices, decoder
from pykafka_broker.console.page import (
    Field,
    Form,
    Link,
    Listing,
    Page,
    Part,
    Section,
    Text,
    listing,
    topic_url,
    url,
)
from pykafka_broker.console.search import PARTS, PathError, Search, parse_path
from pykafka_broker.console.visit import Visit
from pykafka_broker.protocol.records.batch import Record
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import counted, cut, listed

#: The most records of a page, and characters that it shows of a key, a value or the headers.
SHOWN, SHOWN_CHARACTERS = 100, 2_000
#: The most records that a search reads, and the most time that it takes, before the visitor has it go on.
SCANNED, SCAN_S = 100_000, 5.0
#: The most records, and bytes of keys, values and headers, of a download. It ends where a search does, too.
DOWNLOADED, DOWNLOADED_BYTES = 10_000, 64 * 1024 * 1024
#: The records that are decoded together.
AT_ONCE = 200
COLUMNS = (
    Column("PARTITION", is_number=True),
    Column("OFFSET", is_number=True),
    Column("TIME"),
    Column("KEY", is_prose=True),
    Column("VALUE", is_prose=True),
    Column("HEADERS", is_prose=True),
)
LAST = "-50"


class Found(NamedTuple):
    """A record that matches."""

    read: ReadRecord
    value: Shown

    def cells(self) -> list[str | int | None]:
        """Its row in the table."""
        record = self.read.record
        texts = (as_text(record.key), self.value.text, headers_text(record.headers))
        return [
            self.read.partition,
            record.offset,
            record_time(record.timestamp),
            *(cut(text, SHOWN_CHARACTERS) for text in texts),
        ]


class Scan:
    """Reads partitions of a topic (all, if none are given) once, from where the visitor says to their present
    ends, and keeps what matches.
    """

    def __init__(self, visit: Visit, partitions: tuple[int, ...]) -> None:
        topic, client = visit.path["topic"], visit.client
        at = visit.asked("at")
        start = _positions(at) if at else {}
        places = Places(client, topic, tuple(start) or partitions, read_committed=False)
        where = visit.asked("from") or LAST
        start = start or places.start(where, None)
        #: Whether it reads the last records of each of several partitions.
        self.is_of_last = not at and where.startswith("-") and len(start) > 1
        self.reader = Reader(client, topic, start, places.end("end"))
        #: Records that were read, and those of them that match.
        self.scanned = self.matched = 0
        self._decode = decoder(visit.settings, topic, visit.asked("as"), visit.asked("message"))
        self._search = _search(visit)

    def matches(self) -> Iterator[Found]:
        """The records that match, until the end or a limit."""
        until_s = time.monotonic() + SCAN_S
        while not self.reader.is_finished and self.scanned < SCANNED and time.monotonic() < until_s:
            records = self.reader.poll()
            while chunk := list(islice(records, min(AT_ONCE, SCANNED - self.scanned))):
                after = dict(self.reader.positions)
                for number, found in enumerate(_decoded(self._decode, chunk), 1):
                    self.scanned += 1
                    if self._matches(found):
                        # Who stops here goes on behind this record.
                        self.reader.positions.update(after | _first_of(chunk[number:]))
                        self.matched += 1
                        yield found
                self.reader.positions.update(after)

    def page(self) -> list[Found]:
        """The first records that match; of the last ones of several partitions the newest, by their times."""
        if not self.is_of_last:
            return list(islice(self.matches(), SHOWN))
        return sorted(nlargest(SHOWN, self.matches(), key=_age_order), key=_age_order)

    def notes(self, found: list[Found]) -> list[Text]:
        """What there is to say about a page."""
        notes = [Text(f"{counted(len(found), 'record')} of {self.scanned} that were read.")]
        if len(found) < self.matched:
            notes.append(
                Text(f"They are the newest of {self.matched}: choose a partition to see the others.")
            )
        ends = self.reader.ends
        if before := [p for p, position in self.reader.positions.items() if position > ends[p]]:
            where = listed([f"that of partition {partition} at {ends[partition]}" for partition in before])
            notes.append(Text(f"Logs end before that offset: {where}.", "warning"))
        return notes

    def _matches(self, found: Found) -> bool:
        record = found.read.record
        return self._search.matches(
            as_text(record.key), found.value.text, headers_text(record.headers), found.value.decoded
        )


def _age_order(found: Found) -> tuple[int, int, int]:
    """The key that sorts records by their times."""
    return found.read.record.timestamp, found.read.partition, found.read.record.offset


def chosen(visit: Visit) -> tuple[int, ...]:
    """The partition that is asked for; none, if all are."""
    return (visit.number("partition"),) if visit.asked("partition") else ()


def readable(visit: Visit) -> tuple[tuple[int, ...], Sequence[Part]]:
    """The partitions that a page reads: the one that is asked for, or all that have a leader. And a warning
    that others are left out.

    Raises:
        KafkaError: there is no such topic.
    """
    leaders = leaders_of(known_topic(visit.client, visit.path["topic"]))
    led = tuple(number for number, leader in leaders.items() if leader != NO_LEADER)
    if asked := chosen(visit):
        return asked, ()
    without = [str(number) for number in leaders if number not in led]
    if not without:
        return led, ()
    text = f"Without {counted(len(without), 'partition')} for want of a leader: {listed(without)}."
    return led, (Text(text, "warning"),)


def _first_of(records: list[ReadRecord]) -> dict[int, int]:
    """Partition -> the first offset of it in these records."""
    return {read.partition: read.record.offset for read in reversed(records)}


def _decoded(decode: Decode, chunk: list[ReadRecord]) -> list[Found]:
    values = decode([(read.record.offset, read.record.key, read.record.value) for read in chunk])
    return [Found(read, value) for read, value in zip(chunk, values, strict=True)]


def _positions(text: str) -> dict[int, int]:
    """Positions like `0:120,1:7`.

    Raises:
        click.ClickException: they are none.
    """
    entries = [entry.partition(":") for entry in text.split(",")]
    if not all(partition.isdecimal() and offset.isdecimal() for partition, _, offset in entries):
        raise click.ClickException(f"{text!r} are no positions")
    return {parse_number(partition): parse_number(offset) for partition, _, offset in entries}


def _search(visit: Visit) -> Search:
    part = visit.asked("in")
    try:
        path = parse_path(visit.asked("path"))
    except PathError as error:
        raise click.ClickException(str(error)) from None
    return Search(visit.asked("q"), part if part in PARTS else PARTS[0], path, visit.asked("equals"))


def headers_text(headers: Any) -> str:
    """Headers as one text."""
    return ", ".join(
        f"{name.encode(errors='surrogateescape').decode(errors='replace')}={as_text(value)}"
        for name, value in headers
    )


# -- pages
# --------


def show(visit: Visit) -> Page:
    """The page of a topic's records."""
    topic = visit.path["topic"]
    partitions, left_out = readable(visit)
    scan = Scan(visit, partitions)
    found = scan.page()
    others = {key: value for key, value in visit.query.items() if key not in ("at", "done")}
    parts: list[Part] = [_form(visit), *left_out, _table(topic, found), *scan.notes(found)]
    # From where this page begins, also after "Go on".
    same = {**others, "at": visit.asked("at")}
    links = [
        Link("Follow new records", topic_url(topic, "/messages/tail")),
        Link("Download as JSON lines", url(topic_url(topic, "/messages/jsonl"), **same)),
        Link("Download as Parquet", url(topic_url(topic, "/messages/parquet"), **same)),
        Link("Topic", topic_url(topic)),
    ]
    if not scan.reader.is_finished:
        at = ",".join(f"{partition}:{offset}" for partition, offset in scan.reader.positions.items())
        links.insert(0, Link("Go on", url(topic_url(topic, "/messages"), **others, at=at)))
    sections = [Section("Records", parts)]
    if visit.can_write:
        sections.append(Section("Write a record", (_new_record(topic),)))
    return Page(f"Records of {topic}", sections, links)


def show_tail(visit: Visit) -> Page:
    """The page of records that come from now on."""
    topic = visit.path["topic"]
    _, left_out = readable(visit)
    tail = topic_url(topic, "/messages/events")
    note = Text("Records that are written from now on appear here, the newest first.")
    return Page(
        f"New records of {topic}",
        (Section("Records", (note, *left_out, _table(topic, [])._replace(tail=tail))),),
        (Link("Records so far", topic_url(topic, "/messages")),),
    )


def follow(visit: Visit) -> Callable[[], object]:
    """The rows of new records."""
    topic = visit.path["topic"]
    decode = decoder(visit.settings, topic, AUTOMATIC, "")
    readers: list[Reader] = []

    def next_rows() -> object:
        if not readers:
            places = Places(visit.client, topic, readable(visit)[0], read_committed=False)
            readers.append(Reader(visit.client, topic, places.start("end", None)))
        found = _decoded(decode, list(islice(readers[0].poll(), SHOWN)))
        return {"rows": [one.cells() for one in found]}

    return next_rows


def _table(topic: str, found: list[Found]) -> Listing:
    return listing(Table(COLUMNS), f"Records of {topic}", [one.cells() for one in found])


def _form(visit: Visit) -> Form:
    fields = [
        Field(
            "from",
            "From",
            visit.asked("from") or LAST,
            hint="-50: the last 50 of each partition, the newest shown; 120: an offset; "
            "@2026-01-31T12:00: a time; beginning",
        ),
        Field("partition", "Partition", visit.asked("partition"), hint="all if empty"),
        Field("as", "Read values as", visit.asked("as"), "select", choices(visit.settings)),
        Field("q", "Containing", visit.asked("q"), "search"),
        Field("in", "In", visit.asked("in"), "select", [(part, part) for part in PARTS]),
        Field("path", "With a value at", visit.asked("path"), hint="a path as in $.customer.names[0]"),
        Field("equals", "That is", visit.asked("equals"), hint="any if empty"),
    ]
    if visit.settings.protobuf:
        fields.insert(3, Field("message", "Protobuf message", visit.asked("message"), hint="as shop.Order"))
    return Form(topic_url(visit.path["topic"], "/messages"), "Show", fields, method="get")


def _new_record(topic: str) -> Form:
    return Form(
        topic_url(topic, "/produce"),
        "Write",
        (
            Field("key", "Key", hint="none if empty"),
            Field("value", "Value", kind="area"),
            Field("headers", "Headers", kind="area", hint="one name=value a line"),
            Field("partition", "Partition", hint="by the key if empty"),
            Field(
                "kind", "The value is", kind="select", options=[("text", "the text above"), ("null", "null")]
            ),
        ),
    )


# -- what leaves and what comes
# -----------------------------


def download_json(visit: Visit) -> Response:
    """The records that match as JSON lines, as `consume --json` prints them."""
    topic = visit.path["topic"]
    output = JsonOutput(topic)
    found, is_part = _downloaded(visit)
    return _file(topic, "jsonl", b"".join(output.line(one.read) for one in found), is_part=is_part)


def download_parquet(visit: Visit) -> Response:
    """The records that match as a Parquet file, with the columns of `pykafka_broker.arrow`.

    Raises:
        click.ClickException: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise click.ClickException("Parquet needs pyarrow: python3 -m pip install pyarrow") from None
    from pykafka_broker.arrow.core.columns import KAFKA_COLUMNS, schema_of

    topic = visit.path["topic"]
    found, is_part = _downloaded(visit)
    rows = [
        {
            "key": one.read.record.key,
            "value": one.read.record.value,
            "topic": topic,
            "partition": one.read.partition,
            "offset": one.read.record.offset,
            "timestamp": one.read.record.timestamp,
            "timestampType": int(one.read.is_append_time),
            "headers": [
                {"key": name.encode(errors="surrogateescape").decode(errors="replace"), "value": value}
                for name, value in one.read.record.headers
            ]
            or None,
        }
        for one in found
    ]
    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows, schema_of(KAFKA_COLUMNS)), file)
    return _file(topic, "parquet", file.getvalue(), is_part=is_part)


def _downloaded(visit: Visit) -> tuple[list[Found], bool]:
    """The records that match, up to a limit, and whether there may be more."""
    known_topic(visit.client, visit.path["topic"])
    scan = Scan(visit, chosen(visit))
    taken: list[Found] = []
    left_bytes = DOWNLOADED_BYTES
    for found in islice(scan.matches(), DOWNLOADED):
        left_bytes -= _bytes_of(found.read.record)
        if left_bytes < 0:
            return taken, True
        taken.append(found)
    return taken, not scan.reader.is_finished


def _bytes_of(record: Record) -> int:
    headers = sum(
        len(name.encode(errors="surrogateescape")) + len(value or b"") for name, value in record.headers
    )
    return len(record.key or b"") + len(record.value or b"") + headers


def _file(topic: str, suffix: str, data: bytes, *, is_part: bool) -> Response:
    # The file says that there may be more, also when its page is closed.
    name = f"{quote(topic, safe='')}{'.part' if is_part else ''}.{suffix}"
    attachment = f"attachment; filename*=UTF-8''{name}"
    return Response(data, media_type="application/octet-stream", headers={"Content-Disposition": attachment})


def produce(visit: Visit) -> str:
    """Write one record."""
    topic = visit.path["topic"]
    # A writer would have the topic created.
    known_topic(visit.client, topic)
    lines = tuple(line for line in visit.given("headers").splitlines() if line.strip())
    writer = Writer(
        visit.client,
        topic,
        headers=tuple((name, value.encode()) for name, value in pairs(lines, "Headers")),
        partition=visit.number("partition") if visit.given("partition") else None,
    )
    key, value = visit.form.get("key", ""), visit.form.get("value", "")
    [written] = writer.write(
        [NewRecord(key.encode() or None, None if visit.given("kind") == "null" else value.encode())]
    )
    at = f"{written.partition}:{written.base_offset}"
    return url(topic_url(topic, "/messages"), at=at, partition=written.partition, done="written")
