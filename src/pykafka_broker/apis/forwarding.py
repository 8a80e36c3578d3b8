"""Requests of clients that only the active controller may answer (KIP-590).

An API declares this with `forwarded=True`. While the active controller is in this process, the handler runs
here. Otherwise the request goes to the controller in an Envelope, with the client's header, principal and
address; the controller checks the authorization, and its answer goes to the client. A handler that checks a
request before it forwards the rest declares `@asks_controller`. Errors of forwarding are those of Apache
Kafka's ForwardingManager: REQUEST_TIMED_OUT if no controller has answered, UNKNOWN_SERVER_ERROR if the
envelope was refused, and a closed connection if the controller does not serve the version.

With `@leaderless(...)` an API declares the answer that this node gives at once if it is sure that there is no
active controller. Other APIs wait for one, as in Apache Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from inspect import iscoroutine
from ipaddress import ip_address
from typing import Any

from pykafka_broker.apis.api import CLOSE, Api, ErrorResponse, Handler
from pykafka_broker.apis.context import RequestContext
from pykafka_broker.controller.channel import LedHere
from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.fields import error_codes
from pykafka_broker.protocol.messages import response_type
from pykafka_broker.protocol.messages.default_principal import DefaultPrincipalData
from pykafka_broker.protocol.messages.describe_quorum import DescribeQuorumResponse
from pykafka_broker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from pykafka_broker.protocol.messages.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)

logger = logging.getLogger("kafka.server.ForwardingManager")

PRINCIPAL_VERSION = b"\0\0"


def forwarded(api: Api[Any], handle: Handler[Any], leaderless: Handler[Any] | None = None) -> Handler[Any]:
    """A handler that calls `handle` if the active controller is in this process; calls `leaderless`, if
    given, if there is surely no controller; and else forwards the request.
    """
    error_response = api.error_response
    assert error_response is not None, f"{api.name} cannot tell an error"

    async def decide(request: Any, ctx: RequestContext) -> Any:
        return await decided(ctx, lambda: handle(request, ctx), lambda: elsewhere(request, ctx))

    async def elsewhere(request: Any, ctx: RequestContext) -> Any:
        if leaderless is not None and ctx.node.forwarding.lost_quorum() is not None:
            return leaderless(request, ctx)
        return await pass_on(request, ctx, error_response)

    return decide


async def decided(
    ctx: RequestContext, here: Callable[[], Any], elsewhere: Callable[[], Awaitable[Any]]
) -> Any:
    """The answer of `here` if the active controller is in this process, else of `elsewhere`.

    If the active controller moves meanwhile, the other one is called.
    """
    while True:
        if not _is_needed(ctx):
            answer = here()
            if iscoroutine(answer):
                answer = await answer
            if not (_is_needed(ctx) and is_refused(answer)):
                return answer
        try:
            return await elsewhere()
        except LedHere:
            continue


def _is_needed(ctx: RequestContext) -> bool:
    return ctx.node.forwarding.is_needed


def is_refused(answer: object) -> bool:
    """Whether this is the answer of a node whose controller is not active."""
    if isinstance(answer, DescribeQuorumResponse):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER in error_codes(answer)
    return hasattr(answer, "__schema__") and ErrorCode.NOT_CONTROLLER in error_codes(answer)


async def pass_on(request: Any, ctx: RequestContext, error_response: ErrorResponse) -> Any:
    """The answer of the active controller on another node to `request`, for the client of `ctx`.

    Raises:
        LedHere: the active controller is in this process now.
    """
    try:
        response = await ctx.node.forwarding.ask(_envelope(request, ctx))
    except KafkaError as error:
        logger.debug("%s could not be forwarded: %s", type(request).__name__, error)
        is_late = error.code in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER)
        code = ErrorCode.REQUEST_TIMED_OUT if is_late else ErrorCode.UNKNOWN_SERVER_ERROR
        return error_response(request, KafkaError(code))
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        return CLOSE
    try:
        return _opened(response, ctx)
    except ProtocolError as error:
        logger.warning("No answer to a forwarded %s: %s", type(request).__name__, error)
        return error_response(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))


def _envelope(request: Any, ctx: RequestContext) -> EnvelopeRequest:
    header = RequestHeader(
        request_api_key=ctx.api_key,
        request_api_version=ctx.version,
        correlation_id=ctx.correlation_id,
        client_id=ctx.client_id,
    )
    kind, _, name = ctx.principal.partition(":")
    sasl = ctx.connection.sasl
    principal = DefaultPrincipalData(
        type=kind, name=name, token_authenticated=sasl is not None and sasl.by_token
    )
    head = encode(header, request_header_version(ctx.api_key, ctx.version))
    return EnvelopeRequest(
        request_data=encode(request, ctx.version, head),
        request_principal=encode(principal, 0, PRINCIPAL_VERSION),
        client_host_address=ip_address(ctx.connection.client_host.lstrip("/")).packed,
    )


def _opened(response: EnvelopeResponse, ctx: RequestContext) -> Any:
    """The embedded answer.

    Raises:
        ProtocolError: there is none, or it answers another request.
    """
    if response.error_code or response.response_data is None:
        raise ProtocolError(f"the envelope was refused with error {response.error_code}")
    data, version = response.response_data, ctx.version
    header, body_at = decode(ResponseHeader, response_header_version(ctx.api_key, version), data)
    if header.correlation_id != ctx.correlation_id:
        raise ProtocolError("the answer is one to another request")
    return decode(response_type(ctx.api_key), version, data, body_at)[0]
