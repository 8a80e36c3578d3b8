"""The wait between two nodes of a rolling restart: until the replicas on running nodes are in sync again.

A Metadata request, with the security of the command, tells which ones are not.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from pykafka_broker.cli.cluster import connected
from pykafka_broker.cli.local_cluster.processes import states_of
from pykafka_broker.local_cluster.folder import ClusterFolder
from pykafka_broker.protocol.errors import KafkaError, ProtocolError
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.client.core.connection import ClientSecurity

#: How often the cluster is asked.
POLL_S = 0.1
#: How long it may take to answer; while nodes start and stop it is asked again.
ANSWER_WITHIN_S = 5.0
#: How many partitions are named.
NAMED = 5


class Replica(NamedTuple):
    """A replica that should be in sync."""

    partition: str
    broker_id: int


def not_in_sync(topics: Iterable[Any], brokers: Collection[int]) -> set[Replica]:
    """The replicas on these brokers that are not in sync, by the topics of a Metadata answer."""
    return {
        Replica(f"{topic.name}-{one.partition_index}", broker_id)
        for topic in topics
        for one in topic.partitions
        for broker_id in {*one.replica_nodes} & {*brokers} - {*one.isr_nodes}
    }


def lagging(cluster: ClusterFolder, security: ClientSecurity | None) -> set[Replica]:
    """The replicas on running nodes that are not in sync.

    Raises:
        OSError, KafkaError, ProtocolError: no broker tells.
    """
    brokers = [state for state in states_of(cluster) if "broker" in state.roles and state.state == "up"]
    if not brokers:
        return set()
    with connected(",".join(state.address for state in brokers), ANSWER_WITHIN_S, security) as client:
        return not_in_sync(client.metadata(None).topics, [state.node_id for state in brokers])


def await_in_sync(
    cluster: ClusterFolder, security: ClientSecurity | None, before: Collection[Replica], timeout_s: float
) -> str | None:
    """Return None when all replicas on running nodes are in sync, except those that were not `before`; or
    what is missing when the time is over.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            missing = sorted(lagging(cluster, security).difference(before))
            if not missing:
                return None
            partitions = list(dict.fromkeys(replica.partition for replica in missing))
            more = f" and {len(partitions) - NAMED} more" if len(partitions) > NAMED else ""
            found = f"not in sync again within {timeout_s:g} s: {', '.join(partitions[:NAMED])}{more}"
        except (OSError, KafkaError, ProtocolError) as error:
            found = f"no broker tells which replicas are in sync: {error}"
        if time.monotonic() > deadline:
            return found
        time.sleep(POLL_S)
