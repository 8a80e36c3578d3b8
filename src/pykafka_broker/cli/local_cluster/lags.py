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
from pykafka_broker.system.named_tuple import NamedTuple

#: A replica id that stands for a tool.
ANY_REPLICA = -2


class Lag(NamedTuple):
    """The records that the replica furthest behind lacks, but for the replicas on `silent` brokers, which do
    not tell where their logs end; None if the leader does not tell.
    """

    records: int | None
    silent: list[int]

    def __str__(self) -> str:
        known = "unknown" if self.records is None else f"{self.records}"
        if not self.silent:
            return known
        nodes = ", ".join(map(str, self.silent))
        return f"{known} ({f'node {nodes} does' if len(self.silent) == 1 else f'nodes {nodes} do'} not tell)"


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


def partition_lag(topic: str, described: Any, ends: Ends) -> Lag:
    """The lag of a partition's replicas."""
    partition = (topic, described.partition_index)
    told = {one: ends[one, partition] for one in described.replica_nodes if (one, partition) in ends}
    silent = sorted(set(described.replica_nodes) - set(told))
    end = told.get(described.leader_id)
    return Lag(None if end is None else max(0, end - min(told.values())), silent)


def greatest(lags: Iterable[Lag]) -> Lag:
    """The lag of several partitions; 0 without any."""
    found = list(lags)
    known = [lag.records for lag in found if lag.records is not None]
    silent = sorted({broker_id for lag in found for broker_id in lag.silent})
    return Lag(max(known, default=None if found else 0), silent)
