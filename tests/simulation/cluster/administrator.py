"""An administrator who moves partitions between brokers, calls some moves off, and has preferred leaders
elected, of the topic that clients use and of those in which coordinators keep their state; and who lets the
segments of the first one roll.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from pykafka_broker.client.core.conversation import CANNOT
from pykafka_broker.cluster.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from pykafka_broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from pykafka_broker.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.simulation.cluster.client import REQUEST_MS, TOPIC, Client, ask
from tests.simulation.cluster.profile import Profile

#: Of the topics of coordinators.
STATE_PARTITIONS = 2
#: A segment a second, or hardly ever another one.
_SEGMENT_MS = (1_000, 604_800_000)
_PREFERRED = 0
_TOPIC_CONFIGS, _SET = 2, 0


async def administer(client: Client, profile: Profile, goes_on: Callable[[], bool]) -> None:
    """Change one thing after the other for as long as `goes_on`."""
    while True:
        await client.pause(profile.change_ms)
        if not goes_on():
            return
        try:
            await client.run(ask(_change(client.world.random, profile)))
        except CANNOT:
            continue


def _change(chance: random.Random, profile: Profile) -> object:
    """The request of some change; to no fewer replicas than have to be in sync."""
    topic = chance.choice((TOPIC, TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC))
    index = chance.randrange(profile.partitions if topic == TOPIC else STATE_PARTITIONS)
    kind = chance.random()
    if kind < 0.2:
        # Of the other topics each replica compacts what has rolled when it comes to it.
        return set_config(TOPIC, "segment.ms", str(chance.choice(_SEGMENT_MS)))
    if kind < 0.4:
        return elect_preferred(topic, index)
    if kind < 0.5:
        return reassign(topic, index, None)
    count = chance.randint(profile.min_isr, profile.replication_factor)
    return reassign(topic, index, chance.sample(range(1, profile.brokers + 1), count))


def reassign(topic: str, index: int, replicas: list[int] | None) -> AlterPartitionReassignmentsRequest:
    """Give a partition these replicas; None calls off what goes on."""
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    topics = [ReassignableTopic(name=topic, partitions=[partition])]
    return AlterPartitionReassignmentsRequest(timeout_ms=REQUEST_MS, topics=topics)


def elect_preferred(topic: str, index: int) -> ElectLeadersRequest:
    """Let the first replica of a partition lead it."""
    return ElectLeadersRequest(
        election_type=_PREFERRED,
        topic_partitions=[TopicPartitions(topic=topic, partitions=[index])],
        timeout_ms=REQUEST_MS,
    )


def set_config(topic: str, key: str, value: str) -> IncrementalAlterConfigsRequest:
    """Give a topic this value of a key."""
    entry = AlterableConfig(name=key, config_operation=_SET, value=value)
    resource = AlterConfigsResource(resource_type=_TOPIC_CONFIGS, resource_name=topic, configs=[entry])
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
