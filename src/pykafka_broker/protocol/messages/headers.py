"""The headers of requests and responses, and the header version that goes with each version of an API.

Request header v2 and response header v1 go with the flexible versions of an API; the ApiVersions response
keeps header v0 for ever, because a client reads it before it knows what the broker speaks. For the same
reason the client id keeps its two-byte length even in v2. Header v0 of requests (ControlledShutdown v0 only)
is gone since Kafka 4.0.
"""

from __future__ import annotations

from functools import cache

from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.fields import Versions, schema_of
from pykafka_broker.protocol.messages import API_NAMES, API_VERSIONS_KEY, request_type
from pykafka_broker.protocol.schema import i16, i32, message, string


@message(versions="1-2", flexible="2+")
class RequestHeader:
    request_api_key: int = i16()
    request_api_version: int = i16()
    correlation_id: int = i32()
    client_id: str | None = string(nullable=True, compact=False)


@message(versions="0-1", flexible="1+")
class ResponseHeader:
    correlation_id: int = i32()


def request_header_version(api_key: int, version: int) -> int:
    """The header version of a request, also of a version that is not defined; raises for an unknown API."""
    return 2 if version in _flexible_versions(api_key) else 1


def response_header_version(api_key: int, version: int) -> int:
    """The header version of the response to a request of this version."""
    if api_key == API_VERSIONS_KEY:
        return 0
    return 1 if version in _flexible_versions(api_key) else 0


@cache
def _flexible_versions(api_key: int) -> Versions:
    """The flexible versions of an API: always the same for its request and its response."""
    if api_key not in API_NAMES:
        raise ProtocolError(f"unknown API key {api_key}")
    return schema_of(request_type(api_key)).flexible
