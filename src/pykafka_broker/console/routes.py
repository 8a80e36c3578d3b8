"""What the console serves where: pages, changes, downloads, events; and what its navigation names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.responses import Response

from pykafka_broker.console import (
    access,
    cluster,
    disks,
    explain,
    groups,
    live,
    messages,
    profile,
    quorum,
    spark,
    topics,
    transactions,
)
from pykafka_broker.console.page import Link, Page
from pykafka_broker.console.visit import Visit
from pykafka_broker.system.named_tuple import NamedTuple

Show = Callable[[Visit], Page]
#: Makes a change, and returns the URL of the page that shows it.
Act = Callable[[Visit], str]
Download = Callable[[Visit], Response]
#: Returns what returns the next numbers of a page.
Follow = Callable[[Visit], Callable[[], object]]


class Action(NamedTuple):
    """A change. Its line in the log names the path and the fields of its form that say what is changed: those
    without which it is refused, and those that may be empty.
    """

    path: str
    act: Act
    required: Sequence[str] = ()
    optional: Sequence[str] = ()


PAGES: tuple[tuple[str, Show], ...] = (
    ("/", cluster.show),
    ("/topics", topics.show_all),
    ("/topics/{topic}", topics.show),
    ("/topics/{topic}/messages", messages.show),
    ("/topics/{topic}/messages/tail", messages.show_tail),
    ("/topics/{topic}/profile", profile.show),
    ("/groups", groups.show_all),
    ("/groups/of", groups.show),
    ("/groups/reset", groups.preview),
    ("/transactions", transactions.show_all),
    ("/transactions/of", transactions.show),
    ("/transactions/hanging", transactions.show_hanging),
    (explain.PATH, explain.show),
    ("/quorum", quorum.show),
    ("/access", access.show),
    ("/disks", disks.show),
    ("/spark", spark.show),
)
ACTIONS = (
    Action("/topics", topics.create, ("name",), ("partitions", "replication_factor", "configs")),
    Action("/topics/{topic}/partitions", topics.add, ("partitions",)),
    Action("/topics/{topic}/configs", topics.configure, ("key",), ("value",)),
    Action("/topics/{topic}/delete", topics.delete),
    Action("/topics/{topic}/produce", messages.produce),
    Action("/groups/reset", groups.reset, ("group", "offsets")),
    Action("/groups/delete", groups.delete, ("group",)),
    Action("/transactions/abort", transactions.abort, ("id",)),
    Action("/transactions/hanging/abort", transactions.abort_hanging, ("topic", "partition", "offset")),
    Action("/access/add", access.add, tuple(access.CHOICES)),
    Action("/access/remove", access.remove, tuple(access.CHOICES)),
)
DOWNLOADS: tuple[tuple[str, Download], ...] = (
    ("/topics/{topic}/messages/jsonl", messages.download_json),
    ("/topics/{topic}/messages/parquet", messages.download_parquet),
)
EVENTS: tuple[tuple[str, Follow], ...] = (
    ("/events", live.follow),
    ("/groups/events", groups.follow),
    ("/topics/{topic}/messages/events", messages.follow),
)
NAVIGATION = (
    Link("Cluster", "/"),
    Link("Topics", "/topics"),
    Link("Groups", "/groups"),
    Link("Transactions", "/transactions"),
    Link("Explain", explain.PATH),
    Link("Quorum", "/quorum"),
    Link("Access", "/access"),
    Link("Disks", "/disks"),
    Link("Spark", "/spark"),
)
