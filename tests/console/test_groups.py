"""Groups of all kinds: members, lags, other offsets after a look, deletion; and Spark's queries."""

from __future__ import annotations

import json

import pytest

from pykafka_broker.cli.produce import NewRecord, Writer
from pykafka_broker.cli.share_group_state import set_start_offsets, start_offsets
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import commit_until_done, committed_offsets
from pykafka_broker.console import app
from pykafka_broker.spark.progress import described
from tests.cli.test_groups import member_of
from tests.console.browser import Browser
from tests.console.test_messages import SCRIPT, written
from tests.console.test_topics import create


def committed(client: Client, group: str, topic: str, offset: int, metadata: str = "") -> None:
    commit_until_done(client, group, {(topic, 0): offset}, metadata)


def offsets(client: Client, group: str) -> dict[tuple[str, int], int]:
    return committed_offsets(client, client.coordinator(group), group)


def test_a_group_shows_its_state_its_members_and_its_lag(
    reader: Browser, client: Client, broker: str
) -> None:
    written(client, "lagging", "0", "1", "2")
    committed(client, "laggards", "lagging", 1)
    empty = reader.page("/groups/of", group="laggards")
    assert [row[:5] for row in empty.rows("Lag of laggards")] == [["lagging", "0", "1", "3", "2"]]
    assert "The group is Empty: no member is in it." in empty.source

    with member_of("laggards", "lagging", broker):
        listed = reader.page("/groups", q="LAGG")
        page = reader.page(listed.links["laggards"])

    assert [row[:2] for row in listed.rows("Groups")] == [["laggards", "Stable"]]
    [[_, client_id, *_, assignment]] = page.rows("Members of laggards")
    assert (client_id, assignment) == ("reader", "lagging:0")
    assert "The group is Stable: its members have been assigned their partitions, " in page.source


def test_the_lags_of_a_large_group_come_a_hundred_a_page(reader: Browser, client: Client) -> None:
    create(client, "many", partitions=120)
    commit_until_done(client, "of-many", {("many", partition): 0 for partition in range(120)})

    first = reader.page("/groups/of", group="of-many")
    second = reader.page(first.links["Next page"])

    lags = [[row[1] for row in page.rows("Lag of of-many")] for page in (first, second)]
    assert lags == [[str(number) for number in range(100)], [str(number) for number in range(100, 120)]]


def test_a_name_of_a_group_may_have_anything_in_it(writer: Browser, client: Client) -> None:
    name = f"a/b?c&d=e#{SCRIPT}"
    create(client, "named")
    committed(client, name, "named", 0)

    page = writer.page(writer.page("/groups", q=SCRIPT).links[name])
    deleted = writer.send(page, "/groups/delete", name=name)

    assert page.title == f"Group {name}"
    assert page.tags.count("script") == 1
    assert deleted.path == "/groups"
    assert writer.get("/groups/of", group=name).status == 404


@pytest.mark.parametrize(
    ("to", "value", "new"),
    [
        ("to_earliest", "", 0),
        ("to_latest", "", 4),
        ("to_offset", "3", 3),
        ("to_offset", "99", 4),
        ("shift_by", "-1", 1),
        ("to_datetime", "1767323045000", 0),
        ("by_duration", "PT0S", 4),
    ],
)
def test_other_offsets_are_shown_and_then_set(
    writer: Browser, client: Client, to: str, value: str, new: int
) -> None:
    topic = f"reset-{to}-{value.replace('-', 'minus')}"
    written(client, topic, "0", "1", "2", "3")
    committed(client, topic, topic, 2)

    preview = writer.page("/groups/reset", group=topic, to=to, value=value, topics=f"{topic}:0")
    assert preview.rows(f"New offsets of {topic}") == [[topic, "0", "2", str(new)]]
    assert offsets(client, topic) == {(topic, 0): 2}, "it was a look"

    done = writer.send(preview, "/groups/reset")
    assert (done.status, done.page.title) == (200, f"Group {topic}")
    assert offsets(client, topic) == {(topic, 0): new}


@pytest.mark.parametrize(
    ("to", "value"),
    [
        ("", ""),
        ("nowhere", ""),
        ("to_offset", "x"),
        ("to_offset", "-5"),
        ("shift_by", "-1" + "0" * 24),
        ("to_offset", "1" + "0" * 18 + "x"),
        ("to_offset", str(2**63)),
        ("to_datetime", ""),
        ("by_duration", "1 day"),
    ],
)
def test_nonsense_is_told(reader: Browser, client: Client, to: str, value: str) -> None:
    answer = reader.get("/groups/reset", group="any", to=to, value=value)

    assert answer.status == 400
    assert value in answer.page.source


def test_the_offsets_that_were_shown_are_set(writer: Browser, client: Client) -> None:
    """Not those of the moment, which may have moved on."""
    written(client, "moving", "0", "1")
    committed(client, "movers", "moving", 1)
    latest = writer.page("/groups/reset", group="movers", to="to_latest")
    shift = writer.page("/groups/reset", group="movers", to="shift_by", value="1")
    Writer(client, "moving").write([NewRecord(None, b"2")])

    for preview in (latest, shift):
        assert writer.send(preview, "/groups/reset").status == 200
        assert offsets(client, "movers") == {("moving", 0): 2}
    for nonsense in ("", "moving", "moving:0:x", "moving:0:-1", f"moving:{2**31}:0", "moving:0:1,,"):
        assert writer.send(latest, "/groups/reset", offsets=nonsense).status == 400
    assert offsets(client, "movers") == {("moving", 0): 2}


def test_a_group_with_members_keeps_its_offsets(writer: Browser, client: Client, broker: str) -> None:
    written(client, "busy", "0", "1")
    committed(client, "busy", "busy", 1)
    with member_of("busy", "busy", broker):
        preview = writer.page("/groups/reset", group="busy", to="to_earliest")
        refused = writer.send(preview, "/groups/reset")

    assert refused.status == 400
    assert "the current state is Stable" in refused.page.source
    assert offsets(client, "busy") == {("busy", 0): 1}


def test_a_share_group_starts_elsewhere(writer: Browser, client: Client) -> None:
    written(client, "shared", "0", "1", "2")
    set_start_offsets(client, "sharers", {("shared", 0): 1})

    page = writer.page("/groups/of", group="sharers")
    assert [row[:2] for row in page.rows("Lag of sharers")] == [["shared", "0"]]
    state = "The group is Empty: no member is in it."
    assert state in page.source
    assert state in writer.page("/explain", kind="group", name="sharers").source
    preview = writer.page("/groups/reset", group="sharers", to="to_latest")
    assert preview.rows("New offsets of sharers") == [["shared", "0", "1", "3"]]
    assert writer.send(preview, "/groups/reset").status == 200

    assert [each.start_offset for each in start_offsets(client, "sharers")] == [3]


def test_lags_come_as_events(reader: Browser, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "STREAM_TURNS", 1)
    monkeypatch.setattr(app, "STREAM_INTERVAL_S", 0)
    written(client, "live", "0", "1", "2")
    committed(client, "live", "live", 1)

    page = reader.page("/groups/of", group="live")
    events = reader.http.get("/groups/events", params={"group": "live"}).text

    assert 'data-events="/groups/events?group=live"' in page.source
    assert 'data-series="live-0"' in page.source
    assert json.loads(events.removeprefix("data: ")) == {"live-0": 2}


def test_queries_of_spark_are_known_by_what_they_commit(reader: Browser, client: Client) -> None:
    written(client, "for-spark", "0", "1", "2")
    committed(client, "to-lake", "for-spark", 1, described("orders, to lake", 17))

    [row] = reader.page("/spark").rows("Queries of Spark")

    assert row == ["orders, to lake", "17", "for-spark", "1", "2", "to-lake"]
