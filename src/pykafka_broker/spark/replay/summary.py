"""The number, the times and the sizes of a partition's records, which a topic has to fit. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.spark.replay.errors import ReplayError
from pykafka_broker.system.named_tuple import NamedTuple

NO_TIMESTAMP = -1


class Summary(NamedTuple):
    """The records of one partition of one topic."""

    topic: str
    partition: int
    #: As Kafka's tools print it; None if the source does not know it.
    topic_id: str | None
    records: int
    first_offset: int
    last_offset: int
    #: The times of records with a timestamp; `NO_TIMESTAMP` if none has one.
    oldest_ms: int
    newest_ms: int
    #: Keys, values and headers, all and the largest of one record.
    size_bytes: int
    largest_bytes: int
    without_key: int


def one_identity(summaries: Iterable[Summary]) -> None:
    """Check that no partition is of two topics with the same name.

    Raises:
        ReplayError: one is, so its offsets are ambiguous.
    """
    seen: dict[str, set[str | None]] = {}
    for summary in summaries:
        seen.setdefault(summary.topic, set()).add(summary.topic_id)
    for topic, ids in sorted(seen.items()):
        if len(ids) > 1:
            names = ", ".join(sorted("unknown" if one is None else one for one in ids))
            raise ReplayError(
                f"The source has records of {len(ids)} topics that were called '{topic}' one after the other "
                f"(topic ids {names}): choose one by its topic id."
            )
