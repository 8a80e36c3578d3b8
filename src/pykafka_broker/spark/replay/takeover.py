"""The start of a run: it fences the producers of earlier runs, and finds their progress.

A partition without progress is claimed: an offset is committed for it before the first record is written. So
a partition that a killed run has begun differs from one with records of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import EARLIEST, LATEST, commit_until_done, list_offsets
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.spark.replay.claims import difference, written
from pykafka_broker.spark.replay.errors import ReplayError
from pykafka_broker.spark.replay.fitness import RECORDS
from pykafka_broker.spark.replay.writing import Assignment, Job


def take_over(
    client: Client, job: Job, *, starts_over: bool, accepts_records: bool
) -> dict[PartitionKey, int]:
    """Fence earlier runs; return for each partition the offset in the source of the next record.

    Args:
        client: Of the cluster that is written to.
        job: The partitions to write.
        starts_over: Whether progress is forgotten.
        accepts_records: Whether partitions without progress may hold records.

    Raises:
        ReplayError: the progress is of another replay, or a partition holds records of others.
        KafkaError, OSError: the cluster refuses, or is away for too long.
    """
    if not job.assignments:
        return {}
    targets = [assignment.target for assignment in job.assignments]
    for target in targets:
        producer = job.producer(client, target)
        producer.initialise()
    committed = producer.committed_offsets(job.name, targets)
    positions, unclaimed = {}, []
    for assignment in job.assignments:
        progress = None if starts_over else committed.get(assignment.target)
        if progress is None:
            unclaimed.append(assignment)
            continue
        topic, partition = assignment.target
        if reason := difference(assignment.claim, progress.metadata):
            raise ReplayError(
                f"The progress of group '{job.name}' in {topic}-{partition} {reason}. Give this replay "
                "another name, or start over."
            )
        positions[assignment.target] = progress.offset
    if not accepts_records:
        _check_empty(client, job.name, [assignment.target for assignment in unclaimed])
    return positions | _claimed(client, job.name, unclaimed)


def _check_empty(client: Client, name: str, targets: Sequence[PartitionKey]) -> None:
    first = list_offsets(client, dict.fromkeys(targets, EARLIEST))
    ends = list_offsets(client, dict.fromkeys(targets, LATEST))
    full = [target for target in targets if ends[target] > first[target]]
    if full:
        topic, partition = full[0]
        raise ReplayError(
            f"{topic}-{partition} holds {ends[full[0]] - first[full[0]]} offsets already, and group '{name}' "
            f"has no progress there: replay into another topic, or accept '{RECORDS}' to write behind them."
        )


def _claimed(client: Client, name: str, unclaimed: Iterable[Assignment]) -> dict[PartitionKey, int]:
    positions = {}
    for assignment in unclaimed:
        commit_until_done(client, name, {assignment.target: 0}, written(assignment.claim))
        positions[assignment.target] = 0
    return positions
