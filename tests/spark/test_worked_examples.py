"""The programs in examples/spark compute what plain Python computes of the same shop."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from examples.spark import (
    abandoned_carts,
    archive_with_duckdb,
    latest_orders,
    order_clicks,
    scheduled,
    shop,
    visits,
)
from pykafka_broker.spark import commit_progress
from pykafka_broker.spark.archive import Table, Topics, archive_topics
from tests.spark.kafka import NOON, Kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Spark's timestamps carry no zone; the session's is UTC.
START = NOON.replace(tzinfo=None)
SHOP = shop.made_up(START, visits=60, seed=11)
WATERMARK = SHOP.clicks[-1].at - dt.timedelta(minutes=2)
TEN_MINUTES = dt.timedelta(minutes=10)


@pytest.fixture(scope="module")
def topics(spark: SparkSession, kafka: Kafka) -> dict[str, str]:
    """The names of the shop's topics, which are only read."""
    names = {"CLICKS": kafka.topic(2, "clicks"), "ORDERS": kafka.topic(2, "orders")}
    shop.send(spark, kafka.bootstrap, names["CLICKS"], SHOP.clicks)
    shop.send(spark, kafka.bootstrap, names["ORDERS"], SHOP.orders)
    return names


@pytest.fixture(autouse=True)
def _settings(spark: SparkSession, topics: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for program in (abandoned_carts, latest_orders, order_clicks, scheduled, visits):
        for constant, name in topics.items():
            _replace_constant(program, constant, name, monkeypatch)
    for key, value in abandoned_carts.CONF.items():
        spark.conf.set(key, value)
    yield
    for key in abandoned_carts.CONF:
        spark.conf.unset(key)


def _replace_constant(program: ModuleType, constant: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if hasattr(program, constant):
        monkeypatch.setattr(program, constant, name)


def visits_of(clicks: Sequence[shop.Click]) -> Iterator[list[shop.Click]]:
    """The clicks of each visit."""
    by_user: dict[str, list[shop.Click]] = defaultdict(list)
    for click in clicks:
        by_user[click.user].append(click)
    for made in by_user.values():
        visit = made[:1]
        for before, click in pairwise(made):
            if click.at - before.at >= TEN_MINUTES:
                yield visit
                visit = []
            visit.append(click)
        yield visit


def test_the_table_of_orders_has_the_newest_status_of_each_order(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    newest = {order.order_id: order for order in SHOP.orders}
    left = {order_id: tuple(order) for order_id, order in newest.items() if order.status is not None}
    assert 0 < len(left) < len(newest), "some orders are forgotten"

    def table() -> dict[str, tuple[object, ...]]:
        rows = spark.read.format("delta").load(str(tmp_path / "orders")).drop("partition", "offset")
        return {row.order_id: tuple(row) for row in rows.collect()}

    latest_orders.keep_latest(spark, kafka.bootstrap, tmp_path / "orders", tmp_path / "checkpoint")
    assert table() == left
    # Reading everything again, as after a crash, changes nothing.
    latest_orders.keep_latest(spark, kafka.bootstrap, tmp_path / "orders", tmp_path / "another checkpoint")
    assert table() == left


def test_visits_and_views_are_written_once_their_windows_have_closed(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    visits.bring_up(spark, kafka.bootstrap, tmp_path)

    found = spark.read.parquet(str(tmp_path / "visits"))
    assert sorted(map(tuple, found.select("user", "started", "last", "clicks", "cart").collect())) == sorted(
        (visit[0].user, visit[0].at, visit[-1].at, len(visit), any(click.page == "/cart" for click in visit))
        for visit in visits_of(SHOP.clicks)
        if visit[-1].at + TEN_MINUTES <= WATERMARK
    )
    quarter = dt.timedelta(minutes=15)
    views = Counter((click.page, START + (click.at - START) // quarter * quarter) for click in SHOP.clicks)
    rows = spark.read.parquet(str(tmp_path / "views")).collect()
    assert {(row.page, row.quarter): row.views for row in rows} == {
        place: count for place, count in views.items() if place[1] + quarter <= WATERMARK
    }


def test_orders_are_joined_with_the_clicks_of_their_user_before_them(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    order_clicks.bring_up(spark, kafka.bootstrap, tmp_path)

    found = spark.read.parquet(str(tmp_path / "order-clicks")).select("order_id", "cents", "page", "clicked")
    assert Counter(map(tuple, found.collect())) == Counter(
        (order.order_id, order.cents, click.page, click.at)
        for order in SHOP.orders
        if order.status == "placed"
        for click in SHOP.clicks
        if click.user == order.user and order.at - dt.timedelta(minutes=30) < click.at <= order.at
    )


def test_a_cart_is_abandoned_ten_minutes_after_the_last_click(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    abandoned_carts.bring_up(spark, kafka.bootstrap, tmp_path)

    found = spark.read.parquet(str(tmp_path / "carts")).select("user", "left_at")
    assert sorted(map(tuple, found.collect())) == sorted(
        (visit[0].user, visit[-1].at)
        for visit in visits_of(SHOP.clicks)
        if any(click.page == "/cart" for click in visit) and visit[-1].at + TEN_MINUTES <= WATERMARK
    )


def test_each_scheduled_run_appends_what_is_new_and_commits_where_it_ended(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, topics: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clicks, group = kafka.topic(2, "clicks"), kafka.new_name("clicks-to-table")
    monkeypatch.setattr(scheduled, "CLICKS", clicks)
    monkeypatch.setattr(scheduled, "GROUP", group)
    listener = commit_progress(spark, kafka.bootstrap, group=group, query=group)

    half = len(SHOP.clicks) // 2
    for sent in (SHOP.clicks[:half], SHOP.clicks[half:], ()):
        if sent:
            shop.send(spark, kafka.bootstrap, clicks, sent)
        assert scheduled.bring_up(spark, kafka.bootstrap, tmp_path) == len(sent)

    rows = spark.read.format("delta").load(str(tmp_path / "clicks")).select("user", "page", "at").collect()
    assert Counter(map(tuple, rows)) == Counter(map(tuple, SHOP.clicks))
    committed = kafka.admin.list_group_offsets
    kafka.eventually(lambda: sum(at.offset for at in committed(group)[group].values()) == len(SHOP.clicks))
    spark.streams.removeListener(listener)


def test_duckdb_reads_the_archive_without_spark(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, topics: dict[str, str]
) -> None:
    clicks = topics["CLICKS"]
    table = Table("delta", str(tmp_path / "table"))
    archive_topics(spark, Topics(kafka.bootstrap, (clicks,)), table, str(tmp_path / "checkpoint"))

    of_user = Counter(click.user for click in SHOP.clicks)
    carts = Counter(click.user for click in SHOP.clicks if click.page == "/cart")
    assert archive_with_duckdb.clicks_of_users(tmp_path / "table", clicks) == sorted(
        ((user, count, carts[user]) for user, count in of_user.items()), key=lambda row: (-row[1], row[0])
    )
