"""Envelope: a broker passes on the requests of its clients."""

from __future__ import annotations

from typing import Any

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.client.core.frames import request_header
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.messages.default_principal import DefaultPrincipalData
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest
from pykafka_broker.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from pykafka_broker.protocol.messages.envelope import EnvelopeRequest
from pykafka_broker.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

LOCALHOST = bytes([127, 0, 0, 1])


def principal_of(user: str) -> bytes:
    """A user as brokers name him."""
    return b"\0\0" + encode(DefaultPrincipalData(type="User", name=user, token_authenticated=False), 0)


def wrapped(request: Any, version: int, **details: Any) -> EnvelopeRequest:
    data = request_header(request.api_key, version, 77, "a client") + encode(request, version)
    values = {
        "request_data": data,
        "request_principal": principal_of("alice"),
        "client_host_address": LOCALHOST,
        **details,
    }
    return EnvelopeRequest(**values)


def listing() -> ListPartitionReassignmentsRequest:
    return ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None)


@conversation
def the_answer_comes_back_with_a_header_of_its_own(talk: Talk) -> None:
    controllers = talk.controllers()
    controllers.ask(wrapped(listing(), 0))
    topics = [TopicPartitions(topic=talk.name("missing"), partitions=[0])]
    for version in (0, 2):
        electing = ElectLeadersRequest(election_type=0, topic_partitions=topics, timeout_ms=10_000)
        controllers.ask(wrapped(electing, version))


@conversation
def who_sent_it_has_to_be_told(talk: Talk) -> None:
    controllers = talk.controllers()
    for principal in (b"", b"\0\0\xff"):
        controllers.ask(
            wrapped(listing(), 0, request_principal=principal), E.PRINCIPAL_DESERIALIZATION_FAILURE
        )
    controllers.ask(wrapped(listing(), 0, client_host_address=b"abc"), E.INVALID_REQUEST)


@conversation
def what_may_not_be_passed_on_is_refused(talk: Talk) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=False)
    talk.controllers().ask(wrapped(request, 0), E.INVALID_REQUEST)
