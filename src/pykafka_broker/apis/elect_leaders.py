"""ElectLeaders (API key 43): elect leaders of partitions now, the preferred or any live replica.

v1 also unclean elections, v2 flexible. No list means all partitions; then partitions that need no election
are not in the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.controller.core.events import ElectLeaders, TopicPartitions, TopicResult, refused_topic
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext


def failed(request: ElectLeadersRequest, error: KafkaError) -> ElectLeadersResponse:
    """The answer to a refused request."""
    refused = (refused_topic(each.topic, each.partitions, error) for each in request.topic_partitions or ())
    return ElectLeadersResponse(error_code=int(error.code), replica_election_results=_described(refused))


@handles(
    ElectLeadersRequest,
    versions="0-2",
    needs=[on_cluster(AclOperation.ALTER)],
    error_response=failed,
    forwarded=True,
)
async def elect_leaders(request: ElectLeadersRequest, ctx: AdministrationContext) -> ElectLeadersResponse:
    """Each partition succeeds or fails on its own; an error of the whole request is repeated for each."""
    if request.topic_partitions is None:
        asked = None
    else:
        asked = tuple(
            TopicPartitions(topic.topic, tuple(topic.partitions)) for topic in request.topic_partitions
        )
        if not asked:
            return ElectLeadersResponse(replica_election_results=[])
    event = ElectLeaders(request.election_type, asked)
    results = await ctx.node.controller.ask(event, request.timeout_ms, ctx.requester)
    return ElectLeadersResponse(replica_election_results=_described(results))


def _described(results: Iterable[TopicResult]) -> list[ReplicaElectionResult]:
    return [
        ReplicaElectionResult(
            topic=result.topic,
            partition_result=[
                PartitionResult(
                    partition_id=partition.partition,
                    error_code=int(partition.error),
                    error_message=partition.message,
                )
                for partition in result.partitions
            ],
        )
        for result in results
    ]
