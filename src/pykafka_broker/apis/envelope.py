"""Envelope (API key 58): a broker forwards a client's request and principal to the controller (KIP-590).

v0 is the only version. The embedded request and its answer have headers of their own. The handler of the
embedded API answers for the principal that the broker names; the envelope itself has only errors of the
envelope, and NOT_CONTROLLER. The client's connection is not known here, so the broker does the throttling.
`forwarding.py` is the other side.

A controller that has just started may be elected before it has read its committed ACLs. Until then it answers
NOT_CONTROLLER, so brokers ask again. Such a controller of Apache Kafka answers
UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import iscoroutine
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.admission import admitted
from pykafka_broker.apis.api import Api, handles
from pykafka_broker.apis.context import Context, ForwardedContext
from pykafka_broker.apis.forwarding import PRINCIPAL_VERSION, is_refused
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation, AclsNotLoaded
from pykafka_broker.apis.ports.controller import ControllerPorts
from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.messages.default_principal import DefaultPrincipalData
from pykafka_broker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from pykafka_broker.protocol.messages.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from pykafka_broker.system.host_text import java_address

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext

#: The lengths of IPv4 and IPv6 addresses.
ADDRESS_BYTES = (4, 16)


def _refused(request: EnvelopeRequest, error: KafkaError) -> EnvelopeResponse:
    code = ErrorCode.NOT_CONTROLLER if isinstance(error, AclsNotLoaded) else error.code
    return EnvelopeResponse(error_code=int(code))


def envelope(forwarded: Iterable[Api[ControllerPorts]]) -> Api[ControllerPorts]:
    """The Envelope API for requests of the APIs in `forwarded`."""
    apis = {api.key: api for api in forwarded}

    @handles(
        EnvelopeRequest,
        versions="0",
        needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
        error_response=_refused,
    )
    async def open_envelope(request: EnvelopeRequest, ctx: ControllerContext) -> EnvelopeResponse:
        principal = _principal(request.request_principal)
        if len(request.client_host_address) not in ADDRESS_BYTES:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Failed to parse the client's address")
        header, api, embedded = _open(request.request_data, apis)
        if not ctx.node.controller.is_active:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        version = header.request_api_version
        inner = ForwardedContext(
            ctx.node,
            ctx.connection,
            header.request_api_key,
            version,
            header.correlation_id,
            header.client_id,
            principal,
            f"/{java_address(str(ip_address(request.client_host_address)))}",
        )
        answer = await _answer(api, embedded, inner)
        if is_refused(answer):
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        answer_header = ResponseHeader(correlation_id=header.correlation_id)
        data = encode(answer, version, encode(answer_header, response_header_version(api.key, version)))
        return EnvelopeResponse(error_code=0, response_data=data)

    return open_envelope


async def _answer(api: Api[ControllerPorts], request: object, ctx: Context[ControllerPorts]) -> object:
    try:
        answer = admitted(api, ctx.node.authorizer, ctx.node.quotas, mutes=False)(request, ctx)
        return await answer if iscoroutine(answer) else answer
    except ProtocolError as error:
        # The client's fault: the connection of the broker that forwarded the request stays open.
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
    except AclsNotLoaded:
        raise
    except KafkaError as error:
        if api.error_response is None:
            raise
        return api.error_response(request, error)


def _principal(data: bytes | None) -> str:
    """The principal, as `User:alice`, from its encoding as Kafka's default principal."""
    try:
        if data is None or data[:2] != PRINCIPAL_VERSION:
            raise ProtocolError("no principal of version 0")
        principal, _ = decode(DefaultPrincipalData, 0, data, 2)
    except ProtocolError:
        raise KafkaError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE) from None
    return f"{principal.type}:{principal.name}"


def _open(
    data: bytes, apis: Mapping[int, Api[ControllerPorts]]
) -> tuple[RequestHeader, Api[ControllerPorts], Any]:
    """The embedded request: its header, its API and its body.

    Raises:
        KafkaError: INVALID_REQUEST, it cannot be read, or may not be forwarded.
    """
    try:
        key, version = (
            int.from_bytes(data[:2], "big", signed=True),
            int.from_bytes(data[2:4], "big", signed=True),
        )
        api = apis.get(key)
        if api is None or not api.min_version <= version <= api.max_version:
            raise ProtocolError(f"API {key} version {version} is not passed on")
        header, body_at = decode(RequestHeader, request_header_version(key, version), data)
        request: Any = decode(api.request, version, data, body_at)[0]
    except ProtocolError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
    return header, api, request
