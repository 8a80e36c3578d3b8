"""Envelope (58): a broker passes on the request of a client of its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pykafka_broker.apis.admission import admitted
from pykafka_broker.apis.create_acls import create_acls
from pykafka_broker.apis.envelope import envelope
from pykafka_broker.apis.ports.quotas import UNLIMITED
from pykafka_broker.authorization.rules import StandardRules
from pykafka_broker.broker.security.acl_authorizer import StandardAuthorizer
from pykafka_broker.client.core.frames import read_response, request_header
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import api_key_of
from pykafka_broker.protocol.messages import create_topics as creating
from pykafka_broker.protocol.messages.create_acls import CreateAclsRequest
from pykafka_broker.protocol.messages.default_principal import DefaultPrincipalData
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest
from pykafka_broker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User

PRINCIPAL = b"\0\0" + encode(DefaultPrincipalData(type="User", name="alice", token_authenticated=False), 0)
LOCALHOST = bytes([127, 0, 0, 1])


def creation(name: str) -> creating.CreateTopicsRequest:
    topic = creating.CreatableTopic(
        name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    return creating.CreateTopicsRequest(topics=[topic], timeout_ms=1_000)


def wrapped(request: Any, version: int, **details: Any) -> EnvelopeRequest:
    data = request_header(request.api_key, version, 77, "a client") + encode(request, version)
    values = {
        "request_data": data,
        "request_principal": PRINCIPAL,
        "client_host_address": LOCALHOST,
        **details,
    }
    return EnvelopeRequest(**values)


@pytest.mark.parametrize("version", [2, 7])
async def test_the_answer_of_the_embedded_request_comes_back_with_its_own_header(
    combined: Home, controllers: User, version: int
) -> None:
    answer = await controllers.send(wrapped(creation("orders"), version), 0)

    assert answer.error_code == 0
    embedded = read_response(api_key_of(creating.CreateTopicsRequest), version, answer.response_data)
    assert embedded.correlation_id == 77
    assert [(topic.name, topic.error_code) for topic in embedded.message.topics] == [("orders", 0)]
    assert "orders" in combined.broker.node.image.topics


async def test_an_error_of_the_embedded_request_is_told_in_its_answer(controllers: User) -> None:
    answer = await controllers.send(wrapped(creation("no good"), 7), 0)

    assert answer.error_code == 0
    embedded = read_response(api_key_of(creating.CreateTopicsRequest), 7, answer.response_data)
    assert embedded.message.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (wrapped(creation("x"), 7, request_principal=None), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (wrapped(creation("x"), 7, request_principal=b"\0\1"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (
            wrapped(creation("x"), 7, request_principal=b"\0\0\xff"),
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
        ),
        (wrapped(creation("x"), 7, client_host_address=b"abc"), ErrorCode.INVALID_REQUEST),
        (wrapped(creation("x"), 7, request_data=b""), ErrorCode.INVALID_REQUEST),
        (wrapped(creation("x"), 7, request_data=b"\0\x13\0\x07\0"), ErrorCode.INVALID_REQUEST),
        (wrapped(creation("x"), 7, request_data=b"\0\x13\x7f\x07\0"), ErrorCode.INVALID_REQUEST),
        (
            wrapped(DescribeClusterRequest(include_cluster_authorized_operations=False), 0),
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
async def test_an_envelope_that_cannot_be_opened_is_refused(
    combined: Home, controllers: User, request_: EnvelopeRequest, error: ErrorCode
) -> None:
    assert await controllers.send(request_, 0) == EnvelopeResponse(error_code=int(error))
    assert not combined.broker.node.image.topics


@pytest.mark.parametrize(
    ("sender", "later"),
    [("User:a-broker", ErrorCode.NONE), ("User:another", ErrorCode.CLUSTER_AUTHORIZATION_FAILED)],
)
async def test_a_controller_that_has_not_read_its_acls_is_none_yet(sender: str, later: ErrorCode) -> None:
    rules = StandardRules(super_users=frozenset({"User:a-broker"}), allows_everyone=False)
    authorizer = StandardAuthorizer(rules, lambda: 0)
    opening = envelope([create_acls])
    node: Any = SimpleNamespace(
        authorizer=authorizer,
        quotas=UNLIMITED,
        controller=SimpleNamespace(is_active=True),
        quorum=SimpleNamespace(leader_id=1),
        metadata=SimpleNamespace(node_id=1),
    )
    ctx: Any = SimpleNamespace(
        node=node, connection=None, principal=sender, client_host="/127.0.0.1", api_key=58, client_id=None
    )

    async def asked() -> ErrorCode:
        request = wrapped(CreateAclsRequest(creations=[]), 3)
        try:
            answer = await admitted(opening, authorizer, UNLIMITED)(request, ctx)
        except KafkaError as error:
            assert opening.error_response is not None
            answer = opening.error_response(request, error)
        return ErrorCode(answer.error_code)

    assert await asked() is ErrorCode.NOT_CONTROLLER
    authorizer.published(ClusterImage("a"), ClusterImage("a"))
    assert await asked() is later

    # It leads the metadata log, and has not read yet what earlier leaders wrote: it denies no client.
    node.controller.is_active = False
    assert await asked() is (later or ErrorCode.NOT_CONTROLLER)
