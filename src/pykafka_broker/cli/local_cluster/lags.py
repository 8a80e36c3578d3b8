"""How far replicas are behind their leaders, by the log ends that brokers tell.

With replica id -2, as Kafka's own tools send it, a broker also tells the log ends of its followers' replicas.
All brokers are asked at once: under load, a lag is inexact by the records written meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import LATEST
from pykafka_broker.doctor.reach import all_at_once
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.topic_partition import PartitionKey

#: A replica id that stands for a tool.
ANY_REPLICA = -2

#: The end of a log by its broker and its partition.
Ends = Mapping[tuple[int, PartitionKey], int]


def log_ends(
    connect: Callable[[], Client], brokers: Iterable[int], topics: Sequence[Any]
) -> tuple[Ends, set[int]]:
    """The log ends on these brokers, of topics as a Metadata answer has them, and which of the brokers
    answer. Replicas that are not online are left out.
    """

    def ask(broker_id: int) -> tuple[bool, dict[PartitionKey, int]]:
        """Whether it answers, and the ends."""
        held = {
            topic.name: indexes
            for topic in topics
            if (
                indexes := [one.partition_index for one in topic.partitions if broker_id in one.replica_nodes]
            )
        }
        is_there = False
        with connect() as client, suppress(OSError, KafkaError):
            client.connection(broker_id)
            is_there = True
            if held:
                return is_there, _ends_on(client, broker_id, held)
        return is_there, {}

    asked = list(brokers)
    told = dict(zip(asked, all_at_once(ask, asked), strict=True))
    ends = {
        (broker_id, partition): end
        for broker_id, (_, found) in told.items()
        for partition, end in found.items()
    }
    return ends, {broker_id for broker_id, (is_there, _) in told.items() if is_there}


def _ends_on(client: Client, broker_id: int, held: Mapping[str, list[int]]) -> dict[PartitionKey, int]:
    from pykafka_broker.protocol.messages.list_offsets import (
        ListOffsetsPartition,
        ListOffsetsRequest,
        ListOffsetsTopic,
    )

    asked = [
        ListOffsetsTopic(
            name=name,
            partitions=[ListOffsetsPartition(partition_index=one, timestamp=LATEST) for one in indexes],
        )
        for name, indexes in held.items()
    ]
    answer = client.send(ListOffsetsRequest(replica_id=ANY_REPLICA, topics=asked), broker_id)
    return {
        (topic.name, one.partition_index): one.offset
        for topic in answer.topics
        for one in topic.partitions
        if one.error_code == 0
    }


def partition_lag(topic: str, described: Any, ends: Ends) -> int | None:
    """The records that the last replica lacks; None if a replica or the leader does not tell its log end."""
    partition = (topic, described.partition_index)
    asked = [described.leader_id, *described.replica_nodes]
    told = [ends[broker_id, partition] for broker_id in asked if (broker_id, partition) in ends]
    return max(0, told[0] - min(told)) if len(told) == len(asked) else None


def greatest(lags: Iterable[int | None]) -> int | None:
    """The greatest of some lags; None if one is not known, and 0 without any."""
    found = 0
    for lag in lags:
        if lag is None:
            return None
        found = max(found, lag)
    return found
