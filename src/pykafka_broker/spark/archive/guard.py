"""Whether an archive job may start: do checkpoint, table and topics belong together? Pure.

Where they do not, Spark and the tables would lose or repeat records silently:

    a new checkpoint on a table that has records    every record twice (Delta, Iceberg), or the first batches
                                                    passed over as known (Parquet)
    a checkpoint that is older than the table       new batches have numbers that the sink knows already, and
                                                    are passed over: their records are lost
    another table under the same name               the records that the checkpoint has read are not in it
    a topic that was created anew                   offsets begin again, and old ones mean other records
    records that retention has removed              a gap
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.spark.archive.settings import Start
from pykafka_broker.spark.checkpoint.comparison import SOUND, Question, Standing, State, compare
from pykafka_broker.spark.checkpoint.files import Offsets
from pykafka_broker.spark.checkpoint.topics import Topic
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.system.named_tuple import NamedTuple


class Place(NamedTuple):
    """A partition of the topic with this id, not only this name; the id is "" if brokers have none."""

    topic: str
    topic_id: str
    partition: int


class Progress(NamedTuple):
    """The progress of a job, as noted by its checkpoint."""

    folder: str
    #: The next offsets that each source reads; the job has one source.
    positions: Mapping[int, Offsets]
    #: The end offsets of the newest batch, done or not; empty before the first one.
    planned_ends: Mapping[int, Offsets]
    topic_ids: Mapping[str, str]
    #: The id of the table that it fills; None if no archive job began the query.
    archive_id: str | None
    #: Where the query began; partitions that came later are not in it.
    beginning: Offsets = {}

    @property
    def ends(self) -> Offsets:
        """For each partition the offset after the last planned one."""
        planned = self.planned_ends or self.positions
        return {partition: end for offsets in planned.values() for partition, end in offsets.items()}


class Archive(NamedTuple):
    """The state of the table."""

    name: str
    archive_id: str | None
    #: The offset after the last record, for places that were looked up.
    ends: Mapping[Place, int]
    #: Whether the table ignores the batches of all checkpoints but its first, as Parquet does.
    is_of_one_checkpoint: bool = False


def places(topics: Mapping[str, Topic]) -> dict[PartitionKey, Place]:
    """The partitions of topics as they are now."""
    return {
        (name, number): Place(name, topic.topic_id, number)
        for name, topic in topics.items()
        for number in topic.partitions
    }


def refuse_missing(names: Collection[str], topics: Mapping[str, Topic]) -> None:
    """Refuse topics that do not exist; SparkError."""
    if missing := sorted(set(names) - set(topics)):
        raise SparkError(f"Topic '{missing[0]}' does not exist.")


def refuse_to_go_on(progress: Progress, topics: Mapping[str, Topic], archive: Archive | None) -> None:
    """Refuse a job that would not go on where it stopped.

    Raises:
        SparkError: the job is refused; the message says why and what to do.
    """
    folder = progress.folder
    if progress.archive_id is None:
        raise SparkError(
            f"The checkpoint {folder} is not one of an archive job: give the job one of its own."
        )
    if archive is None or archive.archive_id != progress.archive_id:
        what = "is not there any more" if archive is None else "is not the one"
        raise SparkError(
            f"The table that the checkpoint {folder} belongs to {what}: what the job has read is not in it. "
            "Give a new checkpoint to fill a table anew."
        )
    read = {topic for topic, _ in progress.ends}
    if others := sorted(read - set(topics)):
        raise SparkError(
            f"The checkpoint {folder} also reads topic '{others[0]}'. Name it too, if it exists; give "
            "another set of topics a checkpoint of its own."
        )
    question = Question(progress.planned_ends, progress.topic_ids, {})
    unsound = [s for s in compare(progress.positions, topics, question) if s.standing not in SOUND]
    if unsound:
        raise SparkError(f"{sentence(unsound[0])}{_and_more(unsound)} {_way_on(progress)}")
    for partition, place in places(topics).items():
        end, in_table = progress.ends.get(partition, 0), archive.ends.get(place, 0)
        if in_table <= end:
            continue
        if place.topic not in read:
            raise SparkError(
                f"Table {archive.name} has records of {place.topic}-{place.partition} already, which another "
                "job put there. Let that job go on."
            )
        raise SparkError(
            f"The checkpoint {folder} is older than the table: it ends at offset {end} of "
            f"{place.topic}-{place.partition}, and {archive.name} at offset {in_table}. New batches would "
            f"have numbers that the table knows, and would be lost. {_NEW_CHECKPOINT}"
        )


def committed(progress: Progress, name: str, topic_id: str, archive: Archive) -> dict[int, tuple[int, int]]:
    """The first and the end offset that a job has committed, of each partition of a topic.

    Args:
        progress: The progress of the job.
        name: The name of the topic.
        topic_id: Its id; "" is not compared.
        archive: The table that must have them.

    Raises:
        SparkError: the job is not of this table or not of this topic.
    """
    folder = progress.folder
    if progress.archive_id is None or progress.archive_id != archive.archive_id:
        raise SparkError(f"The checkpoint {folder} is not one of the job that fills {archive.name}.")
    ends = {
        number: end
        for offsets in progress.positions.values()
        for (of_topic, number), end in offsets.items()
        if of_topic == name
    }
    if not ends and name not in progress.topic_ids:
        raise SparkError(f"The checkpoint {folder} is of a job that does not archive topic '{name}'.")
    archived_id = progress.topic_ids.get(name, "")
    if archived_id and topic_id and archived_id != topic_id:
        raise SparkError(
            f"Topic '{name}' was deleted and created anew since the job of the checkpoint {folder} has read "
            f"it (its id is {topic_id}, and was {archived_id}): nothing of the new topic is archived."
        )
    beginnings = {number: progress.beginning.get((name, number), 0) for number in ends}
    # After a repair the topic may be a new one that ends before the old one's beginning.
    return {number: (min(beginnings[number], end), end) for number, end in ends.items()}


def starting_offsets(start: Start, topics: Mapping[str, Topic], archive: Archive | None) -> str:
    """The offsets where a job with a new checkpoint begins, as `startingOffsets` takes them.

    Raises:
        SparkError: the job would repeat or leave out records; the message says which and what to do.
    """
    if archive is not None and archive.is_of_one_checkpoint:
        raise SparkError(
            f"{archive.name} has batches already, and the checkpoint is new: a folder of Parquet goes with "
            "the checkpoint that it was begun with. Give that, or another folder."
        )
    in_table = {
        partition: end
        for partition, place in places(topics).items()
        if archive is not None and (end := archive.ends.get(place, 0))
    }
    if not start.is_behind_table:
        if in_table and archive is not None:
            (first, number), end = min(in_table.items())
            raise SparkError(
                f"Table {archive.name} has records of {first}-{number} up to offset {end - 1} already, and "
                "the checkpoint is new: they would be there twice. If the old checkpoint is lost, go on "
                f"behind them with the start `{Start.BEHIND_TABLE}`."
            )
        return start.value
    by_topic: dict[str, dict[str, int]] = {}
    for name, topic in sorted(topics.items()):
        for number, (log_start, log_end) in sorted(topic.partitions.items()):
            offset = in_table.get((name, number), log_start)
            if offset > log_end:
                raise SparkError(
                    f"The table has {name}-{number} up to offset {offset - 1}, and the topic ends at offset "
                    f"{log_end}: it has lost its end, and its next records would have offsets of others."
                )
            if offset < log_start and start is Start.BEHIND_TABLE:
                raise SparkError(
                    f"{name}-{number}: offsets {offset} to {log_start - 1} are not in the table, and gone "
                    f"from the topic. To go on without them, use the start `{Start.BEHIND_TABLE_WITH_GAPS}`."
                )
            by_topic.setdefault(name, {})[str(number)] = max(offset, log_start)
    return json.dumps(by_topic, separators=(",", ":"))


def refuse_changed(
    topic_ids: Mapping[str, str], now: Mapping[str, str], verified: Mapping[PartitionKey, int]
) -> None:
    """Stop a running job if one of its topics was deleted, or created anew.

    Args:
        topic_ids: The ids of its topics at its start.
        now: The ids of the topics that exist.
        verified: The job's offsets at the last check.

    Raises:
        SparkError: one was deleted, or created anew.
    """
    for topic, topic_id in topic_ids.items():
        if now.get(topic) == topic_id:
            continue
        what = "was deleted" if topic not in now else "was deleted and created anew"
        since = ", ".join(
            f"{t}-{p} from offset {o} on" for (t, p), o in sorted(verified.items()) if t == topic
        )
        message = f"Topic '{topic}' {what} while it was archived."
        if topic in now and since:
            message += f" Rows under its old id ({topic_id}) may be of the new topic: {since}."
        raise SparkError(message)


_NEW_CHECKPOINT = f"Start with a new checkpoint, and the start `{Start.BEHIND_TABLE}`."


def _way_on(progress: Progress) -> str:
    folder = progress.folder
    if not progress.planned_ends:
        return f"It has not archived anything yet: delete the checkpoint {folder}, and start it again."
    return f"See how the job can go on:\n  pykafka-broker spark checkpoint repair {folder}"


def _and_more(unsound: Sequence[State]) -> str:
    return f" So it is with {len(unsound) - 1} more." if len(unsound) > 1 else ""


def sentence(state: State) -> str:
    """The fault of a partition, as a sentence."""
    where, at = f"{state.topic}-{state.partition}", state.position
    match state.standing:
        case Standing.OVERTAKEN:
            assert state.log_start is not None
            return f"{where}: offsets {at} to {state.log_start - 1} were removed before they were archived."
        case Standing.NEW_AND_TRIMMED:
            return f"{where}: a new partition whose first {state.log_start} offsets were removed already."
        case Standing.RECREATED:
            return f"{where}: the topic was deleted and created anew since the job has read it."
        case Standing.BEYOND_END:
            return (
                f"{where}: the job is at offset {at}, and the topic ends at {state.log_end}: it was created "
                "anew, or lost its end."
            )
        case _:
            return f"{where}: the partition does not exist any more; the job is at offset {at}."
