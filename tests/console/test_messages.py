"""Records: shown, searched, followed, downloaded, written, and harmless whatever is in them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import pytest

from pykafka_broker.cli.consume.reader import Reader, ReadRecord
from pykafka_broker.cli.produce import NewRecord, Writer
from pykafka_broker.cli.wording import record_time
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import commit_offsets
from pykafka_broker.console import app, messages
from pykafka_broker.console.settings import Settings
from tests.arrow.registry import served_registry
from tests.console.browser import Browser, Html
from tests.console.test_topics import create

SCRIPT = "<script>alert(1)</script>"
MARK_UP = f"{SCRIPT}\"'><img src=x onerror=alert(1)>&amp;"


def written(client: Client, topic: str, *values: str | bytes | None, partitions: int = 1) -> None:
    create(client, topic, partitions=partitions)
    records = [
        NewRecord(f"key-{at}".encode(), value.encode() if isinstance(value, str) else value)
        for at, value in enumerate(values)
    ]
    Writer(client, topic, timestamp_ms=1767323045000, partition=0).write(records)


def values(page: Html, topic: str) -> list[str]:
    return (
        [row[4] for row in page.rows(f"Records of {topic}")] if f"Records of {topic}" in page.tables else []
    )


def test_the_last_records_are_shown_first_with_all_their_parts(reader: Browser, client: Client) -> None:
    create(client, "parts")
    Writer(client, "parts", headers=(("trace", b"7"), ("raw", b"\xff")), timestamp_ms=1767323045000).write(
        [NewRecord(b"k", b'{"a": 1}'), NewRecord(None, None), NewRecord(b"\xfe", b"\x00\xff")]
    )

    rows = reader.page("/topics/parts/messages").rows("Records of parts")

    assert [(row[0], row[1], *row[3:]) for row in rows] == [
        ("0", "0", "k", '{"a": 1}', "trace=7, raw=ff"),
        ("0", "1", "null", "null", "trace=7, raw=ff"),
        ("0", "2", "fe", "00 ff", "trace=7, raw=ff"),
    ]
    assert rows[0][2] == record_time(1767323045000)


def test_of_several_partitions_the_newest_records_are_shown_by_their_times(
    reader: Browser, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "SHOWN", 4)
    create(client, "spread", partitions=3)
    for at in range(6):
        Writer(client, "spread", timestamp_ms=1767323045000 + at, partition=at % 3).write(
            [NewRecord(None, str(at).encode())]
        )

    page = reader.page("/topics/spread/messages")
    one = reader.page("/topics/spread/messages", partition="1")
    every = reader.page("/topics/spread/messages", **{"from": "beginning"})

    assert values(page, "spread") == ["2", "3", "4", "5"]
    assert "They are the newest of 6: choose a partition to see the others." in page.source
    assert values(one, "spread") == ["1", "4"]
    assert "They are the newest" not in one.source
    rest = reader.page(every.links["Go on"])
    assert sorted(values(every, "spread") + values(rest, "spread")) == list("012345")


def test_where_the_log_ends_is_said_of_an_offset_behind_it(reader: Browser, client: Client) -> None:
    written(client, "short", "0", "1")

    behind = reader.page("/topics/short/messages", **{"from": "999999"})
    end = reader.page("/topics/short/messages", **{"from": "2"})

    assert "Logs end before that offset: that of partition 0 at 2." in behind.source
    assert "Logs end before" not in end.source


def test_a_wrong_place_is_told_by_the_name_of_its_field(reader: Browser, client: Client) -> None:
    written(client, "misplaced", "0")

    answers = [
        reader.get("/topics/misplaced/messages", **{"from": place})
        for place in ("nowhere", "@nowhen", "1" + "0" * 30)
    ]

    assert [answer.status for answer in answers] == [400] * 3
    assert "Invalid value for From: &#39;nowhere&#39; is none of beginning, " in answers[0].page.source
    assert all("--" not in answer.page.source for answer in answers)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({"from": "-2"}, ["3", "4"]),
        ({"from": "3"}, ["3", "4"]),
        ({"from": "beginning", "q": "key-1"}, ["1"]),
        ({"from": "beginning", "q": "4", "in": "value"}, ["4"]),
        ({"from": "@1767323045000"}, ["0", "1", "2", "3", "4"]),
        ({"from": "@1767323046000"}, []),
        ({"from": "beginning", "as": "hex", "q": "32", "in": "value"}, ["32"]),
    ],
)
def test_records_are_found_by_offset_time_and_text(
    reader: Browser, client: Client, query: dict[str, str], wanted: list[str]
) -> None:
    if not any(topic.name == "placed" for topic in client.metadata(None).topics):
        written(client, "placed", "0", "1", "2", "3", "4")

    assert values(reader.page("/topics/placed/messages", **query), "placed") == wanted


def test_records_are_found_by_a_path_of_their_json(reader: Browser, client: Client) -> None:
    written(client, "by-path", '{"to": {"city": "Oslo"}}', '{"to": {"city": "Bergen"}}', "no json")

    def found(**query: str) -> list[str]:
        return values(reader.page("/topics/by-path/messages", **query), "by-path")

    assert found(path="$.to.city", equals="Bergen") == ['{"to": {"city": "Bergen"}}']
    assert len(found(path="to.city")) == 2
    assert reader.get("/topics/by-path/messages", path="to[").status == 400


def test_a_long_search_is_gone_on_with_where_it_stopped(
    reader: Browser, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The download of a page begins where the page does."""
    monkeypatch.setattr(messages, "SHOWN", 2)
    monkeypatch.setattr(messages, "SCANNED", 4)
    written(client, "long", *("ab"[number % 2] for number in range(9)))
    found: list[int] = []
    downloaded: list[int] = []
    page = reader.page("/topics/long/messages", **{"from": "beginning", "q": "b", "in": "value"})
    while True:
        found += (
            [int(row[1]) for row in page.rows("Records of long")] if "Records of long" in page.tables else []
        )
        lines = reader.get(page.links["Download as JSON lines"]).content.splitlines()
        downloaded += [json.loads(line)["offset"] for line in lines]
        if "Go on" not in page.links:
            break
        page = reader.page(page.links["Go on"])

    assert found == downloaded == [1, 3, 5, 7]


def test_long_values_are_cut(reader: Browser, client: Client) -> None:
    written(client, "large", "x" * 100_000)

    [value] = values(reader.page("/topics/large/messages"), "large")

    assert value == "x" * messages.SHOWN_CHARACTERS + "..."


def test_mark_up_in_a_record_stays_text(writer: Browser, client: Client) -> None:
    """In its key, its value, its headers, and in what is searched for."""
    create(client, "mark-up")
    Writer(client, "mark-up", headers=((MARK_UP, MARK_UP.encode()),)).write(
        [NewRecord(MARK_UP.encode(), MARK_UP.encode())]
    )

    page = writer.page("/topics/mark-up/messages", q=SCRIPT, path="", equals=MARK_UP)

    [row] = page.rows("Records of mark-up")
    assert row[3:] == [MARK_UP, MARK_UP, f"{MARK_UP}={MARK_UP}"]
    assert page.tags.count("script") == 1, "the console's own"
    assert "img" not in page.tags
    for path, query in (
        ("/groups/of", {"group": MARK_UP}),
        ("/topics", {"q": MARK_UP}),
        ("/explain", {"kind": "request", "name": MARK_UP}),
        ("/transactions/of", {"id": MARK_UP}),
        (f"/topics/{MARK_UP.replace('/', '%2F')}", {}),
    ):
        answer = writer.get(path, **query).page
        assert (answer.tags.count("script"), "img" in answer.tags) == (1, False), path


def test_records_of_coordinators_are_read_as_what_they_are(reader: Browser, client: Client) -> None:
    written(client, "committed", "0")
    node_id = client.coordinator("reader-of-committed")
    commit_offsets(client, node_id, "reader-of-committed", {("committed", 0): 1})

    page = reader.page("/topics/__consumer_offsets/messages", q="reader-of-committed")

    [value] = values(page, "__consumer_offsets")
    assert '"topic":"committed"' in value


def test_values_are_read_as_protobuf(broker: str, client: Client, tmp_path: Path) -> None:
    from google.protobuf import descriptor_pb2

    field = descriptor_pb2.FieldDescriptorProto(name="id", number=1, type=5, label=1)
    message = descriptor_pb2.DescriptorProto(name="Order", field=[field])
    file = descriptor_pb2.FileDescriptorProto(
        name="o.proto", package="shop", syntax="proto3", message_type=[message]
    )
    descriptors = tmp_path / "orders.desc"
    descriptors.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    written(client, "protobuf", b"\x08\x07", b"\xff")

    with Browser(Settings(broker, protobuf=str(descriptors))) as browser:
        query = {"as": "protobuf", "message": "shop.Order"}
        good, bad = values(browser.page("/topics/protobuf/messages", **query), "protobuf")
        unknown = browser.get("/topics/protobuf/messages", **{**query, "message": "shop.Bill"})

    assert good == '{"id": 7}'
    assert bad.startswith("(") and bad.endswith("ff")
    assert unknown.status == 400


def test_values_are_read_as_avro_by_the_schemas_of_a_registry(broker: str, client: Client) -> None:
    schema = {"type": "record", "name": "Order", "fields": [{"name": "city", "type": "string"}]}
    written(client, "avro", b"\0\0\0\0\7\x08Oslo", b"\0\0\0\0\7\x0cBergen", b"none")
    with served_registry() as registry, Browser(Settings(broker, registry=registry.url)) as browser:
        registry.add("avro-value", 7, schema)
        found = browser.page("/topics/avro/messages", **{"as": "avro", "path": "city", "equals": "Bergen"})
        every = browser.page("/topics/avro/messages", **{"as": "avro"})
        registry.status = 500
        away = browser.get("/topics/avro/messages", **{"as": "avro"})

    assert values(found, "avro") == ['{"city": "Bergen"}']
    assert values(every, "avro")[2].startswith("(")
    assert away.status == 502


def test_what_is_found_is_downloaded_as_json_lines_and_as_parquet(reader: Browser, client: Client) -> None:
    written(client, "taken", "a", "b", b"\xff", None)
    page = reader.page("/topics/taken/messages", **{"from": "1"})

    lines = reader.get(page.links["Download as JSON lines"])
    parquet = reader.get(page.links["Download as Parquet"])

    assert lines.headers["content-disposition"] == "attachment; filename*=UTF-8''taken.jsonl"
    objects = [json.loads(line) for line in lines.content.splitlines()]
    assert [(one["offset"], one.get("value", one.get("value_base64"))) for one in objects] == [
        (1, "b"),
        (2, "/w=="),
        (3, None),
    ]
    rows = pyarrow.parquet.read_table(io.BytesIO(parquet.content)).to_pylist()
    assert [(row["offset"], row["key"], row["value"]) for row in rows] == [
        (1, b"key-1", b"b"),
        (2, b"key-2", b"\xff"),
        (3, b"key-3", None),
    ]


@pytest.mark.parametrize(
    ("limit", "number", "lines"),
    [("DOWNLOADED_BYTES", 29, 2), ("DOWNLOADED", 1, 1), ("SCANNED", 2, 2), ("SCAN_S", 0.0, 0)],
)
def test_a_download_has_limits_and_says_that_it_is_a_part(
    reader: Browser, client: Client, monkeypatch: pytest.MonkeyPatch, limit: str, number: float, lines: int
) -> None:
    topic = f"limited-by-{limit}"
    create(client, topic)
    # Ten bytes each.
    Writer(client, topic, headers=(("h", b"v"),)).write([NewRecord(b"key-", b"aaaa") for _ in range(3)])
    monkeypatch.setattr(messages, limit, number)

    answer = reader.get(f"/topics/{topic}/messages/jsonl", **{"from": "beginning"})

    assert len(answer.content.splitlines()) == lines
    assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''{topic}.part.jsonl"


def test_a_record_is_written_with_headers_and_shown(writer: Browser, client: Client) -> None:
    create(client, "written", partitions=3)
    page = writer.page("/topics/written/messages")

    done = writer.send(
        page, "/topics/written/produce", key="k", value="v ü", headers="a=1\nb=x=y", partition="2"
    )
    tombstone = writer.send(page, "/topics/written/produce", key="k", kind="null", partition="2")

    [row] = done.page.rows("Records of written")
    assert (row[0], row[1], *row[3:]) == ("2", "0", "k", "v ü", "a=1, b=x=y")
    assert "The record is written." in done.page.source
    assert values(tombstone.page, "written") == ["null"]
    assert writer.send(page, "/topics/written/produce", partition="7").status == 404
    gone = writer.post("/topics/unwritten/produce", page.forms["post", "/topics/written/produce"])
    assert gone.status == 404, "no topic is created by a typo"


def test_new_records_come_as_events(reader: Browser, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are written after the page was opened: here, by the time of the second event."""
    monkeypatch.setattr(app, "STREAM_TURNS", 2)
    monkeypatch.setattr(app, "STREAM_INTERVAL_S", 0)
    written(client, "followed", "old")
    assert (
        'data-tail="/topics/followed/messages/events"' in reader.page("/topics/followed/messages/tail").source
    )
    writer = Writer(client, "followed")

    class Writing(Reader):
        def poll(self) -> Iterator[ReadRecord]:
            yield from super().poll()
            writer.write([NewRecord(b"k", SCRIPT.encode())])

    monkeypatch.setattr(messages, "Reader", Writing)
    answer = reader.http.get("/topics/followed/messages/events")

    assert answer.headers["content-type"].startswith("text/event-stream")
    first, second = [json.loads(event.removeprefix("data: ")) for event in answer.text.split("\n\n") if event]
    assert first == {"rows": []}
    assert [row[:2] + row[3:] for row in second["rows"]] == [[0, 1, "k", SCRIPT, ""]]
