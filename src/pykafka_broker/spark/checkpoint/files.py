"""The folder of a checkpoint, as Spark 3.5 and 4 write it.

    metadata          {"id": "<the query's id>"}
    offsets/<batch>   v1, a line of settings, and for each source where the batch ends, `-` for none
    commits/<batch>   there once the batch is done

The source of Kafka writes {"topic": {"<partition>": <offset>}}: the offset that is read next. A batch that is
planned but not done is run again between the offsets of the file before it and those of its own.

Offsets are read; everything else in the folder (state, initial offsets of sources) is left alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.system.named_tuple import NamedTuple

VERSION = "v1"
#: The file with the ids of topics, in the folder of the checkpoint.
TOPIC_IDS = "kafka-topic-ids.json"

Offsets = dict[PartitionKey, int]


class Batch(NamedTuple):
    """A file of offsets."""

    number: int
    path: Path
    #: When the batch was planned, milliseconds since 1970; None if the file does not say.
    planned_ms: int | None
    #: The lines of the file: its version, the settings, then a line for each source.
    lines: tuple[str, ...]

    def kafka_sources(self) -> dict[int, Offsets]:
        """The number of each source that reads Kafka, with its offsets."""
        found = {number: kafka_offsets(line) for number, line in enumerate(self.lines[2:])}
        return {number: offsets for number, offsets in found.items() if offsets is not None}

    def with_offsets(self, sources: Mapping[int, Offsets]) -> str:
        """The text of the file with other offsets for these sources; the rest stays as it is."""
        lines = list(self.lines)
        for number, offsets in sources.items():
            lines[2 + number] = offsets_line(offsets)
        return "\n".join(lines)


class Checkpoint(NamedTuple):
    """The state of a query, as its checkpoint shows it."""

    folder: Path
    query_id: str | None
    #: The newest file of offsets, and the one before it.
    last: Batch
    before: Batch | None
    #: Whether the newest batch is done.
    is_done: bool
    #: Topic -> id, if they were remembered.
    topic_ids: dict[str, str]

    def positions(self) -> dict[int, Offsets]:
        """The next offsets that each source of Kafka reads: a batch that is not done is read again.

        Raises:
            SparkError: no batch is done yet.
        """
        if self.is_done:
            return self.last.kafka_sources()
        if self.before is None:
            raise SparkError(
                f"No batch of {self.folder} is done: nothing is lost if you delete the folder and let the "
                "query start anew."
            )
        return self.before.kafka_sources()

    def planned_ends(self) -> dict[int, Offsets]:
        """The end offsets of each source of Kafka for the newest batch; empty if that batch is done."""
        return {} if self.is_done else self.last.kafka_sources()


def kafka_offsets(line: str) -> Offsets | None:
    """The offsets that a source wrote, if it is one of Kafka; else None."""
    try:
        value: Any = json.loads(line)
    except ValueError:
        return None
    if not isinstance(value, dict) or not value:
        return None
    found: Offsets = {}
    for topic, partitions in value.items():
        if not isinstance(partitions, dict):
            return None
        for number, offset in partitions.items():
            if not number.isdecimal() or not isinstance(offset, int) or isinstance(offset, bool):
                return None
            found[topic, int(number)] = offset
    return found


def offsets_line(offsets: Mapping[PartitionKey, int]) -> str:
    """The line of a source of Kafka, as Spark writes it."""
    by_topic: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        by_topic.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(by_topic, separators=(",", ":"))


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read the folder of a checkpoint.

    Raises:
        SparkError: the folder has no checkpoint, or one of an unknown form.
        OSError: it cannot be read.
    """
    if not (folder / "offsets").is_dir():
        raise SparkError(f"{folder} is no checkpoint of a streaming query: it has no folder `offsets`.")
    numbers = _batch_numbers(folder / "offsets")
    if not numbers:
        raise SparkError(f"{folder} has no batch yet: the query starts where startingOffsets says.")
    last = _read_batch(folder, numbers[-1])
    before = _read_batch(folder, numbers[-2]) if len(numbers) > 1 else None
    is_done = last.number in _batch_numbers(folder / "commits")
    return Checkpoint(folder, _query_id(folder), last, before, is_done, read_topic_ids(folder))


def read_topic_ids(folder: Path) -> dict[str, str]:
    """The ids of topics that were remembered in the folder."""
    path = folder / TOPIC_IDS
    if not path.exists():
        return {}
    value = json.loads(path.read_text())
    return {str(topic): str(topic_id) for topic, topic_id in value.items()}


def write_topic_ids(folder: Path, topic_ids: Mapping[str, str]) -> None:
    """Remember the ids of topics in the folder."""
    write_whole(folder / TOPIC_IDS, json.dumps(dict(sorted(topic_ids.items())), indent=1) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Give a file this content; if the program or the machine stops meanwhile, it has the old or the new one.

    Raises:
        OSError: the file cannot be written, and is as before.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    with unfinished.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    # Hadoop keeps a checksum beside each file, and refuses a file that does not fit it.
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    unfinished.replace(path)


def _batch_numbers(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdecimal())


def _read_batch(folder: Path, number: int) -> Batch:
    path = folder / "offsets" / str(number)
    lines = tuple(path.read_text().split("\n"))
    if lines[0].strip() != VERSION or len(lines) < 3:
        raise SparkError(
            f"{path} begins with {lines[0][:20]!r}: of the forms of Spark's offset files, {VERSION} is known "
            "here."
        )
    try:
        planned_ms = json.loads(lines[1]).get("batchTimestampMs")
    except (ValueError, AttributeError):
        planned_ms = None
    return Batch(number, path, planned_ms if isinstance(planned_ms, int) and planned_ms else None, lines)


def _query_id(folder: Path) -> str | None:
    try:
        found = json.loads((folder / "metadata").read_text())["id"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(found)
