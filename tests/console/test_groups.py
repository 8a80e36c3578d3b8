"""Groups of all kinds: members, lags, other offsets after a look, deletion; and Spark's queries."""

from __future__ import annotations

import json

import pytest

from pykafka_broker.cli.produce import NewRecord, Writer
from pykafka_broker.cli.share_group_state import set_start_offsets, start_offsets
from pykafka_broker.client import offsets as client_offsets
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import commit_until_done, committed_offsets
from pykafka_broker.console import app, cluster
from pykafka_broker.spark.progress import described
from tests.cli.test_explain import join, leave
from tests.cli.test_groups import member_of
from tests.console.browser import Browser
from tests.console.test_messages import SCRIPT, written
from tests.console.test_topics import create

#: What a cell without a text shows: an en dash.
NONE = "\u2013"


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
        behind = reader.page("/").rows("Stable groups that are furthest behind")
        listed = reader.page("/groups", q="LAGG")
        page = reader.page(listed.links["laggards"])

    assert behind == [["laggards", "Stable", "1", "2"]]
    assert listed.rows("Groups") == [["laggards", "Stable", "1", "2", "classic", "consumer"]]
    [[_, client_id, *_, assignment]] = page.rows("Members of laggards")
    assert (client_id, assignment) == ("reader", "lagging:0")
    assert "The group is Stable: its members have been assigned their partitions, " in page.source


def test_groups_of_a_page_are_asked_about_together(
    reader: Browser, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever their number, the coordinator gets a few requests."""
    written(client, "listed", "0", "1", "2")
    for number in range(110):
        committed(client, f"listed-{number:03}", "listed", number % 4)
    set_start_offsets(client, "listed-share", {("listed", 0): 2})
    sent: list[str] = []
    send = Client.send

    def counted(
        self: Client, request: object, node_id: int | None = None, version: int | None = None
    ) -> object:
        sent.append(type(request).__name__)
        return send(self, request, node_id, version)

    monkeypatch.setattr(Client, "send", counted)
    first = reader.page("/groups", q="listed-")
    asked = len(sent)
    second = reader.page(first.links["Next page"])

    assert first.rows("Groups")[:2] == [
        ["listed-000", "Empty", "0", "3", "classic", NONE],
        ["listed-001", "Empty", "0", "2", "classic", NONE],
    ]
    assert second.rows("Groups")[-2:] == [
        ["listed-109", "Empty", "0", "2", "classic", NONE],
        ["listed-share", "Empty", "0", "1", "share", "share"],
    ]
    assert asked < 10, sent


def test_coordinators_before_kafka_3_are_asked_about_each_group(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_offsets, "_LAST_WITH_NAMES", 7)
    written(client, "older", "0", "1")
    for group, offset in (("older-a", 1), ("older-b", 2)):
        committed(client, group, "older", offset)

    told = client_offsets.committed_of_groups(client, client.coordinator("older-a"), ["older-a", "older-b"])

    assert {group: one["older", 0].offset for group, one in told.items()} == {"older-a": 1, "older-b": 2}


def test_the_page_of_the_cluster_names_groups_that_do_not_read(
    reader: Browser, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    caption = "Groups that rebalance, cannot run, are Empty with a lag, or have a fault"
    written(client, "unread", "0", "1", "2")
    for group, offset in (("0-abandoned", 1), ("0-done", 3), ("0-waiting", 3)):
        committed(client, group, "unread", offset)
    member_id = join(client, "0-waiting")

    found = [row for row in reader.page("/").rows(caption) if row[0].startswith("0-")]
    monkeypatch.setattr(cluster, "ASKED", 0)
    bounded = reader.page("/")
    leave(client, "0-waiting", member_id)

    assigns = "The group is CompletingRebalance: its leader is to assign the partitions."
    waiting = ["0-waiting", "CompletingRebalance", "1", "0", assigns]
    empty = "The group is Empty: no member is in it."
    assert found == [waiting, ["0-abandoned", "Empty", "0", "2", empty]]
    assert bounded.rows(caption) == [waiting]
    assert "groups that are Empty were asked for their lag." in bounded.source


def test_the_page_of_the_cluster_says_what_is_wrong_with_a_group(
    reader: Browser, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    caption = "Groups that rebalance, cannot run, are Empty with a lag, or have a fault"
    for _ in range(3):
        leave(client, "0-restless", join(client, "0-restless"))
    [[*shown, why]] = [row for row in reader.page("/").rows(caption) if row[0] == "0-restless"]
    monkeypatch.setattr(cluster, "EXPLAINED", 0)
    not_asked = reader.page("/")

    assert shown == ["0-restless", "Empty", "0", NONE]
    assert why.startswith("The group rebalanced ")
    assert "joined 3 times and left 3 times." in why
    assert "0-restless" not in not_asked.source
    assert "Why: only of the 0 most urgent of " in not_asked.source


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
    shown = [topic, "0", "2", *(["99"] if value == "99" else []), str(new)]
    assert preview.rows(f"New offsets of {topic}") == [shown]
    assert ("In 1 partition the offset that is asked for is outside of the log" in preview.source) == (
        value == "99"
    )
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
    offered = writer.page("/groups/reset", group="busy", to="to_earliest")
    with member_of("busy", "busy", broker):
        preview = writer.page("/groups/reset", group="busy", to="to_earliest")
        refused = writer.send(offered, "/groups/reset")

    assert ("post", "/groups/reset") not in preview.forms
    assert refused.status == 400
    for page in (preview, refused.page):
        assert "the current state is Stable" in page.source
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
