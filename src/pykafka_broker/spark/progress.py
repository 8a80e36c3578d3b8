"""The end offsets of a query's batches, by the progress that Spark tells its listeners. Pure.

A source tells the offset after the last record of a batch, as a consumer group commits it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from pykafka_broker.spark.checkpoint.files import Offsets, kafka_offsets

#: The beginnings of the descriptions of Kafka's sources: `KafkaV2[Subscribe[orders]]`.
KAFKA_SOURCES = ("KafkaV2[", "KafkaSource[")


def end_offsets(sources: Iterable[tuple[str, str | None]]) -> Offsets:
    """The end offsets of a batch: for each partition the smallest offset of the sources that read it.

    Args:
        sources: The description and the end offset of each source, as Spark tells them.
    """
    found: Offsets = {}
    for description, end in sources:
        if not description.startswith(KAFKA_SOURCES) or not end:
            continue
        for partition, offset in (kafka_offsets(_as_json(end)) or {}).items():
            found[partition] = min(offset, found.get(partition, offset))
    return found


def _as_json(end: str) -> str:
    """The offset as JSON; pyspark shows it as a Python value where the event came by Spark Connect."""
    if "'" not in end:
        return end
    import json

    try:
        return json.dumps(ast.literal_eval(end))
    except (ValueError, SyntaxError):
        return end


def described(query: str, batch: int) -> str:
    """The metadata of the offsets that are committed for a query."""
    return f"Spark query {query}, batch {batch}"
