"""replay(): a plain function over a DataFrame, so that it runs wherever its session does.

1. asks the brokers, and checks how the source is read, before the slow steps
2. reads the source once, to know what its records are
3. compares that with the topics to write, and refuses, changes or creates them
4. fences the runs before, and finds out how far they came
5. writes: one task for each partition, in the order of the source's offsets
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import Identity
from pykafka_broker.spark.replay.claims import Claim
from pykafka_broker.spark.replay.errors import ReplayError
from pykafka_broker.spark.replay.fitness import (
    MAX_MESSAGE_BYTES,
    RECORDS,
    Topic,
    Unfit,
    left_over,
    partitions_of,
    right_configs,
    unfit,
)
from pykafka_broker.spark.replay.isolation import insist_on_level
from pykafka_broker.spark.replay.settings import DEFAULTS, Settings, shared_by
from pykafka_broker.spark.replay.summary import Summary, one_identity
from pykafka_broker.spark.replay.table import arranged, summaries, within
from pykafka_broker.spark.replay.takeover import take_over
from pykafka_broker.spark.replay.target import change, create, look
from pykafka_broker.spark.replay.window import EVERYTHING, Window, bounds_of
from pykafka_broker.spark.replay.writing import (
    REQUEST_TIMEOUT_S,
    RESULT_DDL,
    WRITER,
    Assignment,
    Job,
    Written,
    task,
)
from pykafka_broker.spark.security import OPEN, secured
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The size of an Arrow batch that Spark hands to a task.
ARROW_BYTES = 16 * 1024 * 1024
ARROW_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_MOST_ARROW_RECORDS = 10_000
#: The most bytes of a batch besides its records.
_BATCH_OVERHEAD_BYTES = 256
#: Defaults of Kafka 4.
_USUAL = {
    "retention.ms": "604800000",
    "message.timestamp.after.max.ms": "3600000",
    "max.message.bytes": "1048588",
}


class Preparation(Enum):
    """The treatment of topics that are missing or do not fit."""

    #: The replay ends with a sentence about each.
    REFUSE = "refuse"
    #: Missing ones are created so that they fit.
    CREATE = "create"
    #: Existing topics are changed, too.
    CHANGE = "change"


class Target(NamedTuple):
    """The topics that a replay writes."""

    bootstrap_servers: str
    #: Topic of the source -> topic that is written; a name alone, for a source with one topic; None: each
    #: topic keeps its name.
    topics: Mapping[str, str] | str | None = None
    preparation: Preparation = Preparation.REFUSE
    #: Properties that may stay although they delete or change records, such as `retention.ms` and
    #: `cleanup.policy`; `records`: partitions that hold records already.
    accepted: Sequence[str] = ()
    #: The number of partitions of a topic that is created; None: enough for the records. A table does not
    #: show partitions without records, but keys find their partition by the number of all.
    partitions: int | None = None
    #: Properties of Kafka's clients (`security.protocol`, `sasl.*`, `ssl.*`), for the driver and its tasks.
    security: Mapping[str, str] = OPEN

    def __repr__(self) -> str:
        """The fields without the security, which has secrets."""
        return f"Target({', '.join(map(repr, self[:-1]))})"

    @property
    def writer(self) -> Identity:
        """The identity of the clients that ask and write.

        Raises:
            SparkError: there is no such security.
        """
        return secured(WRITER, self.security)


class Replayed(NamedTuple):
    """The result of a run."""

    partitions: tuple[Written, ...]
    #: The settings of topics that were made to fit: topic, key, value.
    changes: tuple[tuple[str, str, str], ...]
    seconds: float
    #: The rows of the source in the window, also those that were written before; 0 may be a mistyped window.
    found: int

    @property
    def records(self) -> int:
        return sum(partition.records for partition in self.partitions)


def replay(
    source: DataFrame,
    target: Target,
    *,
    name: str | None = None,
    window: Window = EVERYTHING,
    settings: Settings = DEFAULTS,
    starts_over: bool = False,
    without_headers: bool = False,
) -> Replayed:
    """Write the records of a table to topics, each once, also over restarts.

    Args:
        source: In Spark's kafka format; of a classic session or of Spark Connect. The reader of `kafka` or
            `kafka_log` is to have the option `kafka.isolation.level`.
        target: The topics to write.
        name: The group of the progress, and the beginning of transactional ids: a run with the same name goes
            on where the last one ended. If None, `replay-to-` and the topic, if there is one.
        window: The records to write; by default all.
        settings: Batches, transactions and rates.
        starts_over: Whether progress is forgotten, so that everything is written again.
        without_headers: Whether a source without the column `headers` will do.

    Raises:
        ReplayError: the source or a topic does not fit, the progress is of another replay, records are
            refused, or the brokers are away for too long.
        KafkaError, OSError: the cluster refuses a request, or is away for too long.
        ValueError: the window needs a column that the source has not got.
    """
    began = time.monotonic()
    rows = within(source, window, without_headers=without_headers)
    insist_on_level(source)
    _ask_first(target)
    found = summaries(rows)
    one_identity(found)
    names = target_names({summary.topic for summary in found}, target.topics)
    with Client(target.bootstrap_servers, REQUEST_TIMEOUT_S, identity=target.writer) as client:
        topics, changes = prepared(client, target, _by_target(found, names))
        job = Job(
            target.bootstrap_servers,
            name or default_name(names),
            tuple(_assignment(summary, topics[names[summary.topic]], window, settings) for summary in found),
            settings,
            target.security,
        )
        positions = take_over(
            client, job, starts_over=starts_over, accepts_records=RECORDS in target.accepted
        )
    left = [
        (summary, assignment, positions[assignment.target])
        for summary, assignment in zip(found, job.assignments, strict=True)
        if positions[assignment.target] <= summary.last_offset
    ]
    written: list[Written] = []
    if left:
        session = source.sparkSession
        writers = min(len(left), _slots(session) or len(left))
        job = job._replace(
            assignments=tuple(assignment for _, assignment, _ in left), settings=shared_by(settings, writers)
        )
        work = arranged(rows, [(s.topic, s.partition, position) for s, _, position in left])
        written = _run(session, work, job, max(summary.largest_bytes for summary, _, _ in left))
    seconds, rows_found = time.monotonic() - began, sum(summary.records for summary in found)
    return Replayed(tuple(sorted(written)), changes, seconds, rows_found)


# -- topics
# ---------


def target_names(topics: set[str], mapping: Mapping[str, str] | str | None) -> dict[str, str]:
    """Topic of the source -> topic that is written.

    Raises:
        ReplayError: one has none, or two have the same one, and no order between their records is known.
    """
    if isinstance(mapping, str):
        mapping = dict.fromkeys(topics, mapping)
    names = {topic: topic if mapping is None else mapping.get(topic, "") for topic in sorted(topics)}
    if missing := [topic for topic, name in names.items() if not name]:
        raise ReplayError(f"Where do records of '{missing[0]}' go? Say so, or leave them out of the window.")
    for name in names.values():
        sources = [topic for topic, other in names.items() if other == name]
        if len(sources) > 1:
            raise ReplayError(
                f"'{sources[0]}' and '{sources[1]}' cannot both go to '{name}': no order is known between "
                "their records."
            )
    return names


def default_name(names: Mapping[str, str]) -> str:
    """The name of a replay without a name of its own.

    Raises:
        ReplayError: it writes several topics.
    """
    if len(names) > 1:
        raise ReplayError(
            f"A replay into {len(names)} topics needs a name, by which it is known when it goes on."
        )
    return f"replay-to-{next(iter(names.values()), 'nothing')}"


def _by_target(found: Sequence[Summary], names: Mapping[str, str]) -> dict[str, list[Summary]]:
    by_target: dict[str, list[Summary]] = {}
    for summary in found:
        by_target.setdefault(names[summary.topic], []).append(summary)
    return by_target


def _ask_first(target: Target) -> None:
    """Check that the brokers answer, and that all topics exist that may not be created.

    Raises:
        ReplayError: a topic is missing.
        KafkaError, OSError: the brokers do not answer, or refuse.
    """
    topics = target.topics
    names = [topics] if isinstance(topics, str) else sorted(set((topics or {}).values()))
    with Client(target.bootstrap_servers, REQUEST_TIMEOUT_S, identity=target.writer) as client:
        existing = look(client, names)
    if target.preparation is Preparation.REFUSE:
        for name in names:
            if name not in existing:
                raise _does_not_exist(name)


def _does_not_exist(topic: str) -> ReplayError:
    return ReplayError(f"Topic '{topic}' does not exist: create it, or let the replay do so.")


def prepared(
    client: Client, target: Target, wanted: Mapping[str, Sequence[Summary]]
) -> tuple[dict[str, Topic], tuple[tuple[str, str, str], ...]]:
    """The topics once they fit, and the settings that were changed.

    Raises:
        ReplayError: one is missing or does not fit, and may not be created or changed.
        KafkaError: the cluster refuses.
    """
    now_ms = time.time_ns() // 1_000_000
    changes: list[tuple[str, str, str]] = []
    topics = look(client, wanted)
    is_new = set()
    for name, of_topic in wanted.items():
        if name in topics:
            continue
        if target.preparation is Preparation.REFUSE:
            raise _does_not_exist(name)
        configs = right_configs(of_topic, _USUAL, now_ms)
        create(client, name, max(target.partitions or 0, partitions_of(of_topic)), configs)
        is_new.add(name)
        changes += [(name, key, value) for key, value in configs.items()]
    if is_new:
        topics |= look(client, is_new)
    refused: list[Unfit] = []
    for name, of_topic in wanted.items():
        found = left_over(unfit(topics[name], of_topic, now_ms), target.accepted)
        if not found:
            continue
        values = {one.what: one.value for one in found if one.value is not None}
        if len(values) < len(found) or not (name in is_new or target.preparation is Preparation.CHANGE):
            refused += found
            continue
        change(client, name, values)
        changes += [(name, key, value) for key, value in values.items()]
    if refused:
        raise ReplayError("\n".join(map(_offered, refused)))
    if changes:
        topics = look(client, wanted)
    return topics, tuple(changes)


def _offered(one: Unfit) -> str:
    """The sentence, with the value that fits."""
    return one.sentence if one.value is None else f"{one.sentence} {one.what}={one.value} would fit."


def _assignment(summary: Summary, topic: Topic, window: Window, settings: Settings) -> Assignment:
    claim = Claim(
        summary.topic,
        summary.partition,
        summary.topic_id or "",
        bounds_of(window, summary.topic, summary.partition),
        topic.topic_id,
    )
    limit = int(topic.configs.get(MAX_MESSAGE_BYTES, settings.batch_bytes)) - _BATCH_OVERHEAD_BYTES
    return Assignment((topic.name, summary.partition), claim, max(1, min(settings.batch_bytes, limit)))


# -- Spark
# --------


def _run(session: SparkSession, work: DataFrame, job: Job, largest_bytes: int) -> list[Written]:
    """Write, with Arrow batches that fit into the memory of a task."""
    before = session.conf.get(ARROW_RECORDS, None)
    fits = max(1, min(_MOST_ARROW_RECORDS, ARROW_BYTES // max(1, largest_bytes)))
    session.conf.set(ARROW_RECORDS, str(fits))
    try:
        rows = work.mapInArrow(task(job), RESULT_DDL).collect()
    except Exception as error:
        if sentence := sentence_of(str(error)):
            raise ReplayError(sentence) from None
        raise
    finally:
        if before is None:
            session.conf.unset(ARROW_RECORDS)
        else:
            session.conf.set(ARROW_RECORDS, before)
    return [Written(*row) for row in rows]


def sentence_of(text: str) -> str | None:
    """The message of the `ReplayError` of a task, out of the text of Spark's error."""
    found = re.findall(rf"{ReplayError.__module__}\.{ReplayError.__name__}: (.+)", text)
    return found[-1].strip() if found else None


def _slots(session: SparkSession) -> int | None:
    """The number of tasks that run at once; None if it is not known, or grows."""
    if session.conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return None
    try:
        return max(1, int(session.sparkContext.defaultParallelism))
    except Exception:  # Spark Connect has no context
        return None
