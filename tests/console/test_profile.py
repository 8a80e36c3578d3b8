"""What is in a topic: counted from a time on, of a partition, and for some seconds at most."""

from __future__ import annotations

import pytest

from pykafka_broker.cli import topic_profile
from pykafka_broker.cli.produce import NewRecord, Writer
from pykafka_broker.client.blocking import Client
from pykafka_broker.console import profile
from tests.console.browser import Browser
from tests.console.test_messages import MARK_UP
from tests.console.test_topics import create


def test_a_profile_tells_partitions_keys_and_content(reader: Browser, client: Client) -> None:
    create(client, "profiled", partitions=2)
    for partition, keys in ((0, [b"alice", b"alice", MARK_UP.encode()]), (1, [b"bob"])):
        Writer(client, "profiled", headers=(("trace", b"7"),), partition=partition).write(
            [NewRecord(key, b'{"a": 1}') for key in keys]
        )

    page = reader.page(reader.page("/topics/profiled").links["Profile"])

    assert [row[:2] for row in page.rows("Partitions of profiled")] == [["0", "3"], ["1", "1"]]
    assert page.rows("Hot keys of profiled")[0][:3] == ["alice", "2", "50.0%"]
    assert MARK_UP in [row[0] for row in page.rows("Hot keys of profiled")]
    assert "img" not in page.tags
    assert page.rows("Content of profiled")[-1][:3] == ["value", "json", "100%"]
    assert page.rows("Headers of profiled") == [["trace", "4"]]


def test_a_part_of_a_topic_is_counted(reader: Browser, client: Client) -> None:
    create(client, "in-part", partitions=2)
    Writer(client, "in-part", partition=1).write([NewRecord(b"k", b"v")])

    def partitions(**query: str) -> list[list[str]]:
        page = reader.page("/topics/in-part/profile", **query)
        return [row[:2] for row in page.rows("Partitions of in-part")]

    assert partitions(since="1h", partition="1") == [["1", "1"]]
    assert partitions(since="2100-01-01") == [["0", "0"], ["1", "0"]]
    assert reader.get("/topics/in-part/profile", since="yesterday").status == 400
    assert reader.get("/topics/in-part/profile", partition="2").status == 404
    assert reader.get("/topics/unknown/profile").status == 404


def test_a_large_topic_is_counted_in_part_and_the_page_says_so(
    reader: Browser, client: Client, broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client, "large")
    writer = Writer(client, "large", timestamp_ms=1767323045000)
    for _ in range(10):
        writer.write([NewRecord(b"k", bytes(900_000))])
    monkeypatch.setattr(profile, "COUNTED_S", 0.0)

    page = reader.page("/topics/large/profile")

    [[_, counted, *_]] = page.rows("Partitions of large")
    # One answer has less than all of them.
    assert 0 < int(counted) < 10
    assert any(f"{counted} of 10 offsets are counted" in alert for alert in page.alerts)
    assert f">pykafka-broker topics profile large -b {broker}<" in page.source
    part = reader.page("/topics/large/profile", since="2026-01-01T00:00:00+00:00", partition="0")
    command = f"pykafka-broker topics profile large --since 1767225600000 --partition 0 -b {broker}"
    assert f">{command}<" in part.source


def test_the_page_says_how_to_see_the_rows_it_leaves_out(reader: Browser, client: Client) -> None:
    create(client, "wide", partitions=topic_profile.SHOWN_PARTITIONS + 1)

    assert (
        "(1 smaller partition with pykafka-broker topics profile --json)"
        in reader.page("/topics/wide/profile").source
    )
