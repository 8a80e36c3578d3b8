"""A made-up shop: the pages that visitors look at, and their orders. The same seed gives the same shop.

    topic      key        value (JSON)
    clicks     user       {"user", "page", "at"}
    orders     order_id   {"order_id", "user", "status", "cents", "at"}; null when an order is forgotten

An order goes through `placed`, `paid` and `shipped`, one record for each; some orders are cancelled, and of
some only a tombstone remains.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

CLICK_SCHEMA = "user STRING, page STRING, at TIMESTAMP"
ORDER_SCHEMA = "order_id STRING, user STRING, status STRING, cents BIGINT, at TIMESTAMP"

#: Settings of the sessions. A shuffle makes 200 parts by default, and a stream keeps the state of each part
#: in a store of its own: on one machine with little data that takes minutes. The number stays with the
#: checkpoint.
SETTINGS = {"spark.sql.shuffle.partitions": "4"}

_PAGES = ("/home", "/search", "/product/1", "/product/2", "/cart")


class Click(NamedTuple):
    """A visitor looked at a page."""

    user: str
    page: str
    at: dt.datetime

    @property
    def key(self) -> str:
        return self.user


class Order(NamedTuple):
    """An order has a new status; without a status the order is forgotten."""

    order_id: str
    user: str
    status: str | None
    cents: int
    at: dt.datetime

    @property
    def key(self) -> str:
        return self.order_id


class Shop(NamedTuple):
    """Everything that happened, each list in the order of time."""

    clicks: Sequence[Click]
    orders: Sequence[Order]


def made_up(start: dt.datetime, visits: int, seed: int = 1) -> Shop:
    """One visit a minute: a few clicks of one user, and after some of them an order."""
    dice = random.Random(seed)
    clicks: list[Click] = []
    orders: list[Order] = []
    for visit in range(visits):
        user, at = f"user-{dice.randrange(max(2, visits // 3))}", start + dt.timedelta(minutes=visit)
        for page in (*dice.choices(_PAGES[:-1], k=dice.randrange(1, 5)), *_PAGES[-1:] * dice.randrange(2)):
            clicks.append(Click(user, page, at))
            at += dt.timedelta(seconds=dice.randrange(5, 90))
        if clicks[-1].page == "/cart" and dice.random() < 0.7:
            orders += _order(f"order-{seed}-{visit}", user, at, dice)
    return Shop(sorted(clicks, key=lambda click: click.at), sorted(orders, key=lambda order: order.at))


def _order(order_id: str, user: str, at: dt.datetime, dice: random.Random) -> Iterator[Order]:
    cents = dice.randrange(100, 20_000)
    statuses = dice.choice([("placed",), ("placed", "paid"), ("placed", "paid", "shipped"), ("placed", None)])
    for status in statuses:
        yield Order(order_id, user, status, cents, at)
        at += dt.timedelta(minutes=dice.randrange(1, 20))


def send(spark: SparkSession, bootstrap: str, topic: str, events: Sequence[Click] | Sequence[Order]) -> None:
    """One JSON record for each event, in their order for each key."""
    rows = [(event.key, _value(event)) for event in events]
    (
        spark.createDataFrame(rows, "key STRING, value STRING")
        .coalesce(1)  # one task sends all: records of one key stay in order
        .write.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", topic)
        .save()
    )


def _value(event: Click | Order) -> str | None:
    fields = event._asdict()
    if fields.get("status", "") is None:
        return None
    return json.dumps({**fields, "at": event.at.isoformat()})


def stream(spark: SparkSession, bootstrap: str, topic: str, schema: str) -> DataFrame:
    """The topic from its beginning: `partition`, `offset`, `key`, and the fields of the value (all null for a
    tombstone).
    """
    from pyspark.sql import functions as f

    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .select(
            "partition",
            "offset",
            f.col("key").cast("string").alias("key"),
            f.from_json(f.col("value").cast("string"), schema).alias("value"),
        )
        .select("partition", "offset", "key", "value.*")
    )


class Choice(NamedTuple):
    """The options of every program here."""

    bootstrap: str
    output: Path
    jars: Path | None
    visits: int
    seed: int


def options(description: str | None, output: str) -> Choice:
    """Read the command line of a program; its docstring is the description."""
    from pathlib import Path

    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="address of a broker")
    parser.add_argument("--output", type=Path, default=Path(output), help="folder for tables and checkpoints")
    parser.add_argument("--jars", type=Path, help="folder of `pykafka-broker spark jars`; without it, Ivy")
    parser.add_argument("--visits", type=int, default=30, help="how many visits to make up")
    parser.add_argument("--seed", type=int, default=1)
    return Choice(**vars(parser.parse_args()))


def last_minutes(visits: int) -> dt.datetime:
    """The start with which this number of visits ends about now."""
    return dt.datetime.now().replace(second=0, microsecond=0) - dt.timedelta(minutes=visits)
