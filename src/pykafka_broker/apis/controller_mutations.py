"""Counts the partitions that a request creates or deletes against its client's quota (KIP-599).

CreateTopics, CreatePartitions and DeleteTopics count here before they ask the controller, topic by topic. As
in Kafka, THROTTLING_QUOTA_EXCEEDED refuses a topic while the client is over its quota, in versions that know
this error. Older versions may exceed it. In both cases the answer has a throttle time.

Handlers pass 0 partitions for a topic that the controller will refuse by the image: the topic counts nothing.
Kafka counts in the controller, after all its checks; here a topic that is refused for another reason counts,
too. A request that only validates counts as well, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext

Topic = TypeVar("Topic")


class Counted(NamedTuple, Generic[Topic]):
    """The topics to pass on to the controller, and those that the quota refuses."""

    admitted: list[Topic]
    #: The topics to answer with THROTTLING_QUOTA_EXCEEDED.
    refused: list[Topic]
    #: The throttle time for the answer.
    throttle_time_ms: int


def count_mutations(
    mutations: Iterable[tuple[Topic, int]], ctx: AdministrationContext, *, strict_since: int
) -> Counted[Topic]:
    """Count topics by the number of partitions that each creates or deletes.

    `strict_since` is the first version that knows THROTTLING_QUOTA_EXCEEDED.
    """
    record = ctx.node.quotas.record
    is_strict = ctx.version >= strict_since
    admitted: list[Topic] = []
    refused: list[Topic] = []
    throttle_time_ms = 0
    for topic, partitions in mutations:
        if not partitions:
            admitted.append(topic)
        elif is_strict and (wait_ms := record(Quota.CONTROLLER_MUTATION, ctx, 0)):
            refused.append(topic)
            throttle_time_ms = max(throttle_time_ms, wait_ms)
        else:
            admitted.append(topic)
            wait_ms = record(Quota.CONTROLLER_MUTATION, ctx, partitions)
            if not is_strict:
                throttle_time_ms = max(throttle_time_ms, wait_ms)
    return Counted(admitted, refused, throttle_time_ms)
