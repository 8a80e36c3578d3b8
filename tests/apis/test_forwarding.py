"""What a client is told about a request that goes to the active controller of another node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pykafka_broker.apis.admission import admitted
from pykafka_broker.apis.api import CLOSE
from pykafka_broker.apis.delete_acls import delete_acls
from pykafka_broker.apis.delete_topics import delete_topics
from pykafka_broker.apis.forwarding import forwarded
from pykafka_broker.apis.ports.authorizer import ALLOW_ALL
from pykafka_broker.apis.ports.quotas import UNLIMITED
from pykafka_broker.client.core.frames import request_header
from pykafka_broker.controller.channel import LedHere
from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.messages.default_principal import DefaultPrincipalData
from pykafka_broker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from pykafka_broker.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from pykafka_broker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from pykafka_broker.protocol.messages.headers import ResponseHeader
from tests.apis.acls import filtering

VERSION = 6
REQUEST = DeleteTopicsRequest(
    topics=[DeleteTopicState(name="orders", topic_id=bytes(16))], topic_names=[], timeout_ms=1_000
)


def told(error: ErrorCode, name: str = "orders") -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[DeletableTopicResult(name=name, topic_id=bytes(16), error_code=int(error))]
    )


def embedded(answer: DeleteTopicsResponse, correlation_id: int = 77) -> EnvelopeResponse:
    header = encode(ResponseHeader(correlation_id=correlation_id), 1)
    return EnvelopeResponse(error_code=0, response_data=encode(answer, VERSION, header))


class Elsewhere:
    """A controller on another node; an error is raised, anything else is its answer."""

    is_needed = True

    def __init__(self, answer: EnvelopeResponse | Exception) -> None:
        self.answer = answer
        self.asked: list[EnvelopeRequest] = []
        #: What is known of a quorum that is lost.
        self.lost: object = None

    def lost_quorum(self) -> object:
        return self.lost

    async def ask(self, envelope: EnvelopeRequest) -> EnvelopeResponse:
        self.asked.append(envelope)
        if isinstance(self.answer, LedHere):
            self.is_needed = False
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def asked(controller: Any, here: DeleteTopicsResponse | None = None, leaderless: Any = None) -> Any:
    """The answer to a client, where `here` is that of this node's own controller, and `leaderless` the one of
    a node that is sure that no controller leads.
    """
    ctx: Any = SimpleNamespace(
        node=SimpleNamespace(forwarding=controller),
        connection=SimpleNamespace(client_host="/127.0.0.1", sasl=SimpleNamespace(by_token=True)),
        api_key=DeleteTopicsRequest.api_key,  # type: ignore[attr-defined]  # every request has one
        version=VERSION,
        correlation_id=77,
        client_id="a client",
        principal="User:alice",
    )
    return await forwarded(delete_topics, lambda request, ctx: here, leaderless)(REQUEST, ctx)


async def test_the_request_goes_out_whole_and_the_answer_comes_back() -> None:
    controller = Elsewhere(embedded(told(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))

    assert await asked(controller) == told(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    [envelope] = controller.asked
    assert envelope.request_data == request_header(20, VERSION, 77, "a client") + encode(REQUEST, VERSION)
    assert envelope.client_host_address == bytes([127, 0, 0, 1])
    assert envelope.request_principal is not None
    principal, _ = decode(DefaultPrincipalData, 0, envelope.request_principal, 2)
    assert principal == DefaultPrincipalData(type="User", name="alice", token_authenticated=True)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (KafkaError(ErrorCode.REQUEST_TIMED_OUT), ErrorCode.REQUEST_TIMED_OUT),
        (KafkaError(ErrorCode.NOT_CONTROLLER), ErrorCode.REQUEST_TIMED_OUT),
        (KafkaError(ErrorCode.UNSUPPORTED_VERSION), ErrorCode.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(error_code=31), ErrorCode.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(error_code=9_999), ErrorCode.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(error_code=0), ErrorCode.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(error_code=0, response_data=b"nonsense"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (embedded(told(ErrorCode.NONE), correlation_id=78), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_what_goes_wrong_on_the_way_is_told_for_each_topic(answer: Any, error: ErrorCode) -> None:
    assert await asked(Elsewhere(answer)) == told(error)


async def test_where_the_controller_does_not_serve_the_version_the_client_asks_for_versions_again() -> None:
    assert await asked(Elsewhere(EnvelopeResponse(error_code=35))) is CLOSE


async def test_where_no_controller_leads_a_node_that_is_sure_answers_at_once_where_it_has_an_answer() -> None:
    controller = Elsewhere(embedded(told(ErrorCode.NONE)))
    answer = told(ErrorCode.REQUEST_TIMED_OUT)
    assert await asked(controller, leaderless=lambda request, ctx: answer) == told(ErrorCode.NONE), "unsure"
    controller.lost = "a quorum"
    assert await asked(controller, leaderless=lambda request, ctx: answer) is answer
    assert await asked(controller) == told(ErrorCode.NONE), "there is none to this request: it waits"
    assert len(controller.asked) == 2


async def test_a_controller_that_came_to_this_node_answers_here() -> None:
    assert await asked(Elsewhere(LedHere()), told(ErrorCode.NONE)) == told(ErrorCode.NONE)


async def test_a_controller_that_left_this_node_meanwhile_is_followed() -> None:
    class Leaving(Elsewhere):
        needs = iter([False, True, True])

        @property
        def is_needed(self) -> bool:  # type: ignore[override]  # it changes while it is asked
            return next(self.needs)

    controller = Leaving(embedded(told(ErrorCode.NONE)))
    assert await asked(controller, told(ErrorCode.NOT_CONTROLLER)) == told(ErrorCode.NONE)


async def test_what_no_client_may_send_is_not_passed_on() -> None:
    """Apache Kafka refuses it while it reads the request, and closes the connection."""
    controller = Elsewhere(embedded(told(ErrorCode.NONE)))
    ctx: Any = SimpleNamespace(node=SimpleNamespace(forwarding=controller))
    nothing = DeleteAclsFilter(**filtering(operation=0))

    with pytest.raises(ProtocolError, match="UNKNOWN elements"):
        admitted(delete_acls, ALLOW_ALL, UNLIMITED, may_forward=True)(
            DeleteAclsRequest(filters=[nothing]), ctx
        )
    assert controller.asked == []
