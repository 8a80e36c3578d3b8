"""A checkpoint compared with its topics as a cluster has them."""

from __future__ import annotations

from collections.abc import Sequence

from pykafka_broker.client.blocking import Client
from pykafka_broker.spark.checkpoint.comparison import Question, State, Whither, compare
from pykafka_broker.spark.checkpoint.files import Checkpoint
from pykafka_broker.spark.checkpoint.topics import Topic, first_since, look
from pykafka_broker.spark.errors import SparkError

#: How far the clocks of producers may be ahead of Spark's.
CLOCK_SKEW_MS = 60_000


def topics_of(client: Client, found: Checkpoint) -> dict[str, Topic]:
    """The topics that the checkpoint names, as they are now.

    Raises:
        SparkError: its query does not read Kafka.
    """
    positions = found.positions()
    names = {topic for offsets in positions.values() for topic, _ in offsets}
    if not names:
        raise SparkError(f"{found.folder} is of a query that does not read Kafka.")
    return look(client, names)


def states_of(
    client: Client,
    found: Checkpoint,
    topics: dict[str, Topic],
    recreated: Sequence[str] = (),
    whither: Whither = Whither.EARLIEST,
) -> list[State]:
    """Every partition of the checkpoint."""
    positions = found.positions()
    since = {}
    if found.last.planned_ms is not None and found.is_done:
        existing = {p for offsets in positions.values() for p in offsets if p[0] in topics}
        since = first_since(client, existing, found.last.planned_ms + CLOCK_SKEW_MS)
    question = Question(found.planned_ends(), found.topic_ids, since, recreated, whither)
    return compare(positions, topics, question)
