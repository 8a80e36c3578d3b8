"""Whether the reader of a source was told what to do with aborted transactions.

A replay commits all that it writes, so that an aborted record among its rows becomes a committed one. The
formats `kafka` and `kafka_log` give such records unless `kafka.isolation.level` is `read_committed`, and a
row does not tell. So a replay refuses a source that is read without saying the level. Classic sessions know
the options of a DataFrame; Spark Connect does not show them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pykafka_broker.spark.replay.errors import ReplayError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEVEL, COMMITTED = "kafka.isolation.level", "read_committed"
KAFKA, KAFKA_LOG = "kafka", "kafka_log"
#: The class of Spark's own relation, and its field with the options.
_KAFKA_RELATION, _OPTIONS = "KafkaRelation", "sourceOptions"


def insist_on_level(source: DataFrame) -> None:
    """Refuse a source of `kafka` or `kafka_log` that is read without an isolation level.

    Raises:
        ReplayError: the source is refused.
    """
    for name in _formats_without_level(source):
        raise ReplayError(
            f"The source is format('{name}') without the option {LEVEL}: records of aborted transactions "
            f"would be written as committed ones. Read it with .option('{LEVEL}', '{COMMITTED}'), or with "
            "'read_uncommitted' if you want them."
        )


def _formats_without_level(source: DataFrame) -> Iterator[str]:
    frame: Any = getattr(source, "_jdf", None)
    if frame is None:
        return
    leaves = frame.queryExecution().analyzed().collectLeaves()
    for number in range(leaves.size()):
        leaf = leaves.apply(number)
        kind = leaf.getClass().getSimpleName()
        if kind == "DataSourceV2Relation":
            if leaf.table().name() == KAFKA_LOG and not leaf.options().containsKey(LEVEL):
                yield KAFKA_LOG
        elif kind == "LogicalRelation":
            relation = leaf.relation()
            is_kafka = relation.getClass().getSimpleName() == _KAFKA_RELATION
            if is_kafka and not _options_of(relation).contains(LEVEL):
                yield KAFKA


def _options_of(relation: Any) -> Any:
    """The options of Spark's relation of Kafka, a map of Scala's."""
    field = relation.getClass().getDeclaredField(_OPTIONS)
    field.setAccessible(True)
    return field.get(relation)
