"""Pages about a topic of which one of two partitions has no leader: what is told of the other one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pytest

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.offsets import commit_until_done
from pykafka_broker.console import app, cluster, groups
from pykafka_broker.console.live import LAG, THROUGHPUT
from pykafka_broker.console.page import Text
from pykafka_broker.console.settings import Settings
from pykafka_broker.console.visit import Visit
from pykafka_broker.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from pykafka_broker.spark.progress import described
from tests.console.browser import Browser
from tests.support.offline_partition import GROUP, TOPIC, HalfOffline, half_offline

#: What a cell without a number shows: an en dash.
NONE = "\u2013"


@pytest.fixture(scope="module")
def half() -> Iterator[HalfOffline]:
    with half_offline() as found:
        yield found


@pytest.fixture
def reader(half: HalfOffline) -> Iterator[Browser]:
    with Browser(Settings(half.address, timeout_s=1)) as browser:
        yield browser


def events(reader: Browser, path: str, **query: str) -> list[dict[str, float]]:
    told = reader.http.get(path, params=query).text
    return [json.loads(event.removeprefix("data: ")) for event in told.split("\n\n") if event]


def test_a_group_has_no_lag_where_there_is_no_leader(
    reader: Browser, half: HalfOffline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "STREAM_TURNS", 1)
    monkeypatch.setattr(app, "STREAM_INTERVAL_S", 0)

    page = reader.page("/groups/of", group=GROUP)

    lags = {int(row[1]): row[2:5] for row in page.rows(f"Lag of {GROUP}")}
    assert lags == {half.led: ["1", "2", "1"], half.offline: ["1", NONE, NONE]}
    [lag] = events(reader, "/groups/events", group=GROUP)
    assert lag == {f"{TOPIC}-{half.led}": 1, f"{TOPIC}-{half.offline}": None}


def test_throughput_and_lag_go_on_without_the_partition(
    reader: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "STREAM_TURNS", 2)
    monkeypatch.setattr(app, "STREAM_INTERVAL_S", 0)

    assert events(reader, "/events") == [{LAG: 1}, {LAG: 1, THROUGHPUT: 0.0}]


def test_a_query_of_spark_has_no_lag_unless_all_its_partitions_tell(
    reader: Browser, half: HalfOffline
) -> None:
    for group, partitions in (("of-led", (half.led,)), ("of-both", (0, 1))):
        with Client(half.address) as client:
            # At the end, so that other tests find no more lag.
            progress = {(TOPIC, partition): 2 for partition in partitions}
            commit_until_done(client, group, progress, described(group, 1))

    rows = {row[0]: row[4] for row in reader.page("/spark").rows("Queries of Spark")}

    assert rows == {"of-led": "0", "of-both": NONE}


def test_the_records_of_the_other_partition_are_shown_and_what_is_left_out_is_said(
    reader: Browser, half: HalfOffline
) -> None:
    left_out = f"Without 1 partition for want of a leader: {half.offline}."
    both = reader.page(f"/topics/{TOPIC}/messages", **{"from": "beginning"})
    one = reader.page(f"/topics/{TOPIC}/messages", **{"from": "beginning", "partition": str(half.led)})

    for page in (both, one):
        assert [row[:2] for row in page.rows(f"Records of {TOPIC}")] == [
            [str(half.led), "0"],
            [str(half.led), "1"],
        ]
    assert left_out in both.source
    assert left_out not in one.source
    assert left_out in reader.page(f"/topics/{TOPIC}/messages/tail").source
    assert left_out in reader.page(f"/topics/{TOPIC}/profile").source


def test_a_download_is_whole_or_an_error(reader: Browser, half: HalfOffline) -> None:
    path = f"/topics/{TOPIC}/messages/jsonl"
    asked = {"from": "beginning"}
    assert f"{TOPIC}-{half.offline}: " in reader.get(path, **asked).page.source
    lines = reader.http.get(path, params={**asked, "partition": str(half.led)}).text.splitlines()
    assert [json.loads(line)["value"] for line in lines] == ["one", "two"]


class BesideDeadBroker(Client):
    """Knows one more broker, which has just died."""

    def metadata(self, topics: Iterable[str] | None, *, auto_create: bool = False) -> MetadataResponse:
        told = super().metadata(topics, auto_create=auto_create)
        told.brokers.append(MetadataResponseBroker(node_id=7, host="127.0.0.1", port=1))
        self.brokers.addresses[7] = Address("127.0.0.1", 1)
        return told


def test_groups_are_listed_while_a_broker_does_not_tell_its_own(half: HalfOffline) -> None:
    with BesideDeadBroker(half.address, 1) as client:
        visit = Visit(Settings(half.address), client, {}, {}, {})
        listed, glance = groups.show_all(visit), cluster.show(visit)

    beside = next(each for each in glance.sections if each.heading == "Groups that need a look")
    for section in (listed.sections[0], beside):
        [untold] = [part for part in section.parts if isinstance(part, Text)]
        assert untold.text.startswith("Broker 7 does not tell its groups: ")


def test_a_group_is_shown_while_a_broker_that_does_not_coordinate_it_is_away(half: HalfOffline) -> None:
    with BesideDeadBroker(half.address, 1) as client:
        page = groups.show(Visit(Settings(half.address), client, {}, {"group": GROUP}, {}))

    assert page.title == f"Group {GROUP}"
